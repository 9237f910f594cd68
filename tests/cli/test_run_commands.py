"""Commands report failed and interrupted runs correctly (P8)."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from retinue.core import Ending, OwnerId, RunSpec, RunStatus
from retinue.store import Store
from tests.cli.conftest import run
from tests.conftest import RETINUE

COMMANDS = """
[commands.fails]
argv = ["sh", "-c", "echo last words; exit 7"]
[commands.sleeps]
argv = ["sleep", "1000"]
"""


@pytest.fixture(autouse=True)
def agents(own_folders: Path) -> None:
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True)
    file.write_text(COMMANDS)


def test_failed_run_prints_its_error_and_last_output() -> None:
    done = run("agent", "fails", "do it")
    assert done.exit_code == 1
    assert "program_failed: " in done.stdout
    assert "last words" in done.stdout
    run_id = done.stderr.split()[1]
    waited = run("wait", run_id)
    assert f"{run_id} error\nprogram_failed: " in waited.stdout
    assert "last words" in waited.stdout


def test_ctrl_c_cancels_the_run(environment: Mapping[str, str]) -> None:
    process = subprocess.Popen(
        [*RETINUE, "agent", "sleeps", "on"], stderr=subprocess.PIPE, text=True, env=dict(environment)
    )
    assert process.stderr is not None
    run_id = process.stderr.readline().split()[1]
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    process.stderr.close()
    listed = json.loads(run("runs", "--json").stdout)["runs"]
    assert [(each["run_id"], each["status"]) for each in listed] == [(run_id, "canceled")]


def test_closed_output_pipe_causes_no_traceback(environment: Mapping[str, str]) -> None:
    """As in `retinue runs | head`."""
    process = subprocess.Popen(
        [*RETINUE, "runs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(environment)
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert process.communicate(timeout=20)[1] == ""
    assert process.returncode == 1


def test_spent_account_is_shown_everywhere_and_lifted_by_a_command(
    own_folders: Path, environment: Mapping[str, str]
) -> None:
    """A program that says once that its limit is spent, and then works."""
    notice = "You've hit your usage limit. Try again in 3 hours."
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    script = f'if [ -f spent ]; then echo fine; else touch spent; echo "{notice}"; exit 1; fi'
    file.write_text(f"[commands.limited]\nargv = {json.dumps(['sh', '-c', script])}\n")
    process = subprocess.Popen(
        [*RETINUE, "agent", "limited", "do it"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
    )
    assert process.stderr is not None
    told = [process.stderr.readline(), process.stderr.readline()]
    assert "waits for the quota of command limited" in told[1]
    listed = run("runs")
    assert "waits for the quota of command limited" in listed.stdout
    assert "command limited: spent until" in listed.stderr
    (spent,) = json.loads(run("quota", "list", "--json").stdout)["quotas"]
    assert (spent["account"], spent["waiting_runs"]) == ("command limited", 1)
    assert "the usage limit of command limited is spent" in run("doctor").stdout
    assert run("quota", "clear").exit_code == 2
    assert run("quota", "clear", "nobody").exit_code == 2
    assert run("quota", "clear", "command limited").stdout == "command limited can be used again\n"
    assert process.wait(10) == 0
    assert process.stdout is not None
    assert "fine" in process.stdout.read()
    process.stdout.close()
    process.stderr.close()
    assert run("quota").stdout == "no account is spent\n"


def test_patch_of_a_run_is_printed_as_it_can_be_applied_and_as_json(own_folders: Path) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"
    with Store.open(own_folders) as store:
        made = store.runs.record(RunSpec(agent="writer", task="x", executor="claude"), OwnerId.new())
        store.runs.finish(made.id, Ending(status=RunStatus.ERROR, result={"diff": diff, "branch": "b"}))
        empty = store.runs.record(RunSpec(agent="reader", task="x", executor="claude"), OwnerId.new())
    assert run("patch", made.id).stdout == diff + "\n"
    assert json.loads(run("patch", made.id, "--json").stdout) == {"run_id": made.id, "patch": diff + "\n"}
    nothing = run("patch", empty.id)
    assert nothing.exit_code != 0
    assert "has no changes to show" in nothing.stderr
