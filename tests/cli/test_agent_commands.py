"""`retinue agents` and `retinue agent`: list, show, check, trust and run agents (P1, P7, P8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from tests.cli.conftest import run
from tests.conftest import RETINUE
from tests.service.agent_support import write_agent

MINE = ".config/retinue/agents"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_agents_are_listed_with_their_origin_and_why_one_is_unavailable(project: Path) -> None:
    write_agent(Path.home(), f"{MINE}/cat.md", "description: meows\ncommand: cat")
    (project / ".retinue" / "agents").mkdir(parents=True)
    (project / ".retinue" / "agents" / "broken.md").write_text("no header")
    result = run("agents")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines()}
    assert "~/.config/retinue/agents/cat.md" in lines["cat"] and "meows" in lines["cat"]
    assert "there is no header" in lines["broken"]
    assert "built in/writer.md" in lines["writer"]
    assert result.output.splitlines()[1].startswith("cat"), "what can run stands first"
    listed = json.loads(run("agents", "--json").output)["agents"]
    assert {each["name"] for each in listed} >= {"cat", "broken", "writer"}


def test_show_prints_every_field_with_its_origin(project: Path) -> None:
    write_agent(Path.home(), f"{MINE}/cat.md", "description: meows\ncommand: cat\ntimeout_ms: 1500", "Purr.")
    text = run("agents", "show", "cat").output
    assert "available: true" in text
    assert "~/.config/retinue/agents/cat.md:4" in text
    assert text.rstrip().endswith("Purr.")
    shown = json.loads(run("agents", "show", "cat", "--json").output)
    assert shown["agent"]["timeout_s"] == 1.5
    assert shown["file"] == str(Path.home() / MINE / "cat.md")
    wrong = run("agents", "show", "kat")
    assert wrong.exit_code == 2
    assert "did you mean cat?" in wrong.output


def test_check_prints_file_and_line_and_fails_only_for_errors(project: Path) -> None:
    bad = write_agent(project, ".retinue/agents/bad.md", "description: d\ntimeout: 5")
    result = run("agents", "check")
    assert result.exit_code == 1
    assert f"{bad}:3: error: there is no key 'timeout'; did you mean timeout_ms?" in result.output
    printed = json.loads(run("agents", "check", str(bad), "--json").stdout)
    assert (printed["files"], printed["errors"]) == (1, 1)
    bad.unlink()
    write_agent(project, ".claude/agents/fine.md", "description: d\ncolor: red")
    result = run("agents", "check")
    assert result.exit_code == 0
    assert "warning: color is not supported and is ignored" in result.output


def test_prompt_prints_the_section_for_a_main_agent(project: Path) -> None:
    write_agent(Path.home(), f"{MINE}/cat.md", "description: meows\ncommand: cat")
    assert "- **cat**: meows" in run("agents", "prompt").output
    assert "- **cat**" in json.loads(run("agents", "prompt", "--json").output)["prompt"]


def test_project_agents_run_only_while_the_project_is_trusted(project: Path) -> None:
    write_agent(project, ".retinue/agents/cat.md", "description: meows\ncommand: cat")
    refused = run("agent", "cat", "hello")
    assert refused.exit_code == 1
    assert "not trusted" in refused.output
    assert run("agents", "trust").stdout == "no project is trusted\n"
    assert json.loads(run("agents", "trust", ".", "--json").output) == {"trusted": [str(project)]}
    done = run("agent", "cat", "hello")
    assert done.stdout == "Do it.\n\nhello\n"
    run("agents", "trust", ".", "--remove")
    assert run("agent", "cat", "hello").exit_code == 1
    assert run("agents", "trust", "missing").exit_code == 2


def test_run_cannot_change_which_projects_are_trusted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_CHILD_TOKEN", "anything")
    result = run("agents", "trust", ".")
    assert result.exit_code == 1
    assert "cannot change which projects are trusted" in result.output


def test_user_may_call_every_agent(project: Path) -> None:
    header = "description: d\ncommand: cat\nallowed_callers: []"
    write_agent(Path.home(), f"{MINE}/cat.md", header)
    assert run("agent", "cat", "hello").exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix terminal")
def test_log_appears_on_the_terminal_and_only_the_answer_on_stdout(
    project: Path, environment: Mapping[str, str]
) -> None:
    script = "echo thinking >&2; echo the answer"
    write_agent(Path.home(), f"{MINE}/says.md", f"description: d\ncommand: [sh, -c, '{script}']", "")
    terminal, end = os.openpty()
    with subprocess.Popen(
        [*RETINUE, "agent", "says", "x"], stdout=subprocess.PIPE, stderr=end, text=True, env=environment
    ) as process:
        os.close(end)
        answer, _ = process.communicate(timeout=50)
    shown = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert answer == "the answer\n"
    assert "stderr: thinking" in shown and shown.startswith("run ")


@pytest.mark.parametrize(("spawns", "works"), [(0, False), (1, True)])
def test_agent_started_inside_a_run_counts_as_its_child(
    project: Path, environment: Mapping[str, str], spawns: int, works: bool
) -> None:
    """P1, P2: starting an agent from a run's shell is nesting and uses up `spawns`."""
    write_agent(Path.home(), f"{MINE}/cat.md", "description: d\ncommand: cat", "")
    command = json.dumps([sys.executable, "-m", "retinue", "agent", "cat", "hello", "--json"])
    write_agent(Path.home(), f"{MINE}/nests.md", f"description: d\ncommand: {command}\nspawns: {spawns}", "")
    done = subprocess.run(
        [*RETINUE, "agent", "nests", "go"], capture_output=True, text=True, env=environment, timeout=50
    )
    assert (done.returncode == 0) == works
    if works:
        assert json.loads(done.stdout)["result"] == "hello"
        listed = json.loads(run("runs", "--all", "--json").output)["runs"]
        parents = {each["agent"]: each.get("parent") for each in listed}
        assert parents["cat"] == next(each["run_id"] for each in listed if each["agent"] == "nests")
    else:
        assert "budget_exceeded" in done.stdout


def test_failed_run_names_the_log_with_the_raw_answer_P8(project: Path) -> None:
    write_agent(
        Path.home(), f"{MINE}/says.md", "description: d\ncommand: [echo, no]\noutput_format: json", ""
    )
    text = run("agent", "says", "x")
    assert text.exit_code == 1
    assert "output_invalid: no answer was valid in 3 tries" in text.output
    assert "get_subagent_logs(runId=" in text.output
    done = json.loads(run("agent", "says", "x", "--json").stdout)
    assert done["error"]["data"]["tries"] == 3
    raw = done["error"]["data"]["raw"]["run_id"]
    assert raw == done["run_id"]
    assert json.loads(run("logs", raw, "--json").stdout)["log"].rstrip().endswith("event: no")


def test_permanent_permissions_are_listed_and_removed(project: Path, own_folders: Path) -> None:
    file = own_folders / "permissions.toml"
    assert "no agent has permanent permissions" in run("agents", "allowed").output
    assert run("agents", "allowed", "web", "--forget").exit_code == 2
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[agents]\nweb = ["Bash(curl:*)", "WebFetch"]\nother = ["Edit(a.py)"]\n')
    listed = run("agents", "allowed")
    assert listed.output.splitlines()[0].split() == ["web", "Bash(curl:*)"]
    printed = json.loads(run("agents", "allowed", "--json").output)
    assert printed["file"] == str(file)
    assert printed["agents"] == {"web": ["Bash(curl:*)", "WebFetch"], "other": ["Edit(a.py)"]}
    assert run("agents", "allowed", "web", "WebFetch", "--forget").exit_code == 0
    assert "WebFetch" not in file.read_text(encoding="utf-8")
    wrong = run("agents", "allowed", "web", "WebFetch", "--forget")
    assert wrong.exit_code == 2 and "its permissions are: Bash(curl:*)" in wrong.output
    assert run("agents", "allowed", "web", "--forget").exit_code == 0
    assert json.loads(run("agents", "allowed", "--json").output)["agents"] == {"other": ["Edit(a.py)"]}
    wrong = run("agents", "allowed", "othr", "--forget")
    assert wrong.exit_code == 2 and "did you mean other?" in wrong.output


def test_run_cannot_remove_permissions(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_CHILD_TOKEN", "x")
    assert "a run cannot change" in run("agents", "allowed", "a", "--forget").output


def test_check_reports_every_mistake_with_its_line(project: Path) -> None:
    lines = [
        *("description: d", "executr: claude", "profile: no-such", "settings: [usr]", "timeout_ms: soon"),
        *("executor: command", "permissions: {allow: ['Bash((']}"),
    ]
    bad = write_agent(project, ".retinue/agents/bad.md", "\n".join(lines))
    printed = json.loads(run("agents", "check", str(bad), "--json").stdout)["problems"]
    found = {row["line"]: f"{row['message']} {row.get('hint', '')}" for row in printed}
    assert sorted(found) == [3, 4, 5, 6, 7, 8]
    assert "did you mean executor?" in found[3]
    assert "no profile 'no-such'" in found[4]
    assert "unknown value: usr" in found[5]
    assert "a whole number" in found[6]
    assert "needs a `command`" in found[7]
    assert "not a permission rule" in found[8]
    write_agent(project, ".retinue/agents/bad.md", "description: d\noutput_schema: {type: objct}")
    [row] = json.loads(run("agents", "check", str(bad), "--json").stdout)["problems"]
    assert row["line"] == 3 and "not an output schema" in row["message"]


def test_check_warns_about_two_files_with_the_same_name_in_one_folder(project: Path) -> None:
    """In different folders the nearest file wins by design. In one folder it is a mistake."""
    write_agent(project, ".retinue/agents/a.md", "description: d\nname: same")
    second = write_agent(project, ".retinue/agents/b.md", "description: d\nname: same")
    write_agent(project, ".claude/agents/same.md", "description: d")
    result = run("agents", "check")
    assert result.exit_code == 0
    warning = "name: .retinue/agents/a.md is also named same and hides this file"
    assert f"{second}:3: warning: {warning}" in result.output
    assert result.stdout.count("warning") == 1


def test_check_explains_how_to_write_braces(project: Path) -> None:
    bad = write_agent(project, ".retinue/agents/bad.md", "description: d\ncommand: echo {}")
    assert f"{bad}:3: error: command: " in (printed := run("agents", "check").output)
    assert "write {{ and }} for braces" in printed


def test_agent_output_cannot_control_the_terminal(tmp_path: Path, environment: Mapping[str, str]) -> None:
    header = "description: loud\ncommand: [printf, '\\033]0;owned\\007hi']"
    write_agent(Path.home(), ".config/retinue/agents/loud.md", header)
    done = subprocess.run(
        [*RETINUE, "agent", "loud", "go"], capture_output=True, cwd=tmp_path, env=environment, timeout=30
    )
    assert done.stdout == b"hi\n", done.stderr


def test_long_result_is_written_to_a_file_whole_P4(project: Path) -> None:
    (project / "long.py").write_text("for n in range(5_000): print(f'{n} ' + 'x' * 1_000)")
    header = f"description: d\ncommand: [{sys.executable}, {project / 'long.py'}]"
    write_agent(Path.home(), f"{MINE}/long.md", header)
    with (project / "out.txt").open("wb") as out:
        done = subprocess.run(
            [*RETINUE, "agent", "long", "go"], stdout=out, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert done.returncode == 0, done.stderr
    expected = "".join(f"{n} " + "x" * 1_000 + "\n" for n in range(5_000))
    assert len(expected) > 5_000_000
    assert (project / "out.txt").read_text() == expected


def test_task_takes_context_model_and_timeout(own_folders: Path) -> None:
    write_agent(Path.home(), f"{MINE}/cat.md", "description: d\ncommand: cat", "")
    write_agent(Path.home(), f"{MINE}/slow.md", 'description: d\ncommand: [sleep, "1000"]', "")
    piped = CliRunner().invoke(main, ["agent", "cat", "review", "--context", "-"], input="a diff")
    assert piped.stdout == "review\n\nContext:\na diff\n"
    both = CliRunner().invoke(main, ["agent", "cat", "-", "--context", "-"], input="x")
    assert both.exit_code == 2
    assert "no model to choose" in run("agent", "cat", "x", "--model", "strong").stderr
    late = run("agent", "slow", "x", "--timeout", "0.2", "--json")
    assert late.exit_code == 3
    assert json.loads(late.stdout)["status"] == "timeout"
    assert run("agent", "cat", "x", "--timeout", "0").exit_code == 2


def test_root_option_names_the_project_of_an_agent(tmp_path: Path) -> None:
    write_agent(tmp_path / "there", ".retinue/agents/local-one.md", "description: of there", "")
    assert "local-one" not in run("agents").stdout
    assert "local-one" in run("agents", "--root", str(tmp_path / "there")).stdout
    assert run("agents", "show", "local-one", "--root", str(tmp_path / "there")).exit_code == 0
    write_agent(Path.home(), f"{MINE}/where.md", "description: d\ncommand: pwd", "")
    assert run("agent", "where", "x", "--root", str(tmp_path)).stdout.strip() == str(tmp_path)


def test_detached_run_goes_on_after_its_command(environment: Mapping[str, str]) -> None:
    """P5: the run belongs to a process of its own, and its result can be fetched later."""
    write_agent(
        Path.home(), f"{MINE}/waits.md", "description: d\ncommand: [sh, -c, 'cat; sleep 0.5; echo done']", ""
    )
    command = [*RETINUE, "agent", "waits", "-", "--detach", "--context", "more"]
    started = subprocess.run(
        command, input="hello", capture_output=True, text=True, env=dict(environment), timeout=50, check=True
    )
    run_id = started.stdout.strip()
    assert f"retinue wait {run_id}" in started.stderr
    waited = run("wait", run_id, "--timeout", "20")
    assert waited.exit_code == 0
    assert "hello\n\nContext:\nmore" in waited.stdout
    refused = subprocess.run(
        [*RETINUE, "agent", "nobody", "x", "--detach"],
        capture_output=True,
        text=True,
        env=dict(environment),
        timeout=50,
    )
    assert refused.returncode == 2
    assert "no agent is named 'nobody'" in refused.stderr


def test_new_agent_is_written_checked_and_never_over_another(tmp_path: Path) -> None:
    place = ("--root", str(tmp_path))
    done = run("agents", "new", "tester", "--description", 'Runs: "tests"', "--tool", "Read", *place)
    assert done.exit_code == 0, done.output
    file = tmp_path / ".retinue" / "agents" / "tester.md"
    assert done.stdout.strip() == str(file)
    shown = json.loads(run("agents", "show", "tester", *place, "--json").stdout)
    assert shown["agent"]["description"] == 'Runs: "tests"'
    again = run("agents", "new", "tester", "--description", "x", *place)
    assert again.exit_code == 1
    assert "exists already" in again.stderr
    for name in ("../x", "a b", ""):
        assert run("agents", "new", name, "--description", "x", *place).exit_code == 2
    wrong = run("agents", "new", "odd", "--description", "x", "--executor", "nothing", *place)
    assert wrong.exit_code == 1
    assert "executor" in wrong.stderr
    assert run("agents", "new", "mine", "--description", "x", "--user").exit_code == 0
    assert "mine" in run("agents").stdout


def test_new_agent_is_not_written_through_a_link_out_of_the_project(tmp_path: Path) -> None:
    """P6"""
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / ".retinue").symlink_to(outside)
    done = run("agents", "new", "x", "--description", "d", "--root", str(project))
    assert done.exit_code == 1
    assert "leads out of the project" in done.stderr
    assert not list(outside.iterdir())
