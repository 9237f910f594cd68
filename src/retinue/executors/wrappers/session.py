"""Resumes sessions: the next run of an agent in the same folder continues where the last one ended.

Only one run at a time uses a session. That run holds a file lock, which the operating system releases if the
process dies. If the CLI has lost the session, the run starts a new one and the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from retinue.core import (
    AcceptanceFailed,
    Executor,
    FileLock,
    Outcome,
    ProgramFailed,
    Resumed,
    RunContext,
    Task,
    as_text,
)
from retinue.store import SessionFile

LOCK_POLL_SECONDS = 0.05


class WithSession:
    """Wraps an executor: each run resumes the session of the last one."""

    def __init__(self, executor: Executor, folder: Path) -> None:
        """`folder` holds the agent's sessions."""
        self._executor = executor
        self._folder = folder

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        note = SessionFile.for_agent(self._folder, ctx.cwd)
        async with _locked(note.lock):
            before = note.read()
            outcome = await self._executor.run(task, replace(ctx, resume=before))
            if before is not None and is_session_lost(outcome):
                lost = f"the last session could not be resumed, so a new one began: {outcome.error}"
                before = None
                outcome = await self._executor.run(task, ctx)
                outcome = replace(outcome, notes=(lost, *outcome.notes))
            if session_id := as_text(outcome.facts.get("session_id")):
                note.write(add_to_session(session_id, before, outcome), task.agent, ctx.cwd)
            return outcome


def is_session_lost(outcome: Outcome) -> bool:
    """Return whether a resumed run failed before it called the model."""
    failed = isinstance(outcome.error, ProgramFailed) and not isinstance(outcome.error, AcceptanceFailed)
    return failed and not outcome.usage.get("steps")


def add_to_session(session_id: str, before: Resumed | None, outcome: Outcome) -> Resumed:
    """Return a session with a run's usage added, because some CLIs report the total of the session."""
    spent = before or Resumed(session_id)
    return Resumed(
        session_id,
        spent.cost_micros + outcome.usage.get("cost_micros", 0),
        spent.tokens + outcome.usage.get("tokens", 0),
    )


@asynccontextmanager
async def _locked(path: Path) -> AsyncGenerator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        while not lock.try_acquire():  # noqa: ASYNC110 (no event tells when another process releases it)
            await asyncio.sleep(LOCK_POLL_SECONDS)  # the run's deadline limits the wait
        yield
    finally:
        lock.close()
