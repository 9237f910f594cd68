"""Lets this process's runs in when there is a slot, and makes them stop when they must.

The store decides whose turn it is, over all processes. Here each waiting or working run of this process
has a `PoolSlot`, kept up to date from the store: the turn has come, the deadline has moved, somebody wants it
canceled. Knows nothing of what a run does with its slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from retinue.core import Canceled, DeadlineExceeded, Ending, OwnerId, Run, RunId, RunSpec, RunStatus, Stopped
from retinue.runtime.changes import POLL_S, Changes
from retinue.store import Capacity, QueueStanding, Store, interrupt_owner

WORKING_POLL_S = 0.1
"""How often to look, for runs that work, whether another process wants them canceled. A process that is
woken for nothing takes a quarter of a millisecond over it."""

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

    def update(self, standing: QueueStanding, now: float) -> None:
        """Take over what the store says: may it work, until when, must it stop."""
        self.queueing = standing.queueing
        if standing.holds_slot:
            self.given.set()
        if self._scope.expired():
            return
        if self.ended or (standing.status.ended and self.given.is_set()):
            self._stop_in(None)  # its own work has just said so, and may still be tidying up
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
    """`async with Pool(...) as pool`: what is still active when the block ends is interrupted."""

    def __init__(self, store: Store, changes: Changes, owner: OwnerId, capacity: Capacity) -> None:
        self._store = store
        self._changes = changes
        self._owner = owner
        self._capacity = capacity
        self._slots: dict[RunId, PoolSlot] = {}
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as scope:
            scope.callback(interrupt_owner, self._store, self._owner, _SERVER_STOPPED)
            self._watch = scope.enter_context(self._changes.watch(poll_s=None))
            group = await scope.enter_async_context(asyncio.TaskGroup())
            scope.callback(group.create_task(self._follow_the_store()).cancel)
            self._scope = scope.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)

    def submit(self, spec: RunSpec) -> Run:
        """Record a run, queued; `Saturated` when the queue is full. `slot` must follow."""
        return self._store.runs.record(spec, self._owner, self._capacity)

    def adopt(self, run_id: RunId) -> bool:
        """Take over a run that is parked; `slot` must follow. False when somebody was quicker."""
        return self._store.runs.adopt(run_id, self._owner)

    @asynccontextmanager
    async def slot(self, run_id: RunId) -> AsyncGenerator[PoolSlot]:
        """Wait for the run's turn; within the block it is running.

        A deadline or a cancel ends the wait, or the block, as `DeadlineExceeded` or `Canceled`. A run that
        never left the queue is ended here. The ending of any other is for the caller to record, with
        `finish`, best within the block: after the block it has no slot any more.
        """
        scope = asyncio.timeout(None)
        slot = PoolSlot(run_id, scope)
        try:
            async with scope:
                self._slots[run_id] = slot
                await self._turn_of(slot)
                yield slot
        except TimeoutError:
            if reason := slot.stopped:
                raise reason from None
            raise
        finally:
            self._leave(slot)

    def finish(self, run_id: RunId, outcome: Ending) -> bool:
        """End the run and pass its slot on, in one write. False when somebody else ended it first."""
        with self._store.database.write():
            won = self._store.runs.finish(run_id, outcome)
            next_ones = self._next_ones()
        self._let_in(next_ones)
        if slot := self._slots.get(run_id):
            slot.ended = True
        return won

    @asynccontextmanager
    async def lent(self, run_id: RunId) -> AsyncGenerator[None]:
        """Let others have the run's slot while the block waits for something, a child run for example.

        Without this a parent could hold the very slot that its child waits for.
        """
        slot = self._slots[run_id]
        if not self._store.queue.lend(run_id):
            yield  # a run that coordinates has no slot to lend
            return
        slot.given.clear()
        ending = False
        try:
            yield
        except asyncio.CancelledError:
            ending = True
            raise
        finally:
            if not ending:
                self._store.queue.reclaim(run_id)
                await self._turn_of(slot)

    async def _turn_of(self, slot: PoolSlot) -> None:
        standing = self._store.queue.standing(slot.run_id)
        if standing.status is RunStatus.QUEUED and not standing.queueing:
            self._store.runs.start(slot.run_id)
            slot.give()
        slot.update(standing, self._store.database.clock())
        self._let_in(self._next_ones())
        self._choose_pace()
        await slot.given.wait()

    def _leave(self, slot: PoolSlot) -> None:
        """Neither a place in the queue nor a slot outlives the block."""
        self._slots.pop(slot.run_id, None)
        self._choose_pace()
        if slot.ended:
            return
        standing = self._store.queue.standing(slot.run_id)
        if standing.status is RunStatus.QUEUED and not standing.resumable:
            self._store.runs.finish(slot.run_id, _not_started(slot.stopped))
        elif standing.queueing or standing.holds_slot:
            self._store.queue.lend(slot.run_id)

    async def _follow_the_store(self) -> None:
        while True:
            for run_id in await self._watch.next():
                if slot := self._slots.get(run_id):
                    slot.update(self._store.queue.standing(run_id), self._store.database.clock())
            self._let_in(self._next_ones())
            self._choose_pace()

    def _next_ones(self) -> list[RunId]:
        return self._store.queue.admit(self._owner, self._capacity, self._slots)

    def _let_in(self, run_ids: Iterable[RunId]) -> None:
        for run_id in run_ids:
            self._slots[run_id].give()  # the rest of the news, a deadline perhaps, follows

    def _choose_pace(self) -> None:
        """How closely to follow other processes: those that queue want to know at once."""
        queueing = any(slot.queueing for slot in self._slots.values())
        self._watch.poll_every(POLL_S if queueing else WORKING_POLL_S if self._slots else None)


def _not_started(reason: Stopped | None) -> Ending:
    """How a run ends that never left the queue; without a reason of its own the server stopped."""
    if reason is None:
        return _SERVER_STOPPED
    status = RunStatus.TIMEOUT if isinstance(reason, DeadlineExceeded) else RunStatus.CANCELED
    return Ending(status=status, error=reason.as_json())
