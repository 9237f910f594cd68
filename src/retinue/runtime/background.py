"""Background jobs of a server: work that nobody waits for, and the periodic recovery of dead servers' runs.

Jobs such as updating an index run in worker threads and are stopped when the server stops.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from retinue.core import RetinueError, Stop, wait_shielded
from retinue.store import EndProcesses, Store, recover_dead_owners

log = logging.getLogger(__name__)

REPEAT_AFTER_S = 10.0
"""Seconds after which a job with the same key may run again."""
RECOVERY_INTERVAL_S = 1.0


class BackgroundJobs:
    """Runs jobs in worker threads within `async with BackgroundJobs()`. The end of the block stops them."""

    def __init__(self, repeat_after_s: float = REPEAT_AFTER_S) -> None:
        self._repeat_after_s = repeat_after_s
        self._earliest: dict[Hashable, float] = {}
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

    def schedule(self, key: Hashable, job: Callable[[Stop], object]) -> bool:
        """Start the job and return True, unless a job with the same key is running or has just run."""
        if time.monotonic() < self._earliest.get(key, 0.0):
            return False
        self._earliest[key] = float("inf")
        self._tasks.start_soon(self._run, key, job)
        return True

    async def _run(self, key: Hashable, job: Callable[[Stop], object]) -> None:
        stop = Stop()
        self._stops.add(stop)
        try:
            await anyio.to_thread.run_sync(partial(job, stop))
        except RetinueError as error:
            log.info("a background job ended: %s", error.code)
        except Exception:
            # A failed job must not end the server.
            log.exception("a background job failed")
        finally:
            self._stops.discard(stop)
            self._earliest[key] = time.monotonic() + self._repeat_after_s


@asynccontextmanager
async def recover_in_background(
    store: Store,
    end_processes: EndProcesses,
    interval_s: float = RECOVERY_INTERVAL_S,
    *,
    first_within_s: float = 0.0,
) -> AsyncGenerator[None]:
    """Recover the runs of dead servers at once, then at every interval until the block ends.

    The block begins when the first recovery is done, or after `first_within_s`. A command that shows runs
    would otherwise show the runs of dead servers as running (P8).
    """
    recovered = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_recover_periodically(store, end_processes, interval_s, recovered))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(first_within_s):
                    await recovered.wait()
            yield
        finally:
            task.cancel()


async def _recover_periodically(
    store: Store, end_processes: EndProcesses, interval_s: float, recovered: asyncio.Event
) -> None:
    """Recover in a thread, because ending processes takes time.

    If the server stops, wait for a recovery that has begun. Otherwise a short command would never recover
    anything.
    """
    while True:
        recovery = asyncio.ensure_future(asyncio.to_thread(recover_dead_owners, store, end_processes))
        try:
            await asyncio.shield(recovery)
        except asyncio.CancelledError:
            await wait_shielded(recovery)
            raise
        except (RetinueError, OSError) as error:  # such as too many open files
            log.warning("the runs of dead servers could not be recovered: %s", error)
        recovered.set()
        await asyncio.sleep(interval_s)
