"""Runs blocking work in a worker thread and stops it when its caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from retinue.core import Stop

T = TypeVar("T")


async def run_in_thread(work: Callable[[Stop], T], seconds: float | None) -> T:
    """Run `work` in a worker thread for at most so many seconds.

    A cancel of the caller reaches the work through its `Stop`. The caller then waits until the work has
    ended, so that no thread goes on for nobody.
    """
    stop = Stop(seconds)
    thread = asyncio.ensure_future(anyio.to_thread.run_sync(work, stop))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        stop.cancel()
        with anyio.CancelScope(shield=True):  # an anyio scope of a caller would cancel this wait too
            await asyncio.wait((thread,))
        thread.exception()  # marks it as retrieved: the cancel matters more than why the work ended
        raise
