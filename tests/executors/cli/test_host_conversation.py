"""An agent with `fork: true` continues a copy of the host's conversation, and nothing else does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retinue.core import HOST_SESSION_VARIABLE, Outcome, Resumed, RunContext, Task, Unavailable
from retinue.executors.cli.host_conversation import WithHostConversation, is_call
from tests.executors.cli_fakes import TASK, Stage

pytestmark = pytest.mark.anyio
SESSION = "26c630e6-027a-4ae2-bc34-ce30bd1ca5fa"
ASKED = Task(TASK.agent, "find the bug\n\nContext:\nin the parser")


class Reader:
    """An executor that reads the conversation which it is asked to continue."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self.resumed: Resumed | None = None
        self.lines: list[dict[str, Any]] = []
        self.file: Path | None = None

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.resumed = ctx.resume
        assert ctx.resume is not None
        [self.file] = self._state.glob(f"projects/*/{ctx.resume.session_id}.jsonl")
        self.lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        return Outcome("x")


def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": role, "sessionId": SESSION, "message": {"role": role, "content": [*parts]}}


def calls(**arguments: str) -> dict[str, Any]:
    return said("assistant", {"type": "tool_use", "name": "mcp__retinue__run_subagent", "input": arguments})


TALK = [
    said("user", {"type": "text", "text": "the parser is broken; find the bug"}),
    {"type": "cost-state", "sessionId": SESSION, "totalCostUSD": 3},
    said("assistant", {"type": "text", "text": "I give it to the twin"}),
]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def forking(
    stage: Stage, *lines: dict[str, Any], session: str = SESSION
) -> tuple[Reader, WithHostConversation]:
    folder = stage.folder / "home" / ".claude" / "projects" / "-project"
    folder.mkdir(parents=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (folder / f"{SESSION}.jsonl").write_text(text)
    environment = {"HOME": str(stage.folder / "home"), HOST_SESSION_VARIABLE: session}
    reader = Reader(stage.folder / "state")
    return reader, WithHostConversation(reader, environment, stage.folder / "state", wait_s=0)


async def test_run_continues_a_copy_up_to_the_call_that_started_it(stage: Stage) -> None:
    call = calls(agent_name="twin", prompt="find the bug", context="in the parser")
    reader, executor = forking(stage, *TALK, call, said("user", {"type": "tool_result", "content": "later"}))
    await executor.run(ASKED, stage.context())
    assert reader.resumed is not None
    assert reader.resumed.is_fork
    assert (reader.resumed.cost_micros, reader.resumed.tokens) == (0, 0)
    copy = reader.resumed.session_id
    assert copy != SESSION
    assert reader.lines == [line | {"sessionId": copy} for line in (TALK[0], TALK[2])]  # no costs of the host


async def test_copy_is_deleted_and_the_conversation_stays_as_it_is_P1(stage: Stage) -> None:
    reader, executor = forking(stage, *TALK, calls(prompt="find the bug"))
    [file] = stage.folder.glob("home/.claude/projects/*/*.jsonl")
    before = file.read_bytes()
    await executor.run(ASKED, stage.context())
    assert reader.file is not None
    assert not reader.file.exists()
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("lines", "session"),
    [
        (TALK, SESSION),  # the task is in the conversation, but nobody called with it
        ([*TALK, calls(prompt="find")], SESSION),  # another task
        ([], SESSION),
        ([*TALK, calls(prompt="find the bug")], "11111111-027a-4ae2-bc34-ce30bd1ca5fa"),  # no such session
        ([*TALK, calls(prompt="find the bug")], "../../x"),
        ([*TALK, calls(prompt="find the bug")], ""),
    ],
)
async def test_conversation_without_the_call_is_not_taken_P7(
    stage: Stage, lines: list[dict[str, Any]], session: str
) -> None:
    """After `/clear`, the server still has the id of the old session."""
    _, executor = forking(stage, *lines, session=session)
    with pytest.raises(Unavailable) as error:
        await executor.run(ASKED, stage.context())
    assert "Claude Code" in (error.value.hint or "")


async def test_correction_goes_on_in_the_session_of_the_run(stage: Stage) -> None:
    reader, executor = forking(stage, *TALK)
    own = stage.folder / "state" / "projects" / "-project"
    own.mkdir(parents=True)
    (own / "own.jsonl").write_text("")
    await executor.run(ASKED, replace(stage.context(), resume=Resumed("own")))
    assert reader.resumed == Resumed("own")


@pytest.mark.parametrize(
    "line", [b"", b'"tool_use"', b'["tool_use"]', b'{"type":"assistant","message":"tool_use \\"tool_use\\""}']
)
def test_damaged_lines_are_no_calls(line: bytes) -> None:
    assert not is_call(line, "x")
