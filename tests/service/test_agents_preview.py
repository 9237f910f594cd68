"""What `agents show` previews is what starts (P8), without values of environment variables (P6)."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from retinue import wiring
from retinue.executors import find_bubblewrap
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio

AGENTS = ".config/retinue/agents"
RECORDING = """
import json, os, sys
sandbox = open("/proc/1/cmdline").read().split(chr(0))[:-1]
command = sandbox if "bwrap" in sandbox[0] else sys.argv
with open(os.environ["SHOW_IN"], "w") as file:
    json.dump({"command": command, "env": sorted(os.environ)}, file)
"""
"""Writes down how it was started; in a sandbox of ours, how the sandbox was."""
FAILED = "sys.exit(1)\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workspace"
    (tmp_path / "bin").mkdir()
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-the-key-of-the-model")
    monkeypatch.setenv("GEMINI_API_KEY", "sk-the-key-of-the-model")
    return folder


def program(workspace: Path, name: str) -> Path:
    file = workspace.parent / "bin" / name
    file.write_text(f"#!{sys.executable} -IS\n{RECORDING}{FAILED}", encoding="utf-8")
    file.chmod(0o755)
    return file


def agent(workspace: Path, header: str) -> None:
    lines = f"name: worker\ndescription: works\nenv:\n  SHOW_IN: {workspace}/shown.json\n{header}"
    write_agent(Path.home(), f"{AGENTS}/worker.md", lines, "You are the worker.")


async def told_and_started(workspace: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The preview and what the program really saw, with values that differ per run replaced."""
    loaded = wiring.read_settings({"roots": (str(workspace),)})
    service = wiring.build_service(loaded)
    told = service.agents.show("worker")
    async with wiring.running(loaded, service) as up:
        run = await up.runs.start("worker", "the task", person=True)
        await up.runs.finish(run.id, 30.0)
    started = json.loads((workspace / "shown.json").read_text(encoding="utf-8"))
    temporary = re.escape(tempfile.gettempdir())
    started["command"] = [
        re.sub(
            rf"{temporary}/retinue-run-\w+", "{run_folder}",
            re.sub(rf"{temporary}/retinue-\w+/s\b", "{socket}", word),
        ).replace(str(run.id), "{run_id}")
        for word in started["command"]
    ]  # fmt: skip
    return told, started


ECHO = "mcp_servers:\n  - name: echo\n    command: /bin/echo\n    env: {TOKEN: '${ANTHROPIC_API_KEY}'}\n"


@pytest.mark.parametrize("sandbox", ["none", "bwrap"])
@pytest.mark.parametrize("executor", ["claude", "codex", "gemini", "opencode", "acp"])
async def test_preview_of_a_coding_cli_shows_the_real_command_line_P8(
    workspace: Path, executor: str, sandbox: str
) -> None:
    if sandbox == "bwrap" and find_bubblewrap(os.environ) is None:
        pytest.skip("bubblewrap is not here, or may not make a sandbox")
    name = "my-agent" if executor == "acp" else executor
    file = program(workspace, name)
    more = "command: [my-agent, --quiet]\n" if executor == "acp" else "model: some-model\n"
    agent(workspace, f"executor: {executor}\nsandbox: {sandbox}\n{more}{ECHO}")
    told, started = await told_and_started(workspace)
    command = told["start"]["command"]
    assert str(file) in command
    assert command == started["command"]
    names = set(started["env"]) - {"PWD", "LC_CTYPE"}  # the sandbox and the interpreter add these
    assert set(told["start"]["env"]) - {"LC_CTYPE"} == names
    assert told["start"]["isolation"] == sandbox
    assert "sk-the-key" not in json.dumps(told)
    assert told["origins"]["executor"] == "~/.config/retinue/agents/worker.md:6"


async def test_preview_of_a_program_shows_the_real_command_line_P8(workspace: Path) -> None:
    file = program(workspace, "tool")
    agent(workspace, "command: [tool, --run, '{run_id}', --in, '{cwd}', '{prompt}']")
    told, started = await told_and_started(workspace)
    assert [str(file), *told["start"]["command"][1:]] == [*started["command"][:-1], "{prompt}"]
    assert started["command"][-1].endswith("the task")
    assert (told["start"]["task"], told["start"]["isolation"]) == ("as an argument", "none")
    assert {*told["start"]["env"], "LC_CTYPE", "PWD"} >= set(started["env"])


async def test_preview_of_a_container_shows_its_engine_and_all_options_P8(workspace: Path) -> None:
    file = program(workspace, "podman")
    agent(workspace, "executor: claude\ncontainer: an-image\nnetwork: false\n")
    told, started = await told_and_started(workspace)
    assert told["start"]["command"] == [str(file), *started["command"][1:]]
    assert told["start"]["isolation"] == "podman"
    assert told["start"]["command"][-1] != "an-image" and "an-image" in told["start"]["command"]


async def test_preview_shows_the_session_that_would_be_resumed(workspace: Path) -> None:
    program(workspace, "claude")
    agent(workspace, "executor: claude\nsandbox: none\nsession: true\n")
    loaded = wiring.read_settings({"roots": (str(workspace),)})
    known = wiring.build_service(loaded).agents
    assert "--resume" not in known.show("worker")["start"]["command"]
    folder = loaded.settings.data_dir / "clis" / "claude" / "worker.sessions"
    folder.mkdir(parents=True)
    from retinue.core import Resumed
    from retinue.store import SessionFile

    SessionFile.for_agent(folder, workspace).write(Resumed("the-session"), "worker", workspace)
    command = known.show("worker")["start"]["command"]
    assert command[command.index("--resume") + 1] == "the-session"


def shown(name: str = "worker") -> dict[str, Any]:
    return wiring.build_service(wiring.read_settings({})).agents.show(name)


def test_preview_shows_what_would_prevent_the_start(workspace: Path) -> None:
    agent(workspace, "executor: acp\ncommand: [no-such-program-anywhere]\n")
    assert "cannot start" in shown()["start"]["prevented"]
    write_agent(
        Path.home(), f"{AGENTS}/worker.md", "description: d\ncommand: cat\nenv: {KEY: '${NOT_SET_ANYWHERE}'}"
    )
    assert "NOT_SET_ANYWHERE" in shown()["start"]["prevented"]


def test_nothing_is_prepared_for_an_agent_of_an_untrusted_project_P1(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(workspace, "claude")
    write_agent(workspace, ".claude/agents/guest.md", "name: guest\ndescription: d")
    monkeypatch.chdir(workspace)
    told = shown("guest")
    assert "start" not in told
    assert "not trusted" in told["unavailable"]


def test_preview_of_a_local_agent_shows_its_model_and_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_MODELS__ENDPOINT", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("RETINUE_MODELS__MODEL", "tiny")
    start = shown("researcher")["start"]
    assert start["model"] == "tiny"
    assert start["task"] == "in requests to http://127.0.0.1:9/v1"
    assert "15 steps" in str(start["notes"])
