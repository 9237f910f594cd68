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
    """Run `work` in a worker thread, for at most `seconds`.

    If the caller is cancelled, the `Stop` tells the work to end, and the caller waits until it has ended. So
    no thread outlives its caller.
    """
    stop = Stop(seconds)
    thread = asyncio.ensure_future(anyio.to_thread.run_sync(work, stop))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        stop.cancel()
        with anyio.CancelScope(
            shield=True
        ):  # otherwise an anyio scope of the caller would cancel this wait too
            await asyncio.wait((thread,))
        thread.exception()  # marks the error as retrieved; the cancellation is what the caller must see
        raise
