"""Gives this process's runs their slots, and stops them at a deadline or a cancel.

The store decides whose turn it is, over all processes. Here each waiting or working run of this process
has a `PoolSlot`, which follows the store: the run's turn has come, its deadline has moved, somebody wants it
canceled. Knows nothing of what a run does with its slot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar

from retinue.core import (
    Canceled,
    DeadlineExceeded,
    Ending,
    OwnerId,
    RetinueError,
    Run,
    RunId,
    RunSpec,
    RunStatus,
    Stopped,
    Unavailable,
)
from retinue.runtime.changes import POLL_S, Changes
from retinue.store import Capacity, QueueStanding, Store, interrupt_owner

T = TypeVar("T")

log = logging.getLogger(__name__)

WORKING_POLL_S = 0.1
"""How often to check whether another process wants a working run canceled. Each check takes a quarter of a
millisecond."""
POSTED_S = 2.0
"""Seconds that a stopping server waits for its last writes."""
RETRY_S = 0.2
"""Seconds until the store is asked again after it failed."""

_SERVER_STOPPED = Ending(
    status=RunStatus.INTERRUPTED,
    error={"code": "interrupted", "message": "the server that performed the run stopped"},
)


class PoolSlot:
    """One run's place in the pool of this process: first in the queue, then at work."""

    def __init__(self, run_id: RunId, scope: asyncio.Timeout) -> None:
        self.run_id = run_id
        self.queueing = True
        self.given = asyncio.Event()
        self.ended = False
        """Whether the run's end is recorded."""
        self._kept = False
        self._canceled = False
        self._scope = scope

    @property
    def stopped(self) -> Stopped | None:
        """Why the work must end; None while it may go on."""
        if not self._scope.expired():
            return None
        if self._canceled:
            return Canceled("the run was canceled")
        where = "while it ran" if self.given.is_set() else "in the queue"
        return DeadlineExceeded(f"the deadline passed {where}")

    def give(self) -> None:
        self.queueing = False
        self.given.set()

    def keep(self) -> None:
        """Neither a deadline nor a cancel ends the block any more: the work is done, and only its end is
        left to record."""
        self._kept = True
        if not self._scope.expired():
            self._stop_in(None)

    def update(self, standing: QueueStanding, now: float) -> None:
        """Follow the store: whether the run may work, until when, and whether it must stop."""
        self.queueing = standing.queueing
        if standing.holds_slot or (standing.status is RunStatus.RUNNING and not standing.needs_slot):
            self.given.set()
        if self._scope.expired():
            return
        if self._kept or self.ended or (standing.status.ended and self.given.is_set()):
            self._stop_in(None)  # the run's own work has just ended it, and may still be tidying up
        elif standing.status.ended or standing.cancel_requested:
            self._canceled = True
            self._stop_in(0.0)
        elif standing.status is RunStatus.WAITING or standing.deadline_at is None:
            self._stop_in(None)
        else:
            self._stop_in(max(0.0, standing.deadline_at - now))

    def _stop_in(self, seconds: float | None) -> None:
        now = asyncio.get_running_loop().time()
        self._scope.reschedule(None if seconds is None else now + seconds)


class Pool:
    """`async with Pool(...) as pool`: runs that are still active when the block ends are interrupted."""

    def __init__(self, store: Store, changes: Changes, owner: OwnerId, capacity: Capacity) -> None:
        self._store = store
        self._changes = changes
        self.owner = owner
        self.capacity = capacity
        self._slots: dict[RunId, PoolSlot] = {}
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as scope:
            scope.push_async_callback(self._interrupt_all)
            self._watch = scope.enter_context(self._changes.watch(poll_s=None))
            group = await scope.enter_async_context(asyncio.TaskGroup())
            scope.callback(group.create_task(self._follow_the_store()).cancel)
            self._scope = scope.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)

    async def _interrupt_all(self) -> None:
        """End or park this process's active runs. If the store fails, the next process recovers them."""
        try:
            async with asyncio.timeout(POSTED_S):
                await self._store.posted()
        except TimeoutError:
            log.warning("the store takes no writes; what waits is left to the next server")
        try:
            await self._store.write(interrupt_owner, self._store, self.owner, _SERVER_STOPPED)
        except RetinueError as error:
            log.warning("active runs are left to the next server: %s", error.message)

    @asynccontextmanager
    async def slot(self, run_id: RunId) -> AsyncGenerator[PoolSlot]:
        """Wait for the run's turn; inside the block the run is running.

        A deadline or a cancel ends the wait, or the block, with `DeadlineExceeded` or `Canceled`. A run that
        never left the queue is ended here. The caller records the ending of any other run with
        `write_and_admit`, best inside the block: after the block it has no slot any more.
        """
        scope = asyncio.timeout(None)
        slot = PoolSlot(run_id, scope)
        try:
            async with scope:
                self._slots[run_id] = slot
                await self._wait_for_turn(slot)
                yield slot
        except TimeoutError:
            if reason := slot.stopped:
                raise reason from None
            raise
        finally:
            await self._leave(slot)

    async def record(self, spec: RunSpec, also: Callable[[Run], T]) -> tuple[Run, T]:
        """Record a run and what `also` writes for it in one transaction, and start it if a slot is free.

        `slot` must follow. Raises `QueueFull` if the queue is full.
        """

        def write() -> tuple[tuple[Run, T], list[RunId]]:
            run = self._store.runs.record(spec, self.owner, self.capacity)
            written = run, also(run)
            return written, self._admit((*ready, run.id)) if spec.needs_slot else []

        ready = tuple(self._slots)
        return self._let_in(*await self._store.write(write))

    async def finish(self, run_id: RunId, finish: Callable[[], bool]) -> bool:
        """End a run and pass its slot on in one transaction, trying until the store takes it.

        False if somebody else ended the run first; that ending stands.
        """

        def write() -> tuple[bool, list[RunId]]:
            return finish(), self._admit(ready)

        ready = tuple(self._slots)
        won = self._let_in(*await self._store.persist(write))
        if slot := self._slots.get(run_id):
            slot.ended = True
        return won

    async def _wait_for_turn(self, slot: PoolSlot) -> None:
        while True:
            try:
                slot.update(self._store.queue.standing(slot.run_id), self._store.database.clock())
                break
            except Unavailable:
                await asyncio.sleep(RETRY_S)
        if not slot.given.is_set():
            self._watch.tell(())  # the task that follows the store gives out free slots
        self._choose_pace()
        await slot.given.wait()

    async def _leave(self, slot: PoolSlot) -> None:
        """Give up the run's place in the queue, or its slot."""
        self._slots.pop(slot.run_id, None)
        self._choose_pace()
        if slot.ended:
            return
        reason = slot.stopped

        def leave() -> None:
            standing = self._store.queue.standing(slot.run_id)
            if standing.status is RunStatus.QUEUED and not standing.resumable:
                self._store.runs.finish(slot.run_id, _not_started(reason))
            elif standing.queueing or standing.holds_slot:
                self._store.queue.lend(slot.run_id)

        self._store.post(leave)

    async def _follow_the_store(self) -> None:
        """Take over what changes in the store. A store that fails for a while is asked again."""
        while True:
            changed = await self._watch.next()
            try:
                for run_id in changed:
                    if slot := self._slots.get(run_id):
                        slot.update(self._store.queue.standing(run_id), self._store.database.clock())
                # A look without the lock: most wake-ups find no free slot, or find that it is another's turn.
                if self._store.queue.next_in_line(self.owner, self.capacity, self._slots):
                    self._let_in(None, await self._store.write(self._admit, tuple(self._slots)))
            except RetinueError as error:
                log.warning("the queue cannot be read: %s", error.message)
                await asyncio.sleep(RETRY_S)
                self._watch.tell(self._slots.keys())  # look again at all of them
            self._choose_pace()

    def _admit(self, ready: Iterable[RunId]) -> list[RunId]:
        return self._store.queue.admit(self.owner, self.capacity, frozenset(ready))

    def _let_in(self, result: T, admitted: Iterable[RunId]) -> T:
        """Start runs that were admitted. What else changed, a deadline perhaps, follows from the store."""
        for run_id in admitted:
            if slot := self._slots.get(run_id):
                slot.give()
        return result

    def _choose_pace(self) -> None:
        """Look at other processes' changes often while runs queue here, rarely while runs only work."""
        queueing = any(slot.queueing for slot in self._slots.values())
        self._watch.poll_every(POLL_S if queueing else WORKING_POLL_S if self._slots else None)


def _not_started(reason: Stopped | None) -> Ending:
    """How a run ends that never left the queue. Without another reason the server stopped."""
    if reason is None:
        return _SERVER_STOPPED
    status = RunStatus.TIMEOUT if isinstance(reason, DeadlineExceeded) else RunStatus.CANCELED
    return Ending(status=status, error=reason.as_json())
