"""Runs blocking work in a worker thread and ends it when its caller is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from retinue.core import Stop

T = TypeVar("T")


async def run_in_thread(work: Callable[[Stop], T], seconds: float | None) -> T:
    """Run `work` in a thread. A cancel reaches it through its `Stop`, and the caller waits until it ends."""
    stop = Stop(seconds)
    results: list[T] = []
    errors: list[Exception] = []

    def attempt() -> None:
        try:
            results.append(work(stop))
        except Exception as error:  # raised below, so that the task group does not wrap it
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_when_cancelled, stop)
        await anyio.to_thread.run_sync(attempt)
        tasks.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint_if_cancelled()  # a cancel of the caller wins over the work's own error
    if errors:
        raise errors[0]
    return results[0]


async def _stop_when_cancelled(stop: Stop) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.cancel()
