"""Stops synchronous work in worker threads: by a deadline, or because another thread cancels it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from retinue.core.errors import Canceled, DeadlineExceeded

T = TypeVar("T")


class Stop:
    """A deadline and a cancel flag. Pass it to every function that may take long.

    Loops call `check()`. Code that blocks on a child process uses `watch(process.kill)`.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._watchers: dict[object, Callable[[], None]] = {}

    def cancel(self) -> None:
        """Cancel the work. Call it from another thread, as often as you like."""
        self._cancelled.set()
        with self._lock:
            watchers = list(self._watchers.values())
        for watcher in watchers:
            watcher()

    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None if there is no deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def reached(self) -> bool:
        """Whether the work must end now."""
        return self._cancelled.is_set() or self.remaining() == 0.0

    def check(self) -> None:
        """Raise `Canceled` or `DeadlineExceeded` if the work must end now."""
        if self._cancelled.is_set():
            raise Canceled("the work was canceled")
        if self.remaining() == 0.0:
            raise DeadlineExceeded("the deadline passed before the work was done")

    @contextmanager
    def watch(self, on_stop: Callable[[], None]) -> Generator[None]:
        """Call `on_stop` once, from another thread, if the work must end while the block runs."""
        token = object()
        fired = threading.Event()

        def fire() -> None:
            if not fired.is_set():
                fired.set()
                on_stop()

        left = self.remaining()
        timer = None if left is None else threading.Timer(left, fire)
        with self._lock:
            self._watchers[token] = fire
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            if self.reached:
                fire()
            yield
        finally:
            with self._lock:
                del self._watchers[token]
            if timer is not None:
                timer.cancel()


async def wait_shielded(work: asyncio.Future[Any]) -> None:
    """Wait until the future is done, even if the waiting task is cancelled meanwhile."""
    from anyio import CancelScope  # imported here because few callers need it

    with CancelScope(shield=True):  # a cancelled anyio scope would cancel every wait again at once
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])


async def run_in_thread(work: Callable[[Stop], T], seconds: float | None) -> T:
    """Run blocking work in a worker thread for at most so many seconds.

    A cancel of the caller reaches the work through its `Stop`. The caller then waits until the work has
    ended, so that no thread goes on for nobody.
    """
    import anyio.to_thread  # imported here because values need no event loop

    stop = Stop(seconds)
    thread = asyncio.ensure_future(anyio.to_thread.run_sync(work, stop))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        stop.cancel()
        await wait_shielded(thread)
        if not thread.cancelled():
            thread.exception()  # marks it as retrieved: the cancel matters more than why the work ended
        raise
