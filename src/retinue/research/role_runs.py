"""Roles as runs: each is recorded, watched and ended like everything else that executes.

They take no slot. Whoever asks may be an agent that holds one, and its question would wait for it; how many
roles work at once in this process is bounded by the workers instead."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import anyio
import anyio.to_thread

from retinue.core import (
    UNMETERED,
    Canceled,
    Charge,
    DeadlineExceeded,
    InternalError,
    Json,
    Outcome,
    OutputLine,
    RetinueError,
    RoleError,
    RoleOutcome,
    RoleResult,
    RoleStatus,
    Run,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Stop,
    Task,
)
from retinue.runtime import Supervisor, Work as RunWork, wait_shielded

# MERGED perform: How a role is performed: the port that the pipeline calls, and the plain way of a worker thread.
#
# What a model may add to a role's result later wraps this port: it sees an outcome whose evidence holds, and
# may order or explain it, never add to its references.

log = logging.getLogger(__name__)

RoleWork = Callable[[Stop, Charge], RoleResult]
"""A role at work. Synchronous; looks at its stop often, and books what it reads."""


class PerformRole(Protocol):
    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        """Perform a role within so many seconds. Never raises but when it is itself canceled."""
        ...


@dataclass(frozen=True, slots=True)
class InThread:
    """Each role in a worker thread. A cancel reaches the role through its stop, and is waited for."""

    workers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(math.inf))
    """How many may work at once; others wait, at most until their deadline."""
    charge: Charge = UNMETERED.charge

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        stop = Stop(seconds)
        admitted = False
        with anyio.move_on_after(seconds):
            await self.workers.acquire()
            admitted = True
        try:
            return await self._attempt(role, work, stop)  # which finds so if its time is over
        finally:
            if admitted:
                self.workers.release()

    async def _attempt(self, role: str, work: RoleWork, stop: Stop) -> RoleOutcome:
        thread = asyncio.ensure_future(
            anyio.to_thread.run_sync(partial(attempt, role, work, stop, self.charge))
        )
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            # Not left alone: no thread may go on reading for an answer that nobody waits for.
            stop.cancel()
            await wait_shielded(thread)
            raise


def attempt(role: str, work: RoleWork, stop: Stop, charge: Charge = UNMETERED.charge) -> RoleOutcome:
    """The role's outcome, whatever happens in it."""
    started = time.time()
    clock = time.monotonic()
    try:
        stop.check()
        value = work(stop, charge)
    except RetinueError as error:
        value, failure = None, error
    except Exception:
        # The one place that catches all: a fault in one role must leave the other roles' results standing.
        log.exception("role %s failed", role)
        value, failure = None, InternalError(f"the {role} failed for a reason of its own")
    else:
        failure = None
    return RoleOutcome(
        status=_status(failure),
        value=value,
        error=None if failure is None else RoleError(failure.code, failure.message),
        started_at=round(started * 1000),
        elapsed_ms=round((time.monotonic() - clock) * 1000),
    )


def _status(failure: RetinueError | None) -> RoleStatus:
    if failure is None:
        return "ok"
    if isinstance(failure, DeadlineExceeded):
        return "timeout"
    return "canceled" if isinstance(failure, Canceled) else "error"


EXECUTOR = "deterministic"
TOOLS = ("search", "list", "read")
"""What the roles have: no writing."""
STATUS: dict[RunStatus, RoleStatus] = {RunStatus.TIMEOUT: "timeout", RunStatus.CANCELED: "canceled"}


def role_spec(
    agent: str, task: str, limits: RunLimits, parent: RunId | None = None, caller: str = "host"
) -> RunSpec:
    return RunSpec(
        agent=agent,
        task=task,
        executor=EXECUTOR,
        caller=caller,
        parent=parent,
        tools=TOOLS,
        limits=limits,
        needs_slot=False,
    )


Do = Callable[[RunContext], Awaitable[Outcome]]


@dataclass(slots=True)
class Performing:
    """An executor for one run: does what it was made for, and keeps what went wrong for who waits here."""

    do: Do
    error: RetinueError | None = None

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        try:
            return await self.do(ctx)
        except RetinueError as error:
            self.error = error
            raise


@dataclass(frozen=True, slots=True)
class AsRuns:
    """Performs each role as a child of the request's run."""

    supervisor: Supervisor
    parent: RunId
    task: str
    cwd: Path
    threads: InThread = field(default_factory=InThread)

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        done: list[RoleOutcome] = []
        failed: list[RetinueError] = []

        def watched(stop: Stop, charge: Charge) -> RoleResult:
            try:
                return work(stop, charge)
            except RetinueError as error:
                failed.append(error)
                raise

        async def perform(ctx: RunContext) -> Outcome:
            outcome = await replace(self.threads, charge=ctx.spending.charge)(role, watched, seconds)
            done.append(outcome)
            return await outcome_of_role(outcome, ctx, failed[0] if failed else None)

        spec = role_spec(role, self.task, RunLimits(), self.parent, caller="research")
        try:
            run = await self.supervisor.perform(RunWork(spec, Performing(perform), self.cwd))
        except RetinueError as error:  # the request has been canceled meanwhile, or the store is gone
            moment = round(time.time() * 1000)
            cause = RoleError(error.code, error.message)
            return RoleOutcome(status="error", error=cause, started_at=moment, elapsed_ms=0)
        return done[0] if done else _without_result(run)


async def outcome_of_role(
    outcome: RoleOutcome, ctx: RunContext, failure: RetinueError | None = None
) -> Outcome:
    """A role's outcome as that of its run: its findings go to the log, the whole of it into the record."""
    if outcome.value is None:
        return Outcome("", error=role_error(outcome, failure))
    for line in (outcome.value.summary, *outcome.value.key_findings):
        await ctx.emit(OutputLine("stdout", line.split("\n", 1)[0]))
    return Outcome(outcome.value.summary, value=cast("Json", outcome.value.as_dict()))


def role_error(outcome: RoleOutcome, failure: RetinueError | None = None) -> RetinueError | None:
    """Why the run of a role did not succeed; `failure` if that is known more closely."""
    if outcome.error is None or failure is not None:
        return failure
    kinds: dict[RoleStatus, type[RetinueError]] = {"timeout": DeadlineExceeded, "canceled": Canceled}
    return kinds.get(outcome.status, InternalError)(outcome.error.message)


def _without_result(run: Run) -> RoleOutcome:
    """Of a run that was ended before its role could say anything."""
    match run.error:
        case {"code": str() as code, "message": str() as message}:
            error = RoleError(code, message)
        case _:
            error = RoleError("interrupted", "the run ended without a result")
    timing = run.timing
    began = timing.started_at or timing.enqueued_at
    return RoleOutcome(
        status=STATUS.get(run.status, "error"),
        error=error,
        started_at=round(began * 1000),
        elapsed_ms=round(((timing.ended_at or began) - began) * 1000),
    )
