"""Roles as runs: each is recorded, watched and ended like everything else that executes.

They take no slot. Whoever asks may be an agent that holds one, and its question would wait for it; how many
roles work at once in this process is bounded by the workers instead.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from retinue.core import (
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
from retinue.research.perform import InThread, RoleWork
from retinue.runtime import PreparedRun, Supervisor

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
            return await told(outcome, ctx, failed[0] if failed else None)

        spec = role_spec(role, self.task, RunLimits(), self.parent, caller="research")
        try:
            performed = await self.supervisor.perform(PreparedRun(spec, Performing(perform), self.cwd))
        except RetinueError as error:  # the request has been canceled meanwhile, or the store is gone
            moment = round(time.time() * 1000)
            cause = RoleError(error.code, error.message)
            return RoleOutcome(status="error", error=cause, started_at=moment, elapsed_ms=0)
        return done[0] if done else _without_result(performed.run)


async def told(outcome: RoleOutcome, ctx: RunContext, failure: RetinueError | None = None) -> Outcome:
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
