"""Wakes whoever waits for runs to change, whichever process changes them. Knows nothing of what it means.

Changes of this process are heard at once. Those of others are found by asking SQLite for its version
number every few milliseconds, but only while somebody waits.
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
RETRY_S = 0.2

log = logging.getLogger(__name__)


class Watch:
    """One listener: gathers what has changed since it last looked."""

    def __init__(self, run_ids: Collection[RunId] | None, poll_s: float | None, poke: asyncio.Event) -> None:
        self._wanted = None if run_ids is None else frozenset(run_ids)
        self._news = asyncio.Event()
        self._changed: set[RunId] = set()
        self._poke = poke
        self.poll_s = poll_s

    def poll_every(self, seconds: float | None) -> None:
        """How soon to hear of other processes' changes; None when they do not matter now."""
        if seconds != self.poll_s:
            self.poll_s = seconds
            self._poke.set()

    def tell(self, changed: Collection[RunId]) -> None:
        relevant = changed if self._wanted is None else self._wanted.intersection(changed)
        if self._wanted is None or relevant:
            self._changed.update(relevant)
            self._news.set()

    async def next(self) -> set[RunId]:
        """Wait for news: the runs that changed, perhaps none that the watcher knows."""
        await self._news.wait()
        self._news.clear()
        changed, self._changed = self._changed, set()
        return changed


class Changes:
    """`async with Changes(store) as changes`: listens within the block only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: set[Watch] = set()
        self._poke = asyncio.Event()
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._version = self._store.database.others_version()
        self._seen = self._store.events.last()
        async with AsyncExitStack() as scope:
            group = await scope.enter_async_context(asyncio.TaskGroup())
            scope.callback(group.create_task(self._poll()).cancel)
            scope.callback(self._store.database.listen(self._hear))
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
        """Listen to some runs, or to all."""
        watch = Watch(run_ids, poll_s, self._poke)
        self._watches.add(watch)
        self._poke.set()
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
        """Wait until the check gives something; it is made now and after every change of the runs.

        None when the time is over.
        """
        with self.watch(run_ids, poll_s) as watch, suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while (found := check()) is None:
                    await watch.next()
                return found
        return check()

    def _hear(self, touched: Iterable[RunId]) -> None:
        """Called in whichever thread has written."""
        if threading.get_ident() == self._thread:
            self._tell(frozenset(touched))
        else:
            with suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._tell, frozenset(touched))

    def _tell(self, changed: Collection[RunId]) -> None:
        for watch in self._watches:
            watch.tell(changed)

    async def _poll(self) -> None:
        while True:
            pauses = [watch.poll_s for watch in self._watches if watch.poll_s is not None]
            with suppress(TimeoutError):
                async with asyncio.timeout(min(pauses, default=None)):
                    await self._poke.wait()
                    self._poke.clear()
            try:
                self._look()
            except RetinueError as error:
                log.warning("changes cannot be read: %s", error.message)
                await asyncio.sleep(RETRY_S)

    def _look(self) -> None:
        version = self._store.database.others_version()
        if version != self._version:
            self._seen, changed = self._store.events.changed_since(self._seen)
            self._version = version
            self._tell(changed)
