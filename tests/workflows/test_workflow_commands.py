"""Workflows and teams on the command line: results on stdout, exit codes, JSON output (P5, P8)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from retinue.cli.main import main
from retinue.core import RunId, RunStatus
from retinue.store import Store
from tests.conftest import RETINUE

pytestmark = pytest.mark.usefixtures("project")


def run(*arguments: str, **more: Any) -> Result:
    return CliRunner().invoke(main, list(arguments), **more)


def as_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def test_built_in_workflows_and_the_users_own_are_listed() -> None:
    listed = {row["name"]: row for row in as_json("workflow", "list")["workflows"]}
    assert {"ask", "research-write-validate", "review-in-parallel", "simple-or-complex"} == set(listed)
    assert "ask.yaml" in run("workflow", "list").stdout


def test_question_and_answer_at_the_terminal() -> None:
    asked = run("workflow", "run", "ask", "add login", "--constraint", "no cookies", "--no-wait")
    assert asked.exit_code == 4
    assert "asks: unsure: Which provider?" in asked.stdout
    (listed,) = as_json("workflow", "list", "--runs")["runs"]
    assert listed["questions"] == ["unsure: Which provider?"]
    wrong = run("answer", listed["run_id"], "a", "b")
    assert wrong.exit_code == 2
    empty = run("answer", listed["run_id"], " ")
    assert empty.exit_code == 2
    assert "the answer is empty" in empty.output and "Which provider?" in empty.output
    done = run("answer", listed["run_id"], "Google")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("PROCEED: write done")
    assert "ONE CONTEXT" in done.stdout
    shown = run("workflow", "show", listed["run_id"]).stdout
    assert "unsure: CLARIFY: ask the user" in shown
    assert "█" in shown
    whole = as_json("workflow", "show", listed["run_id"])
    assert [row["step"] for row in whole["steps"]] == ["unsure:agent:1", "unsure:agent:4", "writer:agent:1"]
    assert run("workflow", "resume", listed["run_id"]).exit_code == 1


def test_stop_ends_the_command_with_1_and_the_reason() -> None:
    Path("mine.yaml").write_text("steps: [{agent: fails}]")
    done = run("workflow", "run", "--file", "mine.yaml", "x")
    assert done.exit_code == 1
    assert done.stdout.startswith("STOP: ")
    reason, *rest = done.stdout.splitlines()
    assert "exit code 3" in reason
    assert f"- {reason.removeprefix('STOP: ')}" not in rest
    assert as_json("workflow", "list", "--runs")["runs"][0]["decision"] == "STOP"


def test_checks_are_shown_confirmed_and_then_run() -> None:
    shown = {row["name"]: row for row in as_json("workflow", "checks")["checks"]}
    assert (shown["tests"]["found"], shown["tests"]["confirmed"]) == ("make test", None)
    unconfirmed = run("workflow", "run", "review-in-parallel", "x", "--no-wait")
    assert unconfirmed.exit_code == 4
    assert "tests: make test" in unconfirmed.stdout
    assert run("workflow", "checks", "--set", "tess=true").exit_code == 2
    assert run("workflow", "checks", "--set", "tests").exit_code == 2
    confirmed = as_json("workflow", "checks", "--set", "tests=sh -c 'echo {fine}; exit 5'")
    assert confirmed["checks"][2]["confirmed"] == "sh -c 'echo {fine}; exit 5'"
    done = as_json("workflow", "run", "review-in-parallel", "x")
    assert done["decision"] == "STOP"
    assert done["findings"]["checks"]["lint"]["passed"] is True
    assert done["findings"]["checks"]["tests"]["errors"] == ["{fine}"]
    assert done["findings"]["checks"]["security"]["passed"] is None


def test_confirming_nothing_is_an_error_that_names_the_command(project: Path) -> None:
    (project / "Makefile").unlink()
    done = run("workflow", "checks", "--confirm")
    assert done.exit_code == 2
    assert "retinue workflow checks --set tests=" in done.stderr


def test_child_run_can_neither_start_workflows_nor_confirm_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """P7: work that is to be checked must not choose its own checks."""
    monkeypatch.setenv("RETINUE_CHILD_TOKEN", "x")
    for arguments in (
        ["workflow", "checks", "--confirm"],
        ["workflow", "run", "ask", "x"],
        ["team", "loud", "x"],
    ):
        done = run(*arguments)
        assert done.exit_code == 1
        assert "a run cannot" in done.stderr


def test_team_prints_only_its_output() -> None:
    assert "loud" in run("teams").stdout
    assert as_json("teams")["teams"][0]["agents"] == ["shout", "shout"]
    done = run("team", "loud", "-", input="hello")
    assert (done.exit_code, done.stdout) == (0, "HELLO\n")
    assert run("team", "quiet", "x").exit_code == 2


def test_team_says_on_stderr_what_its_agents_did() -> None:
    done = run("team", "loud", "hello")
    assert done.stdout == "HELLO\n"
    assert "2 child runs" in done.stderr
    assert "shout ran on command" in done.stderr


def test_waiting_prints_a_workflow_as_running_it_does() -> None:
    Path("mine.yaml").write_text("steps: [{agent: researcher}]")
    done = run("workflow", "run", "--file", "mine.yaml", "x")
    (listed,) = as_json("workflow", "list", "--runs")["runs"]
    waited = run("wait", listed["run_id"])
    assert waited.exit_code == 0
    assert waited.stdout == f"{listed['run_id']} success\n{done.stdout}"
    assert "1 child run" in done.stdout


def test_problems_in_files_are_reported_by_line() -> None:
    Path("bad.yaml").write_text("steps:\n  - agnt: x\n")
    done = run("workflow", "check", "bad.yaml")
    assert done.exit_code == 1
    assert done.stdout.startswith("bad.yaml:2: a step needs one of")
    assert as_json("workflow", "check", "bad.yaml")["problems"][0]["line"] == 2
    assert run("workflow", "check").exit_code == 0
    assert run("workflow", "check", "--team").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["workflow", "run", "only-one-word"],
        ["workflow", "run", "--file", "missing.yaml", "x"],
        ["workflow", "run", "ask", " "],
        ["workflow", "show", "not-an-id"],
    ],
)
def test_wrong_arguments_are_reported(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("retinue: ")


def test_schema_of_the_handoff_is_published() -> None:
    shown = json.loads(run("schema", "handoff").stdout)
    assert set(shown) == {"request", "response"}


def started(environment: Mapping[str, str]) -> tuple[subprocess.Popen[str], RunId]:
    Path("slow.yaml").write_text("steps: [{agent: researcher}, {agent: sleeps}]")
    process = subprocess.Popen(
        [*RETINUE, "workflow", "run", "--file", "slow.yaml", "x"],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
    )
    assert process.stderr is not None
    return process, RunId.parse(process.stderr.readline().split()[-1])


def until_asleep(data: Path, run_id: RunId) -> None:
    with Store.open(data) as store:
        end = time.monotonic() + 20
        while not any(run.process for run in store.runs.list(parent=run_id) if run.spec.agent == "sleeps"):
            assert time.monotonic() < end, "the agent has not started"
            time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupting_the_command_ends_the_workflow(
    environment: Mapping[str, str], own_folders: Path
) -> None:
    process, run_id = started(environment)
    until_asleep(own_folders, run_id)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    with Store.open(own_folders) as store:
        assert store.runs.get(run_id).status is RunStatus.CANCELED
        assert not [run for run in store.runs.list(limit=-1) if not run.status.ended]


@pytest.mark.skipif(os.name != "posix", reason="kills of POSIX")
def test_killed_command_is_resumed_and_finished_steps_stay_finished(
    environment: Mapping[str, str], own_folders: Path
) -> None:
    """P5"""
    process, run_id = started(environment)
    until_asleep(own_folders, run_id)
    process.kill()
    process.communicate(timeout=10)
    config = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    config.write_text(config.read_text().replace('argv = ["sleep", "1000"]', 'argv = ["false"]'))
    done = run("workflow", "resume", run_id)
    assert done.exit_code == 1, done.output
    with Store.open(own_folders) as store:
        statuses = [(child.spec.agent, child.status.value) for child in store.runs.list(parent=run_id)]
    assert statuses == [("sleeps", "error"), ("sleeps", "interrupted"), ("researcher", "success")]


def test_check_reports_all_problems_of_a_file() -> None:
    Path("mine.yaml").write_text("steps:\n  - {agent: a b}\n  - {agent: c, fase: write}\nnmae: x\n")
    found = run("workflow", "check", "mine.yaml")
    assert found.exit_code == 1
    assert [line.split(":")[1] for line in found.stdout.splitlines()] == ["2", "3", "4"]
    assert "3 problems found" in found.stderr


@pytest.mark.parametrize(
    ("option", "text", "line"),
    [
        ((), "description: d\nsteps:\n  - agent: writter\n    phase: write\n", 3),
        (("--team",), "agents: [shout, writter]\n", 1),
    ],
)
def test_check_names_agents_that_do_not_exist(option: tuple[str, ...], text: str, line: int) -> None:
    Path("mine.yaml").write_text(text)
    done = run("workflow", "check", *option, "mine.yaml")
    assert done.exit_code == 1
    assert f"mine.yaml:{line}: there is no agent named 'writter'; did you mean writer?" in done.stdout


def test_built_in_workflows_have_no_problems() -> None:
    done = run("workflow", "check")
    assert (done.exit_code, done.stdout) == (0, "")
