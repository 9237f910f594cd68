"""`retinue agent` with a local model and no configured root (P8, P10)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import anyio
import anyio.to_thread
import pytest

from retinue.core import Prompt
from tests.cli.terminal import terminal
from tests.conftest import RETINUE
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.py").write_text("def greet():\n    return 'good day'\n")
    return folder


@asynccontextmanager
async def model(*script: ScriptLine) -> AsyncGenerator[tuple[ScriptedModel, dict[str, str]]]:
    scripted = ScriptedModel(script)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"])) as url:
        yield scripted, {**os.environ, "RETINUE_MODELS__ENDPOINT": url}


async def run(folder: Path, environment: dict[str, str], *arguments: str) -> CompletedProcess[bytes]:
    return await anyio.run_process([*RETINUE, *arguments], cwd=folder, env=environment, check=False)


def look_at_agent(environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of an agent on a terminal, and all that the terminal shows."""
    with terminal([*RETINUE, "agent", "reader", "what does hello.py do?"], environment) as person:
        return person.exit_code(), person.shown


async def test_agent_reads_files_in_the_current_folder(project: Path) -> None:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", "description: reads\ntools: [Read]")
    said = "It says `good day`."
    async with model(calls("read_file", path="hello.py"), said) as (scripted, environment):
        done = await run(project, environment, "agent", "reader", "what does hello.py do?")
    assert (done.returncode, done.stdout.decode()) == (0, f"{said}\n"), done.stderr
    assert "good day" in scripted.prompts[1].turns[-1].text


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
@pytest.mark.parametrize(
    ("said", "schema"),
    [
        ("It says `good day`:\n\n    return 'good day'\n\nSee hello.py:2.", ""),
        ('{"words": ["good day"], "place": "See hello.py:2."}', "\noutput_schema: {type: object}"),
    ],
    ids=["text", "JSON"],
)
async def test_terminal_shows_the_answer_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, said: str, schema: str
) -> None:
    """Also if the log shows it in another form than the result."""
    write_agent(Path.home(), ".config/retinue/agents/reader.md", f"description: reads\ntools: [Read]{schema}")
    monkeypatch.chdir(project)
    async with model(calls("read_file", path="hello.py"), said) as (_, environment):
        code, shown = await anyio.to_thread.run_sync(look_at_agent, environment)
    assert code == 0, shown
    assert shown.count("See hello.py:2") == 1, shown
    assert "stdout:" not in shown, shown


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
async def test_terminal_does_not_repeat_the_log_of_a_failed_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_agent(
        Path.home(), ".config/retinue/agents/reader.md", "description: reads\ntools: [Read]\nsteps: 1"
    )
    monkeypatch.chdir(project)
    read = calls("read_file", path="hello.py")
    async with model(read, read, read) as (_, environment):
        code, shown = await anyio.to_thread.run_sync(look_at_agent, environment)
    assert code == 1, shown
    assert shown.count("step 1: asks") == 1, shown


async def test_workflow_tells_the_best_try_and_who_chose_it(project: Path) -> None:
    """P8"""
    header = "description: writes\nprofile: writer\nisolation: worktree\nsandbox: none"
    write_agent(Path.home(), ".config/retinue/agents/author.md", header)
    step = 'best_of: 2, agent: author, acceptance: ["grep -q evening hello.py"]'
    (project / "best.yaml").write_text(f"name: best\nsteps:\n  - {{{step}}}\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
        await anyio.run_process(["git", *identity, *arguments], cwd=project)
    greetings = iter(("evening", "night"))

    def work(prompt: Prompt) -> ScriptLine:
        if not any(turn.role == "tool" for turn in prompt.turns):
            return calls("edit_file", path="hello.py", old="day", new=next(greetings))
        return json.dumps({"decision": "PROCEED", "findings": {}, "context_summary": "greets at hello.py:2"})

    async with model(*[work] * 4) as (_, environment):
        done = await run(project, environment, "workflow", "run", "--file", "best.yaml", "greet later")
    shown = done.stdout.decode()
    assert done.returncode == 0, shown + done.stderr.decode()
    assert "best of 2 tries: author" in shown
    assert "chosen by the commands: no other try passed" in shown
    assert "an acceptance command failed: grep -q evening hello.py" in shown
