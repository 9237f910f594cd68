"""Resumes parked runs while a server runs: after another server died, or after a question was answered.

These are workflows, and runs that wait for the usage limit of their account.

The workflow service is loaded when there is such a workflow, because most servers never run one.
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

CHECK_INTERVAL_S = 1.0
"""Maximum number of seconds between two checks for parked workflows."""


@asynccontextmanager
async def adopt_workflows(runs: RunService, workflows: Callable[[], WorkflowService]) -> AsyncGenerator[None]:
    """Resume parked workflows until the block ends."""

    async def resume_parked() -> None:
        with runs.changes.watch(poll_s=None) as watch:
            while True:
                try:
                    await runs.resume_waiting()
                    if runs.store.runs.list_adoptable():
                        await workflows().resume_parked()
                except RetinueError as error:
                    # A run that cannot be resumed must not end the server.
                    log.warning("parked runs could not be resumed: %s", error.message)
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_INTERVAL_S):
                        await watch.next()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(resume_parked())
        try:
            yield
        finally:
            task.cancel()
