"""Work that nobody waits for, such as renewing an index: in worker threads, ended with the server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from retinue.core import RetinueError, Stop, wait_shielded
from retinue.store import EndProcesses, Store, recover_dead_owners

log = logging.getLogger(__name__)

REST_S = 10.0
"""Seconds between two times that the same work is done."""


class Background:
    """`async with Background() as background`: what still works when the block ends is stopped."""

    def __init__(self, rest_s: float = REST_S) -> None:
        self._rest_s = rest_s
        self._next: dict[Hashable, float] = {}
        self._stops: set[Stop] = set()
        self._tasks: TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stop in self._stops:
            stop.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    def later(self, key: Hashable, work: Callable[[Stop], object]) -> bool:
        """Do it soon, unless the same work is being done or was done just now. Says whether it will be."""
        if time.monotonic() < self._next.get(key, 0.0):
            return False
        self._next[key] = float("inf")
        self._tasks.start_soon(self._do, key, work)
        return True

    async def _do(self, key: Hashable, work: Callable[[Stop], object]) -> None:
        stop = Stop()
        self._stops.add(stop)
        try:
            await anyio.to_thread.run_sync(partial(work, stop))
        except RetinueError as error:
            log.info("background work ended: %s", error.code)
        except Exception:
            # What nobody waits for must not end the server for all who wait for something else.
            log.exception("background work failed")
        finally:
            self._stops.discard(stop)
            self._next[key] = time.monotonic() + self._rest_s


# MERGED recovery: Ends what dead servers left, again and again while this server lives.


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
    """Work in a thread, because ending processes takes time.

    A recovery that has begun is waited for, even when the server stops: a command that ended sooner would
    leave everything to the next one.
    """
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
