"""Ends what dead servers left, again and again while this server lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from retinue.core import RetinueError, wait_shielded
from retinue.store import EndProcesses, Store, recover_dead_owners

log = logging.getLogger(__name__)

EVERY_S = 1.0


@asynccontextmanager
async def recover_in_background(
    store: Store, end_processes: EndProcesses, every_s: float = EVERY_S
) -> AsyncGenerator[None]:
    """While the block runs, recover at once and then every few seconds."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_keep_recovering(store, end_processes, every_s))
        try:
            yield
        finally:
            task.cancel()


async def _keep_recovering(store: Store, end_processes: EndProcesses, every_s: float) -> None:
    """Work in a thread, because ending processes takes time. A recovery that has begun is waited for, even when
    the server stops: a command that ended sooner would leave everything to the next one."""
    while True:
        work = asyncio.ensure_future(asyncio.to_thread(recover_dead_owners, store, end_processes))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await wait_shielded(work)
            raise
        except RetinueError as error:
            log.warning("what dead servers left cannot be recovered now: %s", error.message)
        await asyncio.sleep(every_s)
