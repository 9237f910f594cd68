"""A server goes on with the workflows that dead servers and answered questions leave.

Their verbs are loaded when there is one: most servers never meet a workflow, and all of them start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from retinue.core import RetinueError
from retinue.service.runs import RunService

if TYPE_CHECKING:
    from retinue.service.workflows import WorkflowService

log = logging.getLogger(__name__)

EVERY_S = 1.0
"""How often to look for them, if nothing else happens."""


@asynccontextmanager
async def adopt_workflows(runs: RunService, workflows: Callable[[], WorkflowService]) -> AsyncGenerator[None]:
    """Within the block."""

    async def keep_looking() -> None:
        with runs.changes.watch(poll_s=None) as watch:
            while True:
                try:
                    if runs.store.runs.list_adoptable():
                        await workflows().take_over()
                except RetinueError as error:
                    # What was left by others must not end the server for all who wait for something else.
                    log.warning("workflows that were left cannot be taken up: %s", error.message)
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_S):
                        await watch.next()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(keep_looking())
        try:
            yield
        finally:
            task.cancel()
