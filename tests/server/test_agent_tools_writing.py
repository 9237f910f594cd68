"""Agents on a local model that write: in a worktree, as permitted, and their work comes back as a patch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from retinue.executors.local.local_tools import NOT_CONFINED
from retinue.executors.sandbox import find_bubblewrap
from retinue.server import build_server
from retinue.wiring import build_service, lifetime, read_settings
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls
from tests.server.conftest import call
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio

WRITER = "description: writes for you\nprofile: writer\nisolation: worktree\nsandbox: none"
CODE = "def add(a, b):\n    return a - b\n"
RUN = f"{sys.executable} --version"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    run = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text(CODE)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


@asynccontextmanager
async def host(
    project: Path, script: Iterable[ScriptLine], header: str = WRITER
) -> AsyncGenerator[tuple[Client, ScriptedModel]]:
    write_agent(Path.home(), ".config/retinue/agents/author.md", header)
    scripted = ScriptedModel(script)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"])) as url:
        loaded = read_settings({"roots": (str(project),), "models.endpoint": url})
        server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
        async with Client(server) as client:
            yield client, scripted


async def run(client: Client) -> dict[str, Any]:
    return await call(client, "run_subagent", agent_name="author", prompt="Correct add in calc.py.")


FIX = calls("edit_file", path="calc.py", old="a - b", new="a + b")


async def test_work_of_a_local_agent_comes_back_as_a_patch_without_a_question(project: Path) -> None:
    script = [
        calls("read_file", path="calc.py"),
        FIX,
        calls("read_file", path="calc.py"),
        "I corrected calc.py.",
    ]
    async with host(project, script) as (client, scripted):
        done = await run(client)
    assert done["status"] == "success", json.dumps(done)
    assert "questions" not in done
    assert "+    return a + b" in done["diff"]
    assert (project / "calc.py").read_text() == CODE
    assert git(project, "show", f"{done['branch']}:calc.py") == CODE.replace("-", "+")
    assert "return a + b" in scripted.prompts[-1].turns[-1].text  # the same call after an edit reads again


async def test_tools_that_write_are_refused_without_a_worktree_or_a_sandbox_P7(project: Path) -> None:
    script = [
        FIX,
        calls("bash", command="touch x"),
        calls("read_file", path="calc.py"),
        "calc.py:2 is wrong.",
    ]
    header = "description: d\ntools: [Read, Edit, Write, Bash]\nsandbox: none"
    async with host(project, script, header) as (client, scripted):
        done = await run(client)
    assert [tool.name for tool in scripted.prompts[0].tools] == ["read_file"]
    assert any(NOT_CONFINED in note for note in done["notes"])
    assert (project / "calc.py").read_text() == CODE
    assert not (project / "x").exists()


async def test_command_outside_a_sandbox_is_asked_for_and_runs_in_the_worktree_P7(project: Path) -> None:
    script = [
        FIX,
        calls("run_command", command=RUN),
        "Done: calc.py is corrected and the command printed its version.",
    ]
    async with host(project, script) as (client, scripted):
        asked = await run(client)
        (question,) = asked["questions"]
        assert "python" in question["question"]
        await call(
            client,
            "reply_subagent",
            runId=asked["run_id"],
            messageId=question["messageId"],
            answer="allow",
        )
        waited = await call(client, "wait_for_runs", run_ids=[asked["run_id"]])
    (done,) = waited["runs"]
    assert done["status"] == "success", json.dumps(done)
    assert "exit code 0" in scripted.prompts[-1].turns[-1].text
    assert "Python 3" in scripted.prompts[-1].turns[-1].text
    assert done["isolation"] == "none"
    assert any("no sandbox" in note for note in done["notes"])
    assert [each["exit_code"] for each in done["receipt"]["commands"]] == [0]


async def test_rules_of_the_agent_decide_on_its_calls_P7(project: Path) -> None:
    script = [
        calls("write_file", path="tests/test_calc.py", content="x = 1\n"),
        calls("write_file", path="docs/a.md", content="text\n"),
        calls("run_command", command=RUN),
        calls("run_command", command="rm calc.py"),
        "I wrote tests/test_calc.py.",
    ]
    rules = f"permissions:\n  allow: ['Bash({RUN})']\n  deny: ['Edit(docs/**)', 'Bash(rm:*)']"
    async with host(project, script, f"{WRITER}\n{rules}") as (client, scripted):
        done = await run(client)
    assert done["status"] == "success", json.dumps(done)
    answers = [prompt.turns[-1].text for prompt in scripted.prompts[1:]]
    assert answers[0].startswith("created tests/test_calc.py")
    assert "docs/**" in answers[1]
    assert "exit code 0" in answers[2]
    assert "rm:*" in answers[3]
    assert done["denials"] == ["Write(docs/a.md)", "Bash(rm calc.py)"]
    assert git(project, "ls-tree", "-r", "--name-only", done["branch"]).split() == [
        "calc.py",
        "tests/test_calc.py",
    ]


async def test_secrets_and_git_files_cannot_be_written_P6(project: Path) -> None:
    script = [
        calls("write_file", path=".git/hooks/pre-commit", content="#!/bin/sh\n"),
        calls("write_file", path=".env", content="A=1\n"),
        calls("write_file", path=f"{project}/calc.py", content="x = 1\n"),
        "I could not write anything.",
        "I could not write anything: all paths are refused.",
        "I could not write anything: all paths are refused.",
    ]
    async with host(project, script) as (client, scripted):
        done = await run(client)
    told = [prompt.turns[-1].text for prompt in scripted.prompts[1:4]]
    assert "hides" in told[0] and "hides" in told[1] and "outside the roots" in told[2]
    assert done["diff"] == ""
    assert (project / "calc.py").read_text() == CODE


async def test_writer_that_only_describes_its_work_is_told_so(project: Path) -> None:
    async with host(project, ["I would replace - by +.", FIX, "I corrected calc.py."]) as (client, scripted):
        done = await run(client)
    assert "You have not changed any file" in scripted.prompts[1].turns[-1].text
    assert "+    return a + b" in done["diff"]


async def test_agent_that_can_only_run_commands_need_not_run_any(project: Path) -> None:
    """A judge has read what it needs: it is told once to run a command, never to change a file."""
    header = WRITER.replace("profile: writer", "tools: [read_file, run_command]")
    said = "The candidate A is right: add in calc.py:2 subtracts."
    script = [calls("read_file", path="calc.py"), said, said]
    async with host(project, script, header) as (client, scripted):
        done = await run(client)
    assert "You have not run any command" in scripted.prompts[2].turns[-1].text
    assert done["result"].startswith("The candidate A is right"), done


async def test_writer_that_goes_on_describing_has_to_choose_an_action(project: Path) -> None:
    edit = {"path": "calc.py", "old": "a - b", "new": "a + b"}
    action = json.dumps({"action": "edit_file", "arguments": edit})
    script = ["I would replace it.", "One has to replace - by +.", action]
    done_action = json.dumps({"action": "answer", "answer": "I corrected calc.py."})
    async with host(project, [*script, done_action]) as (client, scripted):
        done = await run(client)
    assert scripted.prompts[2].schema is not None
    assert '"answer"' not in json.dumps(scripted.prompts[2].schema)
    assert '"answer"' in json.dumps(scripted.prompts[3].schema)
    assert "+    return a + b" in done["diff"]


@pytest.mark.parametrize("rule", ["Read(private/**)", "Grep", "mcp__web"])
async def test_rule_that_the_local_executor_cannot_enforce_is_refused_P7(project: Path, rule: str) -> None:
    async with host(project, [], f"{WRITER}\npermissions: {{deny: ['{rule}']}}") as (client, _):
        result = await client.call_tool("run_subagent", {"agent_name": "author", "prompt": "x"})
    assert result.is_error
    assert "cannot enforce the rule" in str(result.content)


async def test_acceptance_commands_decide_on_the_work_P3(project: Path) -> None:
    check = f'{sys.executable} -c "import calc; assert calc.add(1, 2) == 3"'
    header = f"{WRITER}\nacceptance: ['{check}']"
    async with host(project, [FIX, "I corrected calc.py."], header) as (client, _):
        done = await run(client)
    assert done["acceptance"][0]["exit_code"] == 0, done
    wrong = calls("edit_file", path="calc.py", old="a - b", new="a * b")
    async with host(project, [wrong, "I corrected calc.py."], header) as (client, _):
        failed = await run(client)
    assert failed["status"] == "error"
    assert failed["error"]["code"] == "acceptance_failed"


async def test_command_in_a_sandbox_finds_secret_files_empty_P6(project: Path) -> None:
    """Also those that git ignores, in an agent that works in the folder itself."""
    if find_bubblewrap(os.environ) is None:
        pytest.skip("bubblewrap is not installed or cannot create a sandbox")
    (project / ".env").write_text("plain words\n")
    script = [calls("run_command", command="cat calc.py .env"), "calc.py:1 defines add."]
    header = "description: d\ntools: [Read, Bash]\nsandbox: bwrap\npermissions: {allow: [Bash]}"
    async with host(project, script, header) as (client, scripted):
        done = await run(client)
    assert done["status"] == "success", json.dumps(done)
    shown = scripted.prompts[-1].turns[-1].text
    assert "def add" in shown and "plain words" not in shown


async def test_worktree_of_a_local_agent_is_prepared(project: Path) -> None:
    (project / ".git" / "info" / "exclude").write_text("local.txt\n")
    (project / "local.txt").write_text("copied\n")
    script = [calls("read_file", path="made.txt"), FIX, "made.txt:1 says copied. I corrected calc.py."]
    header = f'{WRITER}\nworktree_copy: [local.txt]\nworktree_setup: ["cp local.txt made.txt"]'
    async with host(project, script, header) as (client, scripted):
        done = await run(client)
    assert done["status"] == "success", json.dumps(done)
    assert any("1: copied" in turn.text for turn in scripted.prompts[-1].turns)
    assert done["files_changed"] == ["calc.py"]
