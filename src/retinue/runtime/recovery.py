"""Looks after what dead servers left, again and again while the server lives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from retinue.runtime.shielded import wait_shielded
from retinue.store import EndProcesses, Store, recover_dead_owners

EVERY_S = 1.0


@asynccontextmanager
async def recover_in_background(
    store: Store, end_processes: EndProcesses, every_s: float = EVERY_S
) -> AsyncGenerator[None]:
    """Within the block: at once, so that a restart finds nothing stale for long, and then now and again."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_keep_recovering(store, end_processes, every_s))
        try:
            yield
        finally:
            task.cancel()


async def _keep_recovering(store: Store, end_processes: EndProcesses, every_s: float) -> None:
    """In a thread, as ending processes takes its time; one that has begun is waited for, also at the end:
    a command that ends sooner would leave everything to the next."""
    while True:
        work = asyncio.ensure_future(asyncio.to_thread(recover_dead_owners, store, end_processes))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await wait_shielded(work)
            raise
        await asyncio.sleep(every_s)
