"""The built-in workflows on whatever executor there is, from a failing project to a patch that mends it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Assignment, Prompt, Unavailable
from retinue.service import Service, read_patch
from retinue.wiring import build_service, read_settings, running
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls
from tests.workflows.workflow_bench import handoff_in

pytestmark = pytest.mark.anyio

CODE = "def add(a, b):\n    return a - b\n"
TESTS = """\
import unittest

from calc import add


class Adds(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)
"""
UNITTEST = f"{sys.executable} -B -m unittest -q"
"""Keeps no bytecode: a file that is mended within a second, to the same size, would look unchanged."""
TASK = "add() in calc.py subtracts: make the tests pass"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    run = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return run.stdout


def is_mended(folder: Path) -> bool:
    return subprocess.run(UNITTEST.split(), cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project whose test fails. No coding CLI is installed."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text(CODE)
    (folder / "test_calc.py").write_text(TESTS)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    assert not is_mended(folder)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "env"):
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.chdir(folder)
    return folder


def task_of(prompt: Prompt) -> str:
    return next(turn.text for turn in prompt.turns if turn.role == "user")


class SmallWriter:
    """A model that reads, changes `calc.py` and answers as its phase wants it. `fixes` are its attempts."""

    def __init__(self, *fixes: tuple[str, str]) -> None:
        self._fixes = list(fixes)

    async def __call__(self, prompt: Prompt) -> ScriptLine:
        tools = [turn.text for turn in prompt.turns if turn.role == "tool"]
        request = handoff_in(task_of(prompt))
        if not tools:
            return calls("read_file", path="calc.py")
        if request["phase"] == "write" and len(tools) == 1:
            old, new = self._fixes.pop(0)
            return calls("edit_file", path="calc.py", old=old, new=new)
        if request["phase"] == "validate" and len(tools) == 1:
            return calls("run_command", command=UNITTEST)
        decision = "STOP" if "exit code 1" in tools[-1] else "PROCEED"
        findings = {"complexity": "simple"}
        answer = {"decision": decision, "findings": findings, "context_summary": "add() is in calc.py:1."}
        return f"Done.\n```json\n{json.dumps(answer)}\n```"


Answers = Callable[[Prompt], Awaitable[ScriptLine]]


@asynccontextmanager
async def service_on_local_model(project: Path, model: Answers) -> AsyncGenerator[Service]:
    scripted = ScriptedModel([model] * 60)
    state = FakeServerState(context=32_768)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"], state)) as url:
        loaded = read_settings({"roots": (str(project),), "models.endpoint": url})
        async with running(loaded, build_service(loaded)) as service:
            yield service


async def run(service: Service, name: str, task: str = TASK) -> dict[str, Any]:
    flows = service.workflows
    started = await flows.start(name, Assignment(feature=task), person=True)
    return await flows.finish(started.id, 60)


async def test_failing_project_ends_with_a_patch_that_makes_its_tests_pass(failing: Path) -> None:
    async with service_on_local_model(failing, SmallWriter(("a - b", "a + b"))) as service:
        service.workflows.confirm_checks({"tests": UNITTEST})
        done = await run(service, "research-write-validate")
    assert (done["status"], done["decision"]) == ("success", "PROCEED"), json.dumps(done)
    assert done["findings"]["checks"]["tests"]["passed"] is True
    assert done["patch"]["files_changed"] == ["calc.py"]
    assert done["executors"]["writer"] == "local (a model is configured, and no coding CLI is installed)"
    assert not is_mended(failing)  # nothing is merged
    git(failing, *done["patch"]["apply"].split()[1:])
    assert is_mended(failing)


@pytest.mark.parametrize("has_empty_repository", [False, True])
async def test_project_without_a_repository_ends_with_a_patch_too(
    failing: Path, own_folders: Path, has_empty_repository: bool
) -> None:
    shutil.rmtree(failing / ".git")
    if has_empty_repository:
        git(failing, "init", "--quiet")
    (failing / ".env").write_text("KEY=1\n")
    model = SmallWriter(("a - b", "a * b"), ("a * b", "a + b"))
    async with service_on_local_model(failing, model) as service:
        service.workflows.confirm_checks({"tests": UNITTEST})
        done = await run(service, "research-write-validate")
        assert done["decision"] == "PROCEED", json.dumps(done)
        patch = read_patch(service.runs, done["run_id"])
    assert done["patch"]["apply"] == f"retinue patch {done['run_id']} | git apply"
    assert "branch" not in done["patch"]
    assert not is_mended(failing)
    (failing / "work.patch").write_text(patch)
    git(failing, "apply", "work.patch")
    assert is_mended(failing)
    (snapshots,) = (own_folders / "snapshots").iterdir()
    stored = git(failing, "--git-dir", str(snapshots), "rev-list", "--all", "--objects")
    assert "calc.py" in stored
    assert ".env" not in stored  # P6


async def test_writer_goes_on_from_its_failed_work_until_the_checks_pass(failing: Path) -> None:
    model = SmallWriter(("a - b", "a * b"), ("a * b", "a + b"))
    async with service_on_local_model(failing, model) as service:
        service.workflows.confirm_checks({"tests": UNITTEST})
        done = await run(service, "research-write-validate")
        shown = service.workflows.show(done["run_id"])
    assert done["decision"] == "PROCEED", done
    assert [row["step"].split(":")[0] for row in shown["steps"]] == [
        *("research", "write", "validate", "write#2", "validate#2"),
    ]
    assert "-    return a - b\n+    return a + b" in done["patch"]["diff"]
    branch = done["patch"]["branch"]
    assert git(failing, "rev-list", "--count", f"HEAD..{branch}").strip() == "1"


async def test_check_whose_program_is_missing_stops_at_once_and_says_what_to_do(failing: Path) -> None:
    """P8: no agent can mend it, so the writer is not asked to."""
    async with service_on_local_model(failing, SmallWriter(("a - b", "a + b"))) as service:
        service.workflows.confirm_checks({"tests": "no-such-program -q"})
        done = await run(service, "research-write-validate")
        shown = service.workflows.show(done["run_id"])
    assert done["decision"] == "STOP"
    assert [row["step"].split(":")[0] for row in shown["steps"]] == ["research", "write", "validate"]
    (issue,) = [each for each in done["issues"] if each.startswith("tests")]
    assert issue.startswith("tests could not run: no-such-program cannot start: No such file or directory;")
    assert "retinue workflow checks --set tests=" in issue
    assert done["patch"]["files_changed"] == ["calc.py"]  # the work is kept


async def test_project_without_checks_is_judged_by_the_validator_and_says_so(failing: Path) -> None:
    """Without a sandbox, its command is a question, which a person can answer."""
    async with service_on_local_model(failing, SmallWriter(("a - b", "a + b"))) as service:
        flows = service.workflows
        started = await flows.start("research-write-validate", Assignment(feature=TASK), person=True)
        while (done := await flows.finish(started.id, 60)).get("questions"):
            (question,) = service.runs.open_questions(started.id)
            assert "unittest" in question.question
            await service.runs.reply(question.run_id, question.id, "allow")
    assert done["decision"] == "PROCEED", done
    assert "the agent validator judged the work" in done["issues"][0]
    assert "workflow checks --set" in done["issues"][0]
    assert list(done["executors"]) == ["researcher", "writer", "validator"]


async def test_project_without_checks_and_without_any_agent_is_refused_with_a_way_out(failing: Path) -> None:
    loaded = read_settings({"roots": (str(failing),)})
    async with running(loaded, build_service(loaded)) as service:
        with pytest.raises(Unavailable) as raised:
            await run(service, "review-in-parallel")
        assert "workflow checks --set" in (raised.value.hint or "")
        service.workflows.confirm_checks({"tests": UNITTEST})
        done = await run(service, "review-in-parallel")
    assert done["decision"] == "STOP"  # the test fails
    assert done["findings"]["checks"]["tests"]["passed"] is False


async def test_simple_feature_is_written_directly(failing: Path) -> None:
    async with service_on_local_model(failing, SmallWriter(("a - b", "a + b"))) as service:
        done = await run(service, "simple-or-complex")
        shown = service.workflows.show(done["run_id"])
    assert done["decision"] == "PROCEED", json.dumps(done)
    assert [row["by"] for row in shown["steps"]] == ["researcher", "writer"]
    assert done["patch"]["files_changed"] == ["calc.py"]


async def test_writer_that_changes_nothing_is_not_believed_P8(failing: Path) -> None:
    """It says that it is done; its worktree says that it is not."""

    async def undoes(prompt: Prompt) -> ScriptLine:
        tools = sum(turn.role == "tool" for turn in prompt.turns)
        if not tools:
            return calls("read_file", path="calc.py")
        if handoff_in(task_of(prompt))["phase"] == "write" and tools < 3:
            old, new = ("a - b", "a + b") if tools == 1 else ("a + b", "a - b")
            return calls("edit_file", path="calc.py", old=old, new=new)
        answer = {"decision": "PROCEED", "context_summary": "add() in calc.py:1 is mended"}
        return json.dumps(answer | {"files_changed": ["calc.py"]})

    async with service_on_local_model(failing, undoes) as service:
        service.workflows.confirm_checks({"tests": UNITTEST})
        done = await run(service, "research-write-validate")
    assert done["decision"] == "STOP"
    assert "no file was changed" in done["error"]["message"]
    assert "patch" not in done


@pytest.mark.parametrize(
    ("installed", "settings", "expected"),
    [
        ((), {}, ("claude", "no coding CLI and no model was found")),
        (("codex", "opencode"), {}, ("codex", "codex is installed")),
        (("codex", "claude"), {}, ("claude", "claude is installed")),
        (("claude",), {"agents.executor": "local"}, ("local", "agents.executor")),
        (("claude",), {"models.endpoint": "http://127.0.0.1:1/v1"}, ("claude", "claude is installed")),
        (
            (),
            {"models.endpoint": "http://127.0.0.1:1/v1"},
            ("local", "a model is configured, and no coding CLI is installed"),
        ),
    ],
)
def test_built_in_writer_runs_on_what_the_user_has_and_says_why(
    failing: Path,
    tmp_path: Path,
    installed: tuple[str, ...],
    settings: dict[str, str],
    expected: tuple[str, str],
) -> None:
    for name in installed:
        (tmp_path / "programs" / name).write_text("#!/bin/sh\n")
        (tmp_path / "programs" / name).chmod(0o755)
    agents = build_service(read_settings({"roots": (str(failing),), **settings})).agents
    found = agents.executor_of("writer")
    assert (found["executor"], found["because"]) == expected
    reader = agents.executor_of("researcher")["executor"]
    assert reader == ("local" if "models.endpoint" in settings or not installed else expected[0])
