"""Lets this process's runs in when there is a slot, and makes them stop when they must.

The store decides whose turn it is, over all processes. Here each waiting or working run of this process
has a ticket, kept up to date from the store: a slot given, a deadline moved, a cancel asked for by
whomever. Knows nothing of what a run does with its slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from retinue.core.errors import Canceled, DeadlineExceeded, Stopped
from retinue.core.ids import OwnerId, RunId
from retinue.core.run import Outcome, Run, RunSpec, RunStatus
from retinue.runtime.changes import POLL_S, Changes, Watch
from retinue.store.queue import Capacity, Standing
from retinue.store.recovery import interrupt
from retinue.store.store import Store

WORKING_POLL_S = 0.05
"""How often to look, for runs that work, whether another process wants them canceled."""

_SERVER_STOPPED = Outcome(
    status=RunStatus.INTERRUPTED,
    error={"code": "interrupted", "message": "the server that performed the run stopped"},
)


class Ticket:
    """One run's place in the pool of this process."""

    def __init__(self, run_id: RunId, scope: asyncio.Timeout) -> None:
        self.run_id = run_id
        self.queueing = True
        self.admitted = asyncio.Event()
        self._canceled = False
        self._scope = scope

    def update(self, standing: Standing, now: float) -> None:
        """Take over what the store says: may it work, until when, must it stop."""
        self.queueing = standing.queueing
        if standing.holds_slot:
            self.admitted.set()
        if self._scope.expired():
            return
        if standing.status.ended and self.admitted.is_set():
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

    def why_stopped(self) -> Stopped | None:
        """None while it may go on."""
        if not self._scope.expired():
            return None
        if self._canceled:
            return Canceled("the run was canceled")
        where = "while it ran" if self.admitted.is_set() else "in the queue"
        return DeadlineExceeded(f"the deadline passed {where}")


class Pool:
    """`async with Pool(...) as pool`: what is still active when the block ends is interrupted."""

    def __init__(self, store: Store, changes: Changes, owner: OwnerId, capacity: Capacity) -> None:
        self._store = store
        self._changes = changes
        self._owner = owner
        self._capacity = capacity
        self._tickets: dict[RunId, Ticket] = {}
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as scope:
            scope.callback(interrupt, self._store, self._owner, _SERVER_STOPPED)
            watch = scope.enter_context(self._changes.watch(poll_s=None))
            group = await scope.enter_async_context(asyncio.TaskGroup())
            scope.callback(group.create_task(self._keep_tickets_true(watch)).cancel)
            self._scope = scope.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)

    def submit(self, spec: RunSpec) -> Run:
        """Record a run, queued; `Saturated` when the queue is full. `slot` must follow."""
        return self._store.runs.record(spec, self._owner, self._capacity)

    @asynccontextmanager
    async def slot(self, run_id: RunId) -> AsyncGenerator[Slot]:
        """Wait for the run's turn; within the block it is running.

        A deadline or a cancel ends the wait, or the block, as `DeadlineExceeded` or `Canceled`. A run
        that never left the queue is ended here; the ending of any other is recorded by the caller, best
        within the block: the slot is free when the block ends.
        """
        scope = asyncio.timeout(None)
        ticket = Ticket(run_id, scope)
        try:
            async with scope:
                self._tickets[run_id] = ticket
                await self._admission(ticket)
                yield Slot(ticket, self._store, self._admission)
        except TimeoutError:
            if reason := ticket.why_stopped():
                raise reason from None
            raise
        finally:
            self._leave(ticket)

    async def _admission(self, ticket: Ticket) -> None:
        standing = self._store.queue.standing(ticket.run_id)
        if standing.status is RunStatus.QUEUED and not standing.queueing:
            self._store.runs.start(ticket.run_id)
            ticket.admitted.set()
        self._update(ticket)
        self._admit()
        await ticket.admitted.wait()

    def _leave(self, ticket: Ticket) -> None:
        """Neither a place in the queue nor a slot outlives the block."""
        self._tickets.pop(ticket.run_id, None)
        standing = self._store.queue.standing(ticket.run_id)
        if standing.status is RunStatus.QUEUED:
            reason = ticket.why_stopped() or Canceled("the run was canceled before it started")
            status = RunStatus.TIMEOUT if isinstance(reason, DeadlineExceeded) else RunStatus.CANCELED
            error = {"code": reason.code, "message": reason.message}
            self._store.runs.finish(ticket.run_id, Outcome(status=status, error=error))
        elif standing.queueing or standing.holds_slot:
            self._store.queue.lend(ticket.run_id)

    async def _keep_tickets_true(self, watch: Watch) -> None:
        while True:
            queueing = any(ticket.queueing for ticket in self._tickets.values())
            watch.poll_every(POLL_S if queueing else WORKING_POLL_S if self._tickets else None)
            for run_id in await watch.next():
                if ticket := self._tickets.get(run_id):
                    self._update(ticket)
            self._admit()

    def _update(self, ticket: Ticket) -> None:
        ticket.update(self._store.queue.standing(ticket.run_id), self._store.database.clock())

    def _admit(self) -> None:
        while admitted := self._store.queue.admit(self._owner, self._capacity, self._tickets):
            for run_id in admitted:
                if ticket := self._tickets.get(run_id):
                    self._update(ticket)


class Slot:
    """The right to work, within `Pool.slot`."""

    def __init__(self, ticket: Ticket, store: Store, admission: Callable[[Ticket], Awaitable[None]]) -> None:
        self._ticket = ticket
        self._store = store
        self._admission = admission

    @property
    def stopped(self) -> Stopped | None:
        """Why the work must end, for a caller that handled the cancellation itself."""
        return self._ticket.why_stopped()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Let others have the slot while the block waits for something, a child run for example.

        Without this a parent could hold the very slot that its child waits for.
        """
        if not self._store.queue.lend(self._ticket.run_id):
            yield
            return
        self._ticket.admitted.clear()
        ending = False
        try:
            yield
        except asyncio.CancelledError:
            ending = True
            raise
        finally:
            if not ending:
                self._store.queue.reclaim(self._ticket.run_id)
                await self._admission(self._ticket)
