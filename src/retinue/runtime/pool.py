"""Gives slots to the runs of this process, and stops runs at a deadline or a cancel request.

The store decides whose turn it is, over all processes. Each waiting or working run of this process has a
`PoolSlot`, which follows the store: the run is admitted, its deadline moves, somebody cancels it. Knows
nothing of what a run does with its slot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import Self

from retinue.core import (
    Canceled,
    DeadlineExceeded,
    Ending,
    OwnerId,
    RetinueError,
    RunId,
    RunStatus,
    Stopped,
    Unavailable,
)
from retinue.runtime.changes import POLL_S, Changes
from retinue.store import Capacity, SchedulingState, SlotClaim, Store, interrupt_owner

log = logging.getLogger(__name__)

WORKING_POLL_S = 0.1
"""Seconds between two checks whether another process has canceled a working run. A check takes 0.25 ms."""
LAST_WRITES_TIMEOUT_S = 2.0
"""Maximum number of seconds that a stopping server waits for its last writes."""
MAX_SLEEP_S = 30.0
"""Maximum number of seconds between two looks at the clock while runs wait for their accounts."""
RETRY_S = 0.2
"""Seconds before a failed read of the store is retried."""

_SERVER_STOPPED = Ending(
    status=RunStatus.INTERRUPTED,
    error={"code": "interrupted", "message": "the server that performed the run stopped"},
)


class PoolSlot:
    """A run in the pool of this process: first queued, then working."""

    def __init__(self, run_id: RunId, scope: asyncio.Timeout) -> None:
        self.run_id = run_id
        self.queueing = True
        self.admitted = asyncio.Event()
        self.ended = False
        """Whether the run's end is recorded, or that it goes back to the queue."""
        self.not_before: float | None = None
        """When the run may start, if it waits for its account."""
        self._work_done = False
        self._canceled = False
        self._scope = scope

    @property
    def stopped(self) -> Stopped | None:
        """Why the work must end; None while it may continue."""
        if not self._scope.expired():
            return None
        if self._canceled:
            return Canceled("the run was canceled")
        where = "while it ran" if self.admitted.is_set() else "in the queue"
        return DeadlineExceeded(f"the deadline passed {where}")

    def admit(self) -> None:
        """Let the run start: it holds a slot now."""
        self.queueing = False
        self.not_before = None
        self.admitted.set()

    def ignore_stops(self) -> None:
        """Ignore deadlines and cancel requests from now on, because the work is done."""
        self._work_done = True
        if not self._scope.expired():
            self._stop_in(None)

    def update(self, state: SchedulingState, now: float) -> None:
        """Apply the state in the store: whether the run may work, until when, and whether it must stop."""
        self.queueing = state.queueing
        self.not_before = state.not_before
        if state.holds_slot or (state.status is RunStatus.RUNNING and not state.needs_slot):
            self.admitted.set()
        if self._scope.expired():
            return
        if self._work_done or self.ended or (state.status.ended and self.admitted.is_set()):
            self._stop_in(None)  # the work has just ended the run and may still be cleaning up
        elif state.status.ended or state.cancel_requested:
            self._canceled = True
            self._stop_in(0.0)
        elif state.status is RunStatus.WAITING or state.deadline_at is None:
            self._stop_in(None)
        else:
            self._stop_in(max(0.0, state.deadline_at - now))

    def _stop_in(self, seconds: float | None) -> None:
        now = asyncio.get_running_loop().time()
        self._scope.reschedule(None if seconds is None else now + seconds)


class Pool:
    """Admits the runs of this process within `async with Pool(...)`. The end of the block interrupts them."""

    def __init__(self, store: Store, changes: Changes, owner: OwnerId, capacity: Capacity) -> None:
        self._store = store
        self._changes = changes
        self.owner = owner
        self.capacity = capacity
        self._slots: dict[RunId, PoolSlot] = {}
        self._looked_at = 0.0
        """When the queue was read last. Resets after that are still to come."""
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
            async with asyncio.timeout(LAST_WRITES_TIMEOUT_S):
                await self._store.wait_posted()
        except TimeoutError:
            log.warning("the store is busy; the last writes may be lost")
        try:
            await self._store.write(interrupt_owner, self._store, self.owner, _SERVER_STOPPED)
        except RetinueError as error:
            log.warning("active runs could not be ended; the next server recovers them: %s", error.message)

    @asynccontextmanager
    async def slot(self, run_id: RunId) -> AsyncGenerator[PoolSlot]:
        """Wait for the run's turn. Inside the block the run is running.

        A deadline or a cancel request ends the wait, or the block, with `DeadlineExceeded` or `Canceled`. A
        run that never left the queue is ended here. The caller ends any other run with `finish_and_admit` of
        the store, preferably inside the block, while the run still has its slot, and calls `mark_ended`.
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

    @property
    def claim(self) -> SlotClaim:
        """The state that the store needs to give slots to the runs of this process."""
        return SlotClaim(self.owner, self.capacity, frozenset(self._slots))

    def start(self, admitted: Iterable[RunId]) -> None:
        """Let the runs work to which the store has given a slot."""
        for run_id in admitted:
            if slot := self._slots.get(run_id):
                slot.admit()

    def mark_ended(self, run_id: RunId) -> None:
        """Note that the end of a run is recorded: it has given back its slot."""
        if slot := self._slots.get(run_id):
            slot.ended = True

    async def _wait_for_turn(self, slot: PoolSlot) -> None:
        """Wait until the store has admitted the run."""
        while True:
            try:
                slot.update(self._store.queue.scheduling_state(slot.run_id), self._store.database.clock())
                break
            except Unavailable:
                await asyncio.sleep(RETRY_S)
        if not slot.admitted.is_set():
            self._watch.notify(())  # wakes the task that hands out free slots
        self._adjust_polling()
        await slot.admitted.wait()

    async def _leave(self, slot: PoolSlot) -> None:
        """Give up the run's place in the queue, or its slot."""
        self._slots.pop(slot.run_id, None)
        self._adjust_polling()
        if slot.ended:
            return
        reason = slot.stopped

        def leave() -> None:
            state = self._store.queue.scheduling_state(slot.run_id)
            if reason is None and state.not_before is not None:
                return  # it waits for its account, with or without this process
            if state.status is RunStatus.QUEUED and not state.resumable:
                self._store.runs.finish(slot.run_id, _ending_in_queue(reason))
            elif state.queueing or state.holds_slot:
                self._store.queue.release_slot(slot.run_id)

        self._store.post(leave)

    async def _follow_the_store(self) -> None:
        """Update the slots when runs change, and admit runs when slots become free. Retries on failure."""
        while True:
            changed: Collection[RunId] = ()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds_to_next_reset()):
                    changed = await self._watch.next()
            self._looked_at = self._store.database.clock()
            try:
                for run_id in changed:
                    if slot := self._slots.get(run_id):
                        slot.update(self._store.queue.scheduling_state(run_id), self._store.database.clock())
                # Read without the lock first: usually no slot is free, or it belongs to another process.
                if self._store.queue.next_admissible(self.owner, self.capacity, self._slots):
                    waiting = frozenset(self._slots)
                    self.start(
                        await self._store.write(self._store.queue.admit, self.owner, self.capacity, waiting)
                    )
            except RetinueError as error:
                log.warning("the queue cannot be read: %s", error.message)
                await asyncio.sleep(RETRY_S)
                self._watch.notify(self._slots.keys())  # check all of them again
            self._adjust_polling()

    def _seconds_to_next_reset(self) -> float | None:
        """Seconds until a run that waits for its account may start; None if no run of this process waits.

        Looks at the clock now and then, because a machine may sleep or set its clock.
        """
        held = [slot.not_before for slot in self._slots.values() if slot.not_before is not None]
        waiting = [at - self._store.database.clock() for at in held if at > self._looked_at]
        return min(max(0.0, min(waiting)), MAX_SLEEP_S) if waiting else None

    def _adjust_polling(self) -> None:
        """Look for other processes' changes often while runs queue here, and rarely while runs only work."""
        now = self._store.database.clock()
        queueing = any(slot.queueing and (slot.not_before or 0.0) <= now for slot in self._slots.values())
        self._watch.poll_every(POLL_S if queueing else WORKING_POLL_S if self._slots else None)


def _ending_in_queue(reason: Stopped | None) -> Ending:
    """How a run ends that never left the queue. Without a reason, the server stopped."""
    if reason is None:
        return _SERVER_STOPPED
    status = RunStatus.TIMEOUT if isinstance(reason, DeadlineExceeded) else RunStatus.CANCELED
    return Ending(status=status, error=reason.as_json())
