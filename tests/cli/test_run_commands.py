"""Commands report failed and interrupted runs correctly (P8)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.cli.run_output import closing_lines, format_question, receipt_lines, run_row
from retinue.core import Ending, OwnerId, RunId, RunSpec, RunStatus
from retinue.store import Store
from retinue.wiring import read_settings
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


def test_waiting_goes_on_with_a_run_whose_process_was_killed_while_its_account_was_spent(
    own_folders: Path, environment: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: nobody else performs it, so the wait would never end."""
    notice = "You've hit your usage limit. Try again in 3 hours."
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    script = f'if [ -f spent ]; then echo fine; else touch spent; echo "{notice}"; exit 1; fi'
    file.write_text(f"[commands.limited]\nargv = {json.dumps(['sh', '-c', script])}\n")
    command = [*RETINUE, "agent", "limited", "do it"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(environment)) as process:
        assert process.stderr is not None
        run_id = process.stderr.readline().split()[1]
        assert "waits for the quota of command limited" in process.stderr.readline()
        process.kill()
    assert run("quota", "clear", "command limited").exit_code == 0
    assert "waits for a process" in run("runs").stdout
    folder = Path.cwd()
    monkeypatch.chdir(tmp_path)
    elsewhere = run("wait", run_id, "--timeout", "0")
    assert (elsewhere.exit_code, elsewhere.stdout) == (4, f"{run_id} queued\n")
    assert f"retinue wait {run_id}` in {folder}" in elsewhere.stderr
    monkeypatch.chdir(folder)
    done = run("wait", run_id)
    assert (done.exit_code, done.stdout) == (0, f"{run_id} success\nfine\n")
    assert f"run {run_id} goes on here" in done.stderr


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


def record(agent: str, status: RunStatus, *, at: float | None = None) -> RunId:
    """Record a run that is queued or has ended, as another process would."""
    clock = time.time if at is None else lambda: at
    with Store.open(read_settings({}).settings.data_dir, clock=clock) as store:
        run = store.runs.record(RunSpec(agent=agent, task="t", executor="command"), OwnerId.new())
        if status.ended:
            store.runs.finish(run.id, Ending(status=status))
    return run.id


def listed(*arguments: str) -> list[str]:
    done = run("runs", *arguments, "--json")
    assert done.exit_code == 0, done.output
    return [each["agent"] for each in json.loads(done.stdout)["runs"]]


def test_runs_are_filtered_by_agent_status_and_time() -> None:
    record("old", RunStatus.CANCELED, at=time.time() - 3 * 86_400)
    record("one", RunStatus.CANCELED)
    record("two", RunStatus.INTERRUPTED)
    assert listed() == ["two", "one", "old"]
    assert listed("--agent", "one") == ["one"]
    assert listed("--status", "canceled", "--since", "1h") == ["one"]
    assert listed("--status", "canceled", "--status", "interrupted", "--limit", "2") == ["two", "one"]
    assert listed("--since", "2h") == ["two", "one"]
    assert run("runs", "--since", "soon").exit_code == 2
    assert run("runs", "--status", "happy").exit_code == 2


def test_table_shows_words_for_people(own_folders: Path) -> None:
    record("one", RunStatus.CANCELED)
    header, row = run("runs").stdout.splitlines()
    assert header.split() == ["RUN", "AGE", "STATUS", "TIME", "AGENT", "TASK"]
    assert row.split()[2] == "canceled"


def test_empty_table_says_so_and_how_to_see_more() -> None:
    assert run("runs").stdout == "no runs\n"
    record("one", RunStatus.CANCELED)
    assert run("runs", "--active").stdout == "no such runs; `retinue runs` lists all\n"


def test_long_question_is_cut_in_the_table() -> None:
    question = "The workflow runs the checks of the project, and nobody has confirmed them.\ntests: pytest"
    view = {"run_id": "1", "status": "waiting_parent_reply", "duration_ms": 5, "began_at": 0.0}
    row = run_row(view | {"agent": "a", "task": "fix it", "questions": [{"question": question}]})
    assert row[-1] == "fix it  asks: The workflow runs the checks of the project, and nobody has…"


def test_receipt_is_short_and_names_the_commands_that_failed() -> None:
    commands = [{"command": "make lint", "exit_code": 0}, {"command": "make test", "exit_code": 2}]
    counts = {"tool_calls": {"read_file": 2}, "files_read": ["a.py"], "tokens": 12_345, "seconds": 1.917}
    (line,) = receipt_lines({"receipt": {**counts, "commands": commands}})
    assert line == (
        "2 tool calls, 1 file read, 2 commands, 1 failed: `make test` (exit code 2), 12,345 tokens, 1.9 s"
    )


def test_notes_denials_and_merges_stand_below_the_result() -> None:
    """P8: a person sees what a host sees: who performed a task instead, what was withheld."""
    view = {
        "notes": ["b performed the task instead of a"],
        "denials": ["Bash: rm x"],
        "diff": "",
        "files_changed": [],
        "merge": {"order": ["retinue/1", "retinue/2"], "conflicts": []},
        "receipt": {"seconds": 1.0},
    }
    assert list(closing_lines(view)) == [
        "no file was changed",
        "these merge without conflicts, in this order: retinue/1, retinue/2",
        "denied: Bash: rm x",
        "note: b performed the task instead of a",
        "1.0 s",
    ]


def test_parts_of_an_id_mean_the_run_if_only_one_has_them() -> None:
    done = run("agent", "fails", "x")
    run_id = done.stderr.split()[1]
    for part in (run_id, run_id[:12], run_id[-4:]):
        assert "last words" in run("logs", part).stdout
        assert run_id in run("wait", part).stdout
    assert "no run has an id that begins or ends with 'zzzz'" in run("logs", "zzzz").stderr
    assert "not a run id" in run("logs", run_id[:3]).stderr
    record("other", RunStatus.CANCELED)
    shared = run("logs", run_id[:4])
    assert "may be several runs" in shared.stderr
    assert shared.exit_code == 2


def test_deleted_runs_are_gone_with_their_logs(own_folders: Path) -> None:
    run_id = run("agent", "fails", "x").stderr.split()[1]
    log = own_folders / "logs" / f"{run_id}.log"
    assert log.exists()
    done = run("runs", "delete", run_id[-6:])
    assert "deleted 1 request with 1 run" in done.stdout
    assert not log.exists()
    assert listed() == []
    assert run("runs", "delete", run_id).exit_code == 1


def test_active_runs_and_parts_of_requests_are_not_deleted(
    own_folders: Path, environment: Mapping[str, str]
) -> None:
    """P5"""
    with Store.open(own_folders) as store:
        spec = RunSpec(agent="a", task="t", executor="command")
        top = store.runs.record(spec, OwnerId.new())
        below = store.runs.record(replace(spec, parent=top.id), OwnerId.new())
        for each in (below, top):
            store.runs.finish(each.id, Ending(status=RunStatus.CANCELED))
    assert "belongs to the request" in run("runs", "delete", below.id).stderr
    with subprocess.Popen(
        [*RETINUE, "agent", "sleeps", "on"], stderr=subprocess.PIPE, text=True, env=dict(environment)
    ) as process:
        assert process.stderr is not None
        active = process.stderr.readline().split()[1]
        refused = run("runs", "delete", active)
        pruned = run("runs", "prune", "--older-than", "0s")
        left = listed()
        process.send_signal(signal.SIGINT)
    assert refused.exit_code == 1
    assert "has not ended" in refused.stderr
    assert "deleted 1 request with 2 runs" in pruned.stdout
    assert left == ["sleeps"]


def test_old_runs_are_pruned_and_a_dry_run_only_counts_them() -> None:
    record("old", RunStatus.CANCELED, at=time.time() - 40 * 86_400)
    record("new", RunStatus.CANCELED)
    assert "1 request would be deleted" in run("runs", "prune", "--older-than", "30d", "--dry-run").stdout
    assert listed() == ["new", "old"]
    assert "deleted 1 request" in run("runs", "prune", "--older-than", "30d").stdout
    assert listed() == ["new"]
    assert run("runs", "prune").exit_code == 2


def test_watchers_hear_of_new_runs_after_the_newest_was_deleted(own_folders: Path) -> None:
    """SQLite would use the numbers of deleted events again."""
    record("stays", RunStatus.CANCELED)
    newest = record("goes", RunStatus.CANCELED)
    with Store.open(own_folders) as watching:
        seen = watching.events.last_seq()
        assert run("runs", "delete", newest).exit_code == 0
        new = record("comes", RunStatus.CANCELED)
        _, changed = watching.events.changed_since(seen)
        assert new in changed
        seen = watching.events.last_seq()
        assert run("runs", "prune", "--older-than", "0s").exit_code == 0  # nothing stays
        assert watching.events.changed_since(seen) == (0, set())


def test_log_says_how_much_it_leaves_out_and_prints_all_on_request(own_folders: Path) -> None:
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.write_text(COMMANDS + '[commands.counts]\nargv = ["seq", "1", "5000"]\n')
    run_id = run("agent", "counts", "x").stderr.split()[1]
    short = run("logs", run_id)
    assert short.stdout.splitlines()[-1] == "stdout: 5000"
    assert len(short.stdout.splitlines()) == 100
    assert "4900 earlier lines left out; --all prints the whole log" in short.stderr
    assert run("logs", run_id, "-n", "2").stdout == "stdout: 4999\nstdout: 5000\n"
    whole = run("logs", run_id, "--all", "--stream", "stdout").stdout
    assert whole.split() == [str(number) for number in range(1, 5_001)]


def test_an_error_is_printed_once(own_folders: Path) -> None:
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.write_text('[commands.late]\nargv = ["sleep", "1000"]\ntimeout_ms = 200\n')
    done = run("agent", "late", "x")
    assert done.exit_code == 3
    assert done.stdout.count("deadline_exceeded") == 1


def test_commands_that_start_runs_delete_old_ones(own_folders: Path) -> None:
    """Who only uses commands never starts a server, which would do it."""
    settings = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    settings.write_text("[commands.hello]\nargv = ['echo', 'hello']\n")
    for days in (40, 20):
        record("reviewer", RunStatus.CANCELED, at=time.time() - days * 86_400)
    record("writer", RunStatus.CANCELED)
    for _ in range(2):
        assert run("agent", "hello", "x").exit_code == 0
    listed = json.loads(run("runs", "--json").stdout)["runs"]
    assert [each["agent"] for each in listed] == ["hello", "hello", "writer", "reviewer"]


@pytest.mark.skipif(sys.platform == "win32", reason="the root of Unix")
def test_runs_are_listed_and_canceled_from_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that a waiting run prints are typed in another terminal, wherever that is."""
    queued = record("reviewer", RunStatus.QUEUED)
    monkeypatch.chdir("/")
    assert queued in run("runs").stdout
    assert run("cancel", queued).exit_code == 0


def test_lines_of_a_question_are_indented_below_its_run() -> None:
    shown = format_question("1k09m8cp19a5a0m", {"messageId": "m", "question": "Run the checks?\ntests: make"})
    assert shown.startswith("\n  asks: Run the checks?\n    tests: make\n  answer with: ")
