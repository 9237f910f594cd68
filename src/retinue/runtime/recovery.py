"""Looks after what dead servers left, again and again while the server lives."""

from __future__ import annotations

import asyncio

from retinue.store.recovery import EndProcesses, recover
from retinue.store.store import Store

EVERY_S = 1.0


async def keep_recovering(store: Store, end_processes: EndProcesses, every_s: float = EVERY_S) -> None:
    """For a task group of the server's; in a thread, as ending processes takes its time."""
    while True:
        await asyncio.to_thread(recover, store, end_processes)
        await asyncio.sleep(every_s)
