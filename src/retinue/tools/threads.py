"""Blocking work beside the event loop, ended when its caller is. Knows nothing of what the work is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from retinue.core import Stop

T = TypeVar("T")


async def in_thread(work: Callable[[Stop], T], seconds: float | None) -> T:
    """A cancel reaches the work through its stop and is waited for: no thread reads on for nobody."""
    stop = Stop(seconds)
    done: list[T] = []
    failed: list[Exception] = []

    def attempt() -> None:
        try:
            done.append(work(stop))
        except Exception as error:  # carried over, so that no group of exceptions wraps it
            failed.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_on_cancel, stop)
        await anyio.to_thread.run_sync(attempt)
        tasks.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint_if_cancelled()  # the caller's own end comes before the work's
    if failed:
        raise failed[0]
    return done[0]


async def _pass_on_cancel(stop: Stop) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.cancel()
