"""Coding CLIs as executors, against programs that behave like them: well, badly, and not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import anyio
import pytest

from retinue.core import (
    Budget,
    ConfigInvalid,
    DeadlineExceeded,
    LimitExceeded,
    McpServer,
    Permissions,
    ProgramFailed,
    Unavailable,
)
from retinue.executors import ClaudeCli, CliExecutor, CodexCli
from retinue.executors.cli.codex import to_toml
from tests.executors.cli.test_cli_events import RECORDINGS
from tests.executors.cli_fakes import TASK, Stage, worker

pytestmark = pytest.mark.anyio

PLAY = """
import json, os, sys
talks = "--input-format" in sys.argv
prompt = json.loads(sys.stdin.readline())["message"]["content"] if talks else sys.stdin.read()
shown = {{"argv": sys.argv[1:], "env": dict(os.environ), "prompt": prompt}}
if "--mcp-config" in sys.argv:
    place = sys.argv[sys.argv.index("--mcp-config") + 1]
    shown["mcp"] = open(place).read() if place.startswith("/proc") else place
key = os.environ.get("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR")
if key:
    shown["key"] = os.read(int(key), 1000).decode()
json.dump(shown, open("shown.json", "w"))
for line in open({recording!r}):
    print(line, end="", flush=True)
sys.stdin.read()
sys.exit({code})
"""
"""Shows what it was given, says what a real CLI once said, and ends when nothing more can come."""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def plays(stage: Stage, cli: str, recording: str, code: int = 0) -> None:
    stage.program(cli, PLAY.format(recording=str(RECORDINGS / f"{recording}.jsonl"), code=code))


def shown(stage: Stage) -> dict[str, object]:
    return json.loads((stage.workspace / "shown.json").read_text(encoding="utf-8"))


def claude(stage: Stage, **more: object) -> CliExecutor:
    return CliExecutor(ClaudeCli(), worker("claude", **more), stage.launcher())


async def test_prompt_goes_to_stdin_and_the_outcome_tells_what_happened_P8(stage: Stage) -> None:
    plays(stage, "claude", "claude-tool")
    outcome = await claude(stage, prompt="You are W.").run(TASK, stage.context())
    given = shown(stage)
    assert given["prompt"] == TASK.prompt
    assert TASK.prompt not in str(given["argv"])
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", 0)
    assert (outcome.facts["model"], outcome.facts["isolation"]) == ("claude-opus-5-5", "none")
    assert "no sandbox" in str(outcome.notes)
    assert (outcome.usage["steps"], outcome.usage["tokens"]) == (2, 36)


@pytest.mark.parametrize(
    "taken_away",
    [{"denied_tools": ("ask_parent",)}, {"permissions": Permissions(deny=("ask_parent",))}],
    ids=str,
)
async def test_agent_on_claude_that_may_not_ask_has_no_tool_for_it_P7(
    stage: Stage, taken_away: dict[str, object]
) -> None:
    plays(stage, "claude", "claude-tool")
    await claude(stage, **taken_away).run(TASK, stage.context())
    given = cast("list[str]", shown(stage)["argv"])
    assert "AskUserQuestion" in given[given.index("--disallowedTools") + 1].split(",")


async def test_cli_that_stays_after_its_result_is_ended_and_its_answer_kept_P2(
    stage: Stage,
) -> None:
    """Claude stays while one of its commands runs in the background."""
    recording = str(RECORDINGS / "claude-tool.jsonl")
    stay = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    stage.program("claude", f"print(open({recording!r}).read(), end='', flush=True); {stay}")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), linger_s=0.2)
    outcome = await executor.run(TASK, stage.context())
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", None)
    assert any("claude did not exit after its result" in note for note in outcome.notes)
    assert outcome.survivors == ()


async def test_cli_that_is_merely_silent_goes_on(stage: Stage) -> None:
    recording = str(RECORDINGS / "claude-tool.jsonl")
    stage.program("claude", f"import time; time.sleep(0.5); print(open({recording!r}).read(), end='')")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), linger_s=0.05)
    outcome = await executor.run(TASK, stage.context())
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", 0)


async def test_folder_of_the_agent_that_is_not_there_is_told_P8(stage: Stage) -> None:
    plays(stage, "claude", "claude-tool")
    there = stage.folder / "there"
    there.mkdir()
    gone = str(stage.folder / "gone")
    outcome = await claude(stage, folders=(str(there), gone)).run(TASK, stage.context())
    assert outcome.notes[-1] == f"the agent's folder {gone} does not exist"
    assert str(there) not in str(outcome.notes)


@pytest.mark.skipif(sys.platform != "linux", reason="files in memory are handed on Linux alone")
async def test_secrets_are_in_no_argument_and_no_variable_of_claude_P6(stage: Stage) -> None:
    plays(stage, "claude", "claude-tool")
    stage.env |= {"ANTHROPIC_API_KEY": "sk-model-secret", "ECHO_KEY": "sk-server-secret"}
    server = McpServer(name="echo", argv=("echo-server",), env={"ECHO_KEY": "${ECHO_KEY}"})
    await claude(stage, mcp_servers=(server,)).run(TASK, stage.context())
    given = shown(stage)
    assert "sk-server-secret" in str(given["mcp"])
    assert given["key"] == "sk-model-secret"
    assert "-secret" not in f"{given['argv']}{given['env']}"
    assert set(stage.hidden) == {"sk-model-secret", "sk-server-secret"}
    state = [file.read_text("utf-8", "replace") for file in stage.folder.rglob("*") if file.is_file()]
    assert not [text for text in state if "sk-server-secret" in text and '"argv"' not in text]


async def test_codex_gets_secrets_of_its_servers_by_name_alone_P6(stage: Stage) -> None:
    plays(stage, "codex", "codex-tool")
    stage.env |= {"ECHO_KEY": "sk-server-secret"}
    server = McpServer(name="echo", argv=("echo-server",), env={"ECHO_KEY": "${ECHO_KEY}", "PLAIN": "1"})
    agent = worker("codex", mcp_servers=(server,), permissions=Permissions(allow=("mcp__echo",)))
    outcome = await CliExecutor(CodexCli(), agent, stage.launcher()).run(TASK, stage.context())
    assert outcome.error is None
    arguments = str(shown(stage)["argv"])
    assert "sk-server-secret" not in arguments
    assert '"env_vars" = ["ECHO_KEY"]' in arguments


async def test_exit_code_of_zero_without_the_last_event_is_a_failure_P8(stage: Stage) -> None:
    stage.program(
        "claude", 'print(\'{"type": "system", "subtype": "init"}\'); import sys; sys.stderr.write("oh")'
    )
    outcome = await claude(stage).run(TASK, stage.context())
    assert isinstance(outcome.error, ProgramFailed)
    assert "without a result" in outcome.error.message
    assert outcome.error.message.endswith("oh")


async def test_exit_code_of_failure_after_the_last_event_is_a_failure(stage: Stage) -> None:
    plays(stage, "claude", "claude-tool", code=3)
    outcome = await claude(stage).run(TASK, stage.context())
    assert isinstance(outcome.error, ProgramFailed)
    assert outcome.exit_code == 3


async def test_cli_that_hangs_is_ended_at_its_deadline(stage: Stage) -> None:
    stage.program("claude", "import time; time.sleep(1000)")
    outcome = await claude(stage).run(TASK, stage.context(seconds=0.5))
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.survivors == ()


async def test_canceled_cli_is_gone_with_its_daemons_P5(stage: Stage) -> None:
    stage.program(
        "claude",
        "import os, subprocess, time\n"
        "subprocess.Popen(['setsid', 'sleep', '1000'], start_new_session=True)\n"
        "print('ready', flush=True)\ntime.sleep(1000)",
    )
    with anyio.CancelScope() as scope:
        stage.on_line = lambda line: scope.cancel()
        await claude(stage).run(TASK, stage.context())
    assert stage.lines == ["ready"]  # and `nothing_is_left` sees the rest


async def test_missing_cli_says_what_to_install(stage: Stage) -> None:
    stage.env["PATH"] = "/nonexistent"
    with pytest.raises(Unavailable, match="claude cannot start"):
        await CliExecutor(ClaudeCli(), worker("claude"), stage.launcher()).run(TASK, stage.context())


async def test_endless_event_ends_the_run_P2(stage: Stage) -> None:
    stage.program("claude", "print('x' * 5000, flush=True); import time; time.sleep(1000)")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), max_event_bytes=1_000)
    outcome = await executor.run(TASK, stage.context())
    assert isinstance(outcome.error, LimitExceeded)
    assert (outcome.error.kind, outcome.error.limit) == ("event_bytes", 1_000)


async def test_settings_of_the_user_are_left_alone_unless_the_agent_wants_them_P1(stage: Stage) -> None:
    plays(stage, "claude", "claude-tool")
    await claude(stage).run(TASK, stage.context())
    own = shown(stage)
    await claude(stage, settings=("user",)).run(TASK, stage.context())
    users = shown(stage)
    assert "CLAUDE_CONFIG_DIR" in str(own["env"])
    assert "CLAUDE_CONFIG_DIR" not in str(users["env"])
    assert "'--setting-sources', 'user'" in str(users["argv"])


async def test_users_login_is_linked_into_the_agents_own_state(stage: Stage) -> None:
    plays(stage, "claude", "claude-tool")
    login = stage.folder / "home" / ".claude" / ".credentials.json"
    login.parent.mkdir()
    login.write_text("{}", encoding="utf-8")
    await claude(stage).run(TASK, stage.context())
    link = stage.folder / "state" / "claude" / "worker" / ".credentials.json"
    assert link.readlink() == login


@pytest.mark.parametrize(
    ("cli", "more", "message"),
    [
        ("codex", {"budget": Budget(cost_micros=5)}, "a cost limit cannot be enforced"),
        ("codex", {"permissions": Permissions(allow=("Bash(curl:*)",))}, "cannot be enforced"),
        ("codex", {"permissions": Permissions(deny=("mcp__a__b",))}, "cannot be enforced"),
        ("codex", {"permissions": Permissions(mode="plan")}, "no permission modes"),
    ],
)
async def test_what_a_cli_cannot_hold_is_refused_P7(
    stage: Stage, cli: str, more: dict[str, object], message: str
) -> None:
    plays(stage, cli, "codex-tool")
    with pytest.raises(ConfigInvalid, match=message):
        await CliExecutor(CodexCli(), worker(cli, **more), stage.launcher()).run(TASK, stage.context())


def test_toml_is_what_codex_reads() -> None:
    import tomllib

    value = {"a.b": {"list": ["x", 'quote " and \\ and é'], "yes": True, "number": 7}}
    assert tomllib.loads(f"value = {to_toml(value)}")["value"] == value
