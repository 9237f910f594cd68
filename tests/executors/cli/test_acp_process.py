"""Runs of agents that speak ACP, played by one on the protocol's own library."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from retinue.core import (
    Budget,
    DeadlineExceeded,
    JsonObject,
    LimitExceeded,
    McpServer,
    ModelFailed,
    Outcome,
    Permit,
    ProgramFailed,
    Resumed,
    Task,
    ToolRequest,
    Verdict,
    deny_all,
)
from retinue.executors import AcpExecutor, AcpProgram
from retinue.executors.cli.acp import AcpConnection
from retinue.executors.cli.opencode import OpencodeCli
from retinue.executors.wrappers.session import is_session_lost
from tests.executors.cli_fakes import ACP_AGENT, Stage, worker

pytestmark = pytest.mark.anyio

COMMAND = (sys.executable, str(ACP_AGENT))


async def run(
    stage: Stage,
    task: str,
    *,
    permit: Permit = deny_all,
    seconds: float | None = None,
    **more: Any,
) -> Outcome:
    agent = worker("acp", command=COMMAND, **more)
    context = stage.context(seconds=seconds, permit=permit)
    return await AcpExecutor(AcpProgram(), agent, stage.launcher()).run(Task("worker", task), context)


async def test_answer_comes_back_with_the_session(stage: Stage) -> None:
    outcome = await run(stage, "say hello", prompt="You are W.")
    assert (outcome.error, outcome.output) == (None, "hello")
    assert outcome.facts["session_id"] == "session-1"
    assert outcome.usage["steps"] == 1
    assert stage.lines == ["acp: hello"]


class LateProgram(AcpProgram):
    traits = replace(AcpProgram.traits, replays_late=True)


async def test_replay_of_a_loaded_session_is_not_part_of_the_run(stage: Stage) -> None:
    """Neither its answers, however late they come, nor its steps count."""
    agent = worker("acp", command=COMMAND, budget=Budget(steps=2))
    context = replace(stage.context(), resume=Resumed("session-7"))
    executor = AcpExecutor(LateProgram(), agent, stage.launcher())
    outcome = await executor.run(Task("worker", "say the new answer"), context)
    assert (outcome.error, outcome.output) == (None, "the new answer")
    assert outcome.usage["steps"] == 1
    assert stage.lines == ["acp: the new answer"]


async def test_session_that_cannot_be_loaded_is_lost(stage: Stage) -> None:
    context = replace(stage.context(), resume=Resumed("lost"))
    executor = AcpExecutor(AcpProgram(), worker("acp", command=COMMAND), stage.launcher())
    assert is_session_lost(await executor.run(Task("worker", "say hello"), context))


@pytest.mark.parametrize(("allowed", "chosen"), [(True, "once"), (False, "no")])
async def test_permission_is_decided_by_us_for_one_call_P7(stage: Stage, allowed: bool, chosen: str) -> None:
    asked: list[ToolRequest] = []

    async def permit(wanted: ToolRequest) -> Verdict:
        asked.append(wanted)
        return Verdict(allowed, "because")

    outcome = await run(stage, "ask touch x", permit=permit)
    assert outcome.output == f"chosen {chosen}"
    assert asked == [ToolRequest("Bash", "touch x")]
    assert outcome.facts.get("denials", []) == ([] if allowed else ["Bash(touch x)"])


async def test_command_that_may_read_a_secret_file_is_denied_and_nobody_is_asked_P6(stage: Stage) -> None:
    (stage.workspace / ".env").write_text("KEY=1")

    async def permit(wanted: ToolRequest) -> Verdict:
        return Verdict(True, "everything else")

    outcome = await run(stage, "ask cat ./.env", permit=permit)
    assert (outcome.output, outcome.facts["denials"]) == ("chosen no", ["Bash(cat ./.env)"])
    assert any("can read secret files" in note for note in outcome.notes), "with its own tools"
    assert (await run(stage, "ask cat a.txt", permit=permit)).output == "chosen once"


@pytest.mark.parametrize("is_repository", [True, False])
async def test_settings_of_opencode_hide_secret_files_P6(stage: Stage, is_repository: bool) -> None:
    (stage.workspace / ".env").write_text("KEY=1")
    if is_repository:
        subprocess.run(["git", "init", "--quiet"], cwd=stage.workspace, check=True)  # noqa: ASYNC221
    stage.program("opencode", "")
    launcher, agent = stage.launcher(), worker("opencode")
    secrets = await launcher.find_secrets(agent, stage.context())
    with launcher.prepare(OpencodeCli(), agent, stage.context(), secrets) as prepared:
        config = json.loads(prepared.program.env["OPENCODE_CONFIG_CONTENT"])
        reading = config["agent"]["retinue"]["permission"]["read"]
        ignored = Path(prepared.program.env["XDG_CONFIG_HOME"]) / "git" / "ignore"
        assert ignored.exists() is is_repository
        assert not is_repository or ignored.read_text() == ".env\n"
    assert (next(iter(reading)), reading["*"]) == ("*", "allow"), "the last rule that matches counts"
    assert reading[".env"] == reading[str(stage.workspace / ".env")] == "deny"
    assert any("can read secret files" in note for note in prepared.notes) is not is_repository


async def test_servers_get_their_secrets_through_stdin_P6(stage: Stage) -> None:
    stage.env["ECHO_KEY"] = "sk-server-secret"
    local = McpServer(name="echo", argv=("echo-server", "-x"), env={"ECHO_KEY": "${ECHO_KEY}"})
    remote = McpServer(name="far", url="http://127.0.0.1:1/mcp", headers={"X-Key": "${ECHO_KEY}"})
    outcome = await run(stage, "servers", mcp_servers=(local, remote))
    [echo, far] = json.loads(outcome.output)
    assert echo["args"][-2:] == ["echo-server", "-x"]
    assert echo["env"] == [{"field_meta": None, "name": "ECHO_KEY", "value": "sk-server-secret"}]
    assert far["headers"][0]["value"] == "sk-server-secret"
    assert stage.hidden == ["sk-server-secret"]


async def test_error_of_the_agent_is_an_error_of_the_run_P8(stage: Stage) -> None:
    outcome = await run(stage, "fail")
    assert isinstance(outcome.error, ModelFailed)
    assert outcome.error.message == "acp failed: the model is out come back tomorrow"


async def test_early_exit_is_an_error_with_the_last_line_of_stderr_P8(stage: Stage) -> None:
    outcome = await run(stage, "leave")
    assert isinstance(outcome.error, ProgramFailed)
    assert outcome.exit_code == 7
    assert "I have had enough" in outcome.error.message


async def test_limit_of_steps_ends_the_run_P2(stage: Stage) -> None:
    outcome = await run(stage, "loop", budget=Budget(steps=3))
    assert isinstance(outcome.error, LimitExceeded)
    assert outcome.error.kind == "steps"


async def test_deadline_ends_an_agent_that_hangs(stage: Stage) -> None:
    outcome = await run(stage, "hang", seconds=1.5)
    assert isinstance(outcome.error, DeadlineExceeded)


async def test_cancel_ends_the_agent_P5(stage: Stage) -> None:
    with anyio.CancelScope() as scope:
        stage.on_line = lambda line: scope.cancel()
        await run(stage, "hang")
    assert stage.lines == ["uses: hanging"]  # the fixture `nothing_is_left` checks the processes


async def test_program_that_does_not_speak_acp_is_an_error(stage: Stage) -> None:
    agent = worker("acp", command=("echo", "hello"))
    outcome = await AcpExecutor(AcpProgram(), agent, stage.launcher()).run(
        Task("worker", "x"), stage.context(seconds=20)
    )
    assert isinstance(outcome.error, ProgramFailed)
    assert "without a result" in outcome.error.message


async def test_request_after_the_end_gets_no_answer() -> None:
    """P7: nobody is asked for a permission that the run no longer needs."""
    asked: list[str] = []

    async def on_message(method: str, params: JsonObject) -> None:
        asked.append(method)

    unused = cast("asyncio.StreamWriter", None)
    connection = AcpConnection(unused, on_message, on_message)
    connection.end(ProgramFailed("the agent has exited"))
    await connection.take({"id": 1, "method": "session/request_permission"})
    await connection.take({"method": "session/update"})
    await asyncio.sleep(0)
    assert asked == ["session/update"]


async def test_receipt_has_the_files_commands_and_calls_of_the_agent_P8(stage: Stage) -> None:
    context = stage.context()
    executor = AcpExecutor(AcpProgram(), worker("acp", command=COMMAND), stage.launcher())
    await executor.run(Task("worker", "work"), context)
    activity = context.activity
    assert activity.tools == {"Read": 1, "Bash": 1, "Grep": 1}
    assert list(activity.files) == ["src/a.py"]
    assert activity.commands == [("make test", 2)]


async def test_denied_call_is_not_in_the_receipt_P8(stage: Stage) -> None:
    context = stage.context()
    executor = AcpExecutor(AcpProgram(), worker("acp", command=COMMAND), stage.launcher())
    await executor.run(Task("worker", "ask touch x"), context)
    assert context.activity.sees_calls
    assert not context.activity.tools
