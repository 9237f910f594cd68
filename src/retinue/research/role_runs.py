"""Performs a role in a worker thread, inside a run or without one.

A role is synchronous code that reads files. The run of a role takes no slot of the pool: the caller may be an
agent that holds the last slot, and its question would wait forever. Instead, the number of worker threads
limits how many roles work at the same time in this process.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, cast

import anyio

from retinue.core import (
    UNMETERED,
    Canceled,
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
    Spending,
    Stop,
    Task,
    run_in_thread,
)

log = logging.getLogger(__name__)

EXECUTOR = "deterministic"
TOOLS = ("search", "list", "read")
"""The tools of a role; none of them writes."""


class RoleWork(Protocol):
    """Performs one role."""

    def __call__(self, stop: Stop, /, spending: Spending) -> RoleResult:
        """Checks `stop` often, and reserves what it reads in `spending`."""
        ...


class PerformRole(Protocol):
    """The port through which the pipeline runs roles."""

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        """Perform a role within `seconds`. Raises only if the caller is canceled."""
        ...


@dataclass(frozen=True, slots=True)
class PerformInThread:
    """Performs each role in a worker thread. If canceled, it stops the role and waits for its thread."""

    workers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(math.inf))
    """Limits how many roles work at the same time; the others wait, at most until their deadline."""
    spending: Spending = UNMETERED

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        outcome = await self.perform(role, work, seconds)
        return outcome.result

    async def perform(self, role: str, work: RoleWork, seconds: float) -> Outcome:
        """Perform a role; `result` is its `RoleOutcome`, whatever the role raises."""
        began = time.monotonic()
        admitted = False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.workers.acquire()
                admitted = True
        left = max(0.0, seconds - (time.monotonic() - began))
        try:
            return await self._attempt(role, work, left)
        finally:
            if admitted:
                self.workers.release()

    async def _attempt(self, role: str, work: RoleWork, seconds: float) -> Outcome:
        began = time.monotonic()
        value: RoleResult | None = None
        error: RetinueError | None = None
        try:
            Stop(seconds).check()
            value = await run_in_thread(partial(work, spending=self.spending), seconds)
        except RetinueError as failure:
            error = failure
        except Exception:
            # A bug in one role must not destroy the results of the others.
            log.exception("role %s failed", role)
            error = InternalError(f"the {role} failed because of a bug in Retinue; see the log")
        return outcome_of_role(value, error, began)


def outcome_of_role(value: RoleResult | None, error: RetinueError | None, began: float) -> Outcome:
    """Return the outcome of a role's run; `result` is its `RoleOutcome`. A role has a value or an error.

    `began` is when the role began, in seconds of the monotonic clock.
    """
    elapsed = time.monotonic() - began
    result = RoleOutcome(
        status=_status(error),
        value=value,
        error=None if error is None else RoleError(error.code, error.message),
        started_at=round((time.time() - elapsed) * 1000),
        elapsed_ms=round(elapsed * 1000),
    )
    if value is None:
        return Outcome("", error=error, result=result)
    return Outcome(value.summary, value=cast("Json", value.as_dict()), result=result)


def _status(error: RetinueError | None) -> RoleStatus:
    match error:
        case None:
            return "ok"
        case DeadlineExceeded():
            return "timeout"
        case Canceled():
            return "canceled"
        case _:
            return "error"


@dataclass(frozen=True, slots=True)
class RoleRun:
    """The executor of a role's own run. Logs the findings and returns the whole result."""

    work: RoleWork
    seconds: float
    workers: anyio.CapacityLimiter

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        outcome = await PerformInThread(self.workers, ctx.spending).perform(
            task.agent, self.work, self.seconds
        )
        result: RoleResult | None = outcome.result.value
        if result is not None:
            for line in (result.summary, *result.key_findings):
                await ctx.emit(OutputLine("stdout", line.split("\n", 1)[0]))
        return outcome


def role_run_spec(
    agent: str, task: str, limits: RunLimits, parent: RunId | None = None, caller: str = "host"
) -> RunSpec:
    """Describe the run of a request or of one of its roles."""
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


def outcome_of_ended_run(run: Run) -> RoleOutcome:
    """Return the outcome of a role whose run was ended before the role returned one."""
    match run.error:
        case {"code": str() as code, "message": str() as message}:
            error = RoleError(code, message)
        case _:
            error = RoleError("interrupted", "the run ended without a result")
    statuses: dict[RunStatus, RoleStatus] = {RunStatus.TIMEOUT: "timeout", RunStatus.CANCELED: "canceled"}
    timing = run.timing
    began = timing.started_at or timing.enqueued_at
    return RoleOutcome(
        status=statuses.get(run.status, "error"),
        error=error,
        started_at=round(began * 1000),
        elapsed_ms=round(((timing.ended_at or began) - began) * 1000),
    )
