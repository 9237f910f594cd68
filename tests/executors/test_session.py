"""The next run in the same folder resumes the session; one run at a time; a lost session is reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from retinue.core import Outcome, ProgramFailed, Resumed, RunContext, Task
from retinue.executors import WithSession
from tests.executors.cli_fakes import TASK, Stage

pytestmark = pytest.mark.anyio


class SessionRecorder:
    """An executor with sessions. Records what it was asked to resume and how many runs overlapped."""

    def __init__(self) -> None:
        self.resumed: list[Resumed | None] = []
        self.lost = False
        self.at_once = 0
        self.most = 0

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.resumed.append(ctx.resume)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.lowlevel.checkpoint()
        self.at_once -= 1
        if ctx.resume is not None and self.lost:
            return Outcome("", error=ProgramFailed("no such session"))
        session = ctx.resume.session_id if ctx.resume else f"s{len(self.resumed)}"
        return Outcome("x", usage={"steps": 1, "cost_micros": 5, "tokens": 7}, facts={"session_id": session})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_next_run_resumes_with_the_usage_so_far(stage: Stage) -> None:
    inner = SessionRecorder()
    for _ in range(3):
        await WithSession(inner, stage.folder / "sessions").run(TASK, stage.context())
    assert inner.resumed == [None, Resumed("s1", 5, 7), Resumed("s1", 10, 14)]


async def test_another_folder_has_another_session(stage: Stage) -> None:
    inner = SessionRecorder()
    elsewhere = replace(stage.context(), cwd=stage.folder)
    for context in (stage.context(), elsewhere):
        await WithSession(inner, stage.folder / "sessions").run(TASK, context)
    assert inner.resumed == [None, None]


async def test_lost_session_is_replaced_and_reported_P8(stage: Stage) -> None:
    inner = SessionRecorder()
    executor = WithSession(inner, stage.folder / "sessions")
    await executor.run(TASK, stage.context())
    inner.lost = True
    outcome = await executor.run(TASK, stage.context())
    assert outcome.error is None
    assert outcome.facts["session_id"] == "s3"
    assert "could not be resumed, so a new one began: no such session" in outcome.notes[0]


async def test_runs_of_one_session_wait_for_each_other(stage: Stage) -> None:
    inner = SessionRecorder()
    executor = WithSession(inner, stage.folder / "sessions")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(executor.run, TASK, stage.context())
    assert (inner.most, len(inner.resumed)) == (1, 3)


async def test_unreadable_session_file_starts_a_new_session(stage: Stage) -> None:
    inner = SessionRecorder()
    executor = WithSession(inner, stage.folder / "sessions")
    await executor.run(TASK, stage.context())
    [note] = (stage.folder / "sessions").glob("*.json")
    note.write_text("{", encoding="utf-8")
    await executor.run(TASK, stage.context())
    assert inner.resumed == [None, None]
