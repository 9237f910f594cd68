"""Notifies waiting tasks when runs change, in this or another process. Knows nothing of what a change means.

The store reports the changes of this process at once. To find those of other processes, this module asks
SQLite for its version number, but only while a task waits: every few milliseconds at first, then ever more
rarely, so that a wait for a person costs almost nothing.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import AsyncExitStack, contextmanager, suppress
from types import TracebackType
from typing import Self, TypeVar

from retinue.core import RetinueError, RunId
from retinue.store import Store

T = TypeVar("T")

POLL_S = 0.005
MAX_POLL_S = 0.1
LAG = 0.05
"""How much later than necessary a change may be seen, as a share of the time since the last one."""
RETRY_S = 0.2

log = logging.getLogger(__name__)


class Watch:
    """One listener. Collects the runs that change between two calls of `next`."""

    def __init__(
        self, run_ids: Collection[RunId] | None, poll_s: float | None, repoll: asyncio.Event
    ) -> None:
        self._wanted = None if run_ids is None else frozenset(run_ids)
        self._has_changes = asyncio.Event()
        self._changed: set[RunId] = set()
        self._repoll = repoll
        self.poll_s = poll_s

    def poll_every(self, seconds: float | None) -> None:
        """Set how often to look for changes of other processes; None stops it."""
        if seconds != self.poll_s:
            self.poll_s = seconds
            self._repoll.set()

    def notify(self, changed: Collection[RunId]) -> None:
        """Wake the listener if it watches one of these runs. A listener to all runs always wakes."""
        relevant = changed if self._wanted is None else self._wanted.intersection(changed)
        if self._wanted is None or relevant:
            self._changed.update(relevant)
            self._has_changes.set()

    async def next(self) -> set[RunId]:
        """Wait for a change and return the runs that changed; may be empty."""
        await self._has_changes.wait()
        self._has_changes.clear()
        changed, self._changed = self._changed, set()
        return changed


class Changes:
    """Watches the runs of a store within `async with Changes(store)`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: set[Watch] = set()
        self._repoll = asyncio.Event()
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._version = self._store.database.foreign_version()
        self._last_seq = self._store.events.last_seq()
        async with AsyncExitStack() as scope:
            group = await scope.enter_async_context(asyncio.TaskGroup())
            scope.callback(group.create_task(self._poll()).cancel)
            scope.callback(self._store.database.listen(self._on_write))
            self._scope = scope.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)

    @contextmanager
    def watch(
        self, run_ids: Collection[RunId] | None = None, poll_s: float | None = POLL_S
    ) -> Generator[Watch]:
        """Listen to the given runs, or to all runs, within the block."""
        watch = Watch(run_ids, poll_s, self._repoll)
        self._watches.add(watch)
        self._repoll.set()
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    async def until(
        self,
        check: Callable[[], T | None],
        run_ids: Collection[RunId],
        wait_s: float | None = None,
        poll_s: float | None = POLL_S,
    ) -> T | None:
        """Call `check` now and after every change of the runs, until it returns something other than None.

        Returns None if `wait_s` passes first.
        """
        with self.watch(run_ids, poll_s) as watch, suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while (found := check()) is None:
                    await watch.next()
                return found
        return check()

    def _on_write(self, touched: Iterable[RunId]) -> None:
        """Called in the thread that has written."""
        if threading.get_ident() == self._thread:
            self._notify(frozenset(touched))
        else:
            with suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._notify, frozenset(touched))

    def _notify(self, changed: Collection[RunId]) -> None:
        for watch in self._watches:
            watch.notify(changed)

    async def _poll(self) -> None:
        """Look for changes of other processes, at most as often as the most demanding watch wants."""
        last_news = self._loop.time()
        while True:
            pauses = [watch.poll_s for watch in self._watches if watch.poll_s is not None]
            slowest = min(MAX_POLL_S, LAG * (self._loop.time() - last_news))
            with suppress(TimeoutError):
                async with asyncio.timeout(max(min(pauses), slowest) if pauses else None):
                    await self._repoll.wait()
                    self._repoll.clear()
                    last_news = self._loop.time()
            try:
                if self._check_other_processes():
                    last_news = self._loop.time()
            except RetinueError as error:
                log.warning("changes cannot be read: %s", error.message)
                await asyncio.sleep(RETRY_S)

    def _check_other_processes(self) -> bool:
        """Notify the watches of what other processes have changed. Returns whether there was something."""
        version = self._store.database.foreign_version()
        if version == self._version:
            return False
        self._last_seq, changed = self._store.events.changed_since(self._last_seq)
        self._version = version
        self._notify(changed)
        return True
