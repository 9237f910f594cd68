"""A new executor is one module and one entry in the table of executors; everything else derives from them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import retinue
from retinue import wiring
from retinue.core import EXECUTOR_NAMES, EXECUTORS, Agent, ExecutorKind, ExecutorTable, executor_table
from retinue.service import Service
from retinue.setup import DoctorSubject, Machine, run_doctor
from tests.service.agent_support import write_agent

AGENTS = ".config/retinue/agents"
MODULE = '''
"""Answers with the task in upper case."""

from dataclasses import dataclass

from retinue.core import Agent, Executor, Outcome, RunContext, Task
from retinue.executors import LaunchPreview, Surroundings


@dataclass(frozen=True)
class Shouting:
    greeting: str

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        return Outcome(f"{self.greeting} {task.prompt.upper()}")


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    return Shouting(surroundings.environment["GREETING"])


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    return LaunchPreview(folder=str(surroundings.cwd), task="as an argument")
'''
KIND = ExecutorKind(
    name="shouting", factory="shouting_executor", fields=frozenset({"prompt"}), program="shout"
)


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExecutorTable:
    """The table with one more executor, whose module and program are in a folder of the test's own."""
    (tmp_path / "shouting_executor.py").write_text(MODULE, encoding="utf-8")
    program = tmp_path / "bin" / "shout"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 1.2.3\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GREETING", "HELLO")
    return executor_table([*EXECUTORS.values(), KIND])


def service(executors: ExecutorTable) -> Service:
    return wiring.build_service(wiring.read_settings({}), executors=executors)


def write_worker(header: str) -> None:
    write_agent(Path.home(), f"{AGENTS}/worker.md", f"description: d\n{header}", "")


@pytest.mark.anyio
async def test_agent_runs_on_an_executor_that_was_added_to_the_table(extended: ExecutorTable) -> None:
    write_worker("executor: shouting")
    loaded = wiring.read_settings({})
    async with wiring.running(loaded, service(extended)) as up:
        run = await up.runs.start("worker", "the task", person=True)
        outcome = await up.runs.finish(run.id, 30.0)
    assert (outcome["status"], outcome["result"]) == ("success", "HELLO THE TASK")


def test_added_executor_is_listed_and_shown(extended: ExecutorTable) -> None:
    write_worker("executor: shouting")
    agents = service(extended).agents
    assert {"shouting", "command"} <= set(agents.executors)
    shown = agents.show("worker")
    assert (shown["available"], shown["start"]["task"]) == (True, "as an argument")


def test_field_that_an_added_executor_does_not_support_is_refused_P7(extended: ExecutorTable) -> None:
    write_worker("executor: shouting\nnetwork: false")
    assert "does not support yet: network" in service(extended).agents.show("worker")["unavailable"]
    write_worker("executor: shouting\ncommand: x")
    assert "takes no `command`" in service(extended).agents.show("worker")["unavailable"]


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_program_of_an_added_executor_is_checked(extended: ExecutorTable, tmp_path: Path) -> None:
    subject = DoctorSubject(Machine.current(tmp_path / "backups"), tmp_path, lambda: None, executors=extended)
    assert "shout 1.2.3" in str([check.finding for check in run_doctor(subject) if check.name == "CLIs"])
    (tmp_path / "bin" / "shout").unlink()
    write_worker("executor: shouting")
    assert "needs the program shout" in service(extended).agents.show("worker")["unavailable"]


def test_agent_of_a_project_needs_trust_for_an_added_executor_P7(
    extended: ExecutorTable, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    write_agent(project, ".retinue/agents/worker.md", "description: d\nexecutor: shouting\ntools: [Read]")
    loaded = wiring.read_settings({"roots": (str(project),)})
    agents = wiring.build_service(loaded, executors=extended).agents
    assert "starts a program (executor shouting)" in agents.show("worker")["unavailable"]


def test_unknown_executor_is_an_error_that_names_the_known_ones() -> None:
    write_worker("executor: shouting")
    unavailable = service(EXECUTORS).agents.show("worker")["unavailable"]
    assert f"executor: 'shouting' is not one of: {', '.join(EXECUTOR_NAMES)}" in unavailable


@pytest.mark.parametrize("kind", EXECUTORS.values(), ids=lambda kind: kind.name)
def test_every_entry_of_the_table_names_a_module_and_fields_that_exist(kind: ExecutorKind) -> None:
    known = {field.name for field in fields(Agent)}
    assert {name.partition(".")[0] for name in kind.fields | kind.fields_in_container} <= known
    assert kind.takes_command or not kind.requires_command
    if kind.factory is not None:
        module = import_module(kind.factory)
        assert callable(module.make) and callable(module.preview)


@pytest.fixture
def copied(tmp_path: Path, extended: ExecutorTable) -> Callable[..., Any]:
    """A copy of the package with one more file and one more line; returns what runs its command line."""
    package = tmp_path / "copy" / "retinue"
    shutil.copytree(Path(retinue.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "executors" / "shouting.py").write_text(MODULE, encoding="utf-8")
    table = package / "core" / "executors.py"
    before = table.read_text(encoding="utf-8")
    line = '    ExecutorKind(name="shouting", factory="retinue.executors.shouting", program="shout"),\n'
    after = before.replace("_KINDS = (\n", f"_KINDS = (\n{line}")
    assert len(after.splitlines()) == len(before.splitlines()) + 1
    table.write_text(after, encoding="utf-8")

    def run(*arguments: str) -> Any:
        done = subprocess.run(  # checks of the doctor or of files may fail
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(package.parent), "RETINUE_AGENTS__EXECUTOR": "shouting"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run


def test_one_file_and_one_line_add_an_executor_to_the_whole_program(copied: Callable[..., Any]) -> None:
    """Settings, agent files, runs, the doctor and the error for an unknown name know it."""
    write_worker("timeout_ms: 30000")
    settings = copied("-m", "retinue", "config", "--json")
    setting = next(each for each in settings if each["key"] == "agents.executor")
    assert setting["value"] == "shouting" and "shouting, " in setting["allowed"]
    answer = copied("-m", "retinue", "agent", "worker", "the task", "--json")
    assert answer["result"] == "HELLO THE TASK"
    doctor = copied("-m", "retinue", "doctor", "--json")
    assert "shout 1.2.3" in json.dumps(doctor)
    write_worker("executor: whispering")
    check = copied("-m", "retinue", "agents", "check", "--json")
    assert "'whispering' is not one of: shouting, local" in json.dumps(check)


@pytest.mark.parametrize("page", ["agents.md", "settings.md"])
def test_documentation_lists_the_executors_of_the_table(page: str) -> None:
    text = Path(__file__).parents[2].joinpath("docs", page).read_text(encoding="utf-8")
    assert ", ".join(EXECUTOR_NAMES) in text
