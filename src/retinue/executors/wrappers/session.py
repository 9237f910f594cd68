"""Sessions: a later run of the same agent in the same folder goes on where the last one ended.

One run at a time: the lock is the operating system's, which frees it when its holder dies, however it dies.
A session that the CLI has lost begins anew, and the result says so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio

from retinue.core import AcceptanceFailed, Executor, Outcome, ProgramFailed, Resumed, RunContext, Task
from retinue.executors.lenient_fields import text
from retinue.store import FileLock, SessionFile

PAUSE_S = 0.05


class WithSession:
    """An executor whose runs resume the last one's session."""

    def __init__(self, executor: Executor, folder: Path) -> None:
        """`folder` is the agent's own."""
        self._executor = executor
        self._folder = folder

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        note = SessionFile.for_agent(self._folder, ctx.cwd)
        async with _held(note.lock):
            before = note.read()
            outcome = await self._executor.run(task, replace(ctx, resume=before))
            if before is not None and is_lost(outcome):
                lost = f"the last session could not be resumed, so a new one began: {outcome.error}"
                before = None
                outcome = await self._executor.run(task, ctx)
                outcome = replace(outcome, notes=(lost, *outcome.notes))
            _keep(note, outcome, before, task.agent, ctx.cwd)
            return outcome


@asynccontextmanager
async def _held(path: Path) -> AsyncGenerator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        while not lock.try_acquire():  # noqa: ASYNC110 (other processes set no event)
            await anyio.sleep(PAUSE_S)  # the run's own deadline ends the wait
        yield
    finally:
        lock.close()


def is_lost(outcome: Outcome) -> bool:
    """It failed before the model was asked anything."""
    failed = isinstance(outcome.error, ProgramFailed) and not isinstance(outcome.error, AcceptanceFailed)
    return failed and not outcome.usage.get("steps")


def _keep(note: SessionFile, outcome: Outcome, before: Resumed | None, agent: str, cwd: Path) -> None:
    """Totals too: some CLIs tell what the whole session has used."""
    session = text(outcome.facts.get("session_id"))
    if not session:
        return
    spent = before or Resumed(session)
    cost = spent.cost_micros + outcome.usage.get("cost_micros", 0)
    note.write(Resumed(session, cost, spent.tokens + outcome.usage.get("tokens", 0)), agent, cwd)
