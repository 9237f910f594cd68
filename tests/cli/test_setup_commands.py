"""Installing, uninstalling and the doctor from a terminal (P6, P8, P10)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from retinue.cli import setup_commands
from retinue.cli.main import main
from retinue.setup import HOSTS
from tests.conftest import RETINUE

NEIGHBOUR = (
    '{\n  // mine\n  "mcpServers": {\n    "other": {"command": "x", "env": {"TOKEN": "hunter2"}}\n  }\n}\n'
)


@pytest.fixture
def home() -> Path:
    return Path.home()


@pytest.fixture
def cursor_file(home: Path) -> Path:
    file = home / ".cursor/mcp.json"
    file.parent.mkdir()
    file.write_text(NEIGHBOUR)
    return file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_the_hosts_offered_are_the_hosts_there_are() -> None:
    assert tuple(host.name for host in HOSTS) == setup_commands.HOST_NAMES


@pytest.mark.parametrize("host", setup_commands.HOST_NAMES)
def test_every_host_is_installed_and_uninstalled(host: str, tmp_path: Path) -> None:
    added = run("install", host, "--root", str(tmp_path))
    assert added.exit_code == 0, added.output
    assert added.stdout.startswith("Added Retinue to ")
    assert "nothing to do" in run("install", host, "--root", str(tmp_path)).stdout
    removed = run("uninstall", host)
    assert removed.exit_code == 0
    assert removed.stdout.startswith("Took Retinue out of ")
    assert "The file as it was: ~/" in removed.stdout
    again = run("uninstall", host)
    assert (again.exit_code, "nothing to do" in again.stdout) == (0, True)


def test_real_program_installs_its_own_absolute_path_and_leaves_the_file_as_it_was(
    cursor_file: Path, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    def retinue(*arguments: str) -> str:
        done = subprocess.run(
            [*RETINUE, *arguments], env=environment, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    outcome = json.loads(retinue("install", "cursor", "--root", str(tmp_path), "--json"))
    assert (outcome["action"], outcome["applied"], outcome["file"]) == ("add", True, "~/.cursor/mcp.json")
    text = cursor_file.read_text()
    written = json.loads(text.replace("// mine", ""))["mcpServers"]["retinue"]
    assert written["command"] == sys.executable
    assert written["args"] == ["-m", "retinue", "serve", "--root", str(tmp_path)]
    started = subprocess.run(
        [written["command"], *written["args"][:2], "--version"], capture_output=True, text=True, timeout=50
    )
    assert started.stdout.startswith("retinue, version")
    retinue("uninstall", "cursor")
    assert cursor_file.read_text() == NEIGHBOUR


def test_print_shows_the_entry_alone_and_writes_nothing(home: Path) -> None:
    printed = run("install", "lmstudio", "--print")
    entry = json.loads(printed.stdout)["mcpServers"]["retinue"]
    assert os.path.isabs(entry["command"])  # noqa: PTH117
    assert entry["timeout"] == 600000
    assert "~/.lmstudio/mcp.json" in printed.stderr
    assert run("install", "goose", "--print").stdout.startswith(
        "extensions:\n  retinue:\n    enabled: true\n"
    )
    assert not (home / ".lmstudio").exists()


def test_dry_run_shows_the_difference_and_writes_nothing(cursor_file: Path) -> None:
    """P6: the neighbour's token is not in it."""
    shown = run("install", "cursor", "--dry-run")
    assert shown.exit_code == 0
    assert '+    "retinue": {' in shown.stdout
    assert "hunter2" not in shown.output
    assert cursor_file.read_text() == NEIGHBOUR
    run("install", "cursor")
    assert '-    "retinue": {' in run("uninstall", "cursor", "--dry-run").stdout
    assert "retinue" in cursor_file.read_text()


def test_change_of_hidden_values_alone_is_said(cursor_file: Path) -> None:
    """P8: an empty difference would look as if nothing would happen."""
    run("install", "cursor", "--env", "KEY=old")
    assert (
        "Only values that are not shown" in run("install", "cursor", "--env", "KEY=new", "--dry-run").stdout
    )


def test_link_is_printed_alone() -> None:
    link = run("install", "lmstudio", "--link").stdout
    assert link.startswith("lmstudio://add_mcp?name=retinue&config=") and link.count("\n") == 1
    assert json.loads(run("install", "lmstudio", "--link", "--json").stdout) == {"link": link.strip()}
    refused = run("install", "goose", "--link")
    assert (refused.exit_code, "no install link" in refused.output) == (2, True)


def test_project_scope_goes_into_the_folder_we_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = json.loads(run("install", "vscode", "--scope", "project", "--env", "A=b=c", "--json").stdout)
    assert outcome["file"] == ".vscode/mcp.json"
    written = json.loads((tmp_path / ".vscode/mcp.json").read_text())["servers"]["retinue"]
    assert written["env"] == {"A": "b=c"}
    assert not (home / ".config").exists()


def test_uninstall_without_a_host_finds_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("install", "claude", "--scope", "project")
    run("install", "claude")
    run("install", "goose")
    only = json.loads(run("uninstall", "--scope", "project", "--json").stdout)
    assert [(each["host"], each["scope"]) for each in only["removed"]] == [("claude", "project")]
    rest = json.loads(run("uninstall", "--json").stdout)
    assert [(each["host"], each["scope"]) for each in rest["removed"]] == [
        ("claude", "user"),
        ("goose", "user"),
    ]
    assert run("uninstall").stdout == "Retinue is not in any host: nothing to do.\n"


def test_one_broken_file_does_not_keep_us_in_the_others(cursor_file: Path) -> None:
    run("install", "lmstudio")
    cursor_file.write_text("{")
    done = run("uninstall")
    assert done.exit_code == 1
    assert "Took Retinue out of LM Studio" in done.stdout
    assert "~/.cursor/mcp.json cannot be edited: line 1" in done.stderr
    assert cursor_file.read_text() == "{"


@pytest.mark.parametrize(
    "arguments",
    [
        ("install",),
        ("install", "emacs"),
        ("install", "cursor", "--scope", "planet"),
        ("install", "goose", "--scope", "project"),
        ("uninstall", "goose", "--scope", "project"),
        ("install", "cursor", "--env", "NOVALUE"),
        ("install", "cursor", "--env", "A B=c"),
        ("install", "cursor", "--root", "/no/such/folder"),
        ("install", "cursor", "--print", "--dry-run"),
    ],
)
def test_wrong_usage_ends_with_two_and_changes_nothing(home: Path, arguments: tuple[str, ...]) -> None:
    before = sorted(home.iterdir())
    assert run(*arguments).exit_code == 2
    assert sorted(home.iterdir()) == before


def test_failure_is_json_when_json_was_asked_for(cursor_file: Path) -> None:
    cursor_file.chmod(0o444)
    failed = run("install", "cursor", "--json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["error"]["code"] == "unavailable"


def test_program_in_a_cache_is_warned_about(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "uv/archive-v0/x/bin/retinue"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert "uv tool install retinue" in run("install", "cursor").stdout


def test_doctor_says_what_is_wrong_and_how_to_mend_it(tmp_path: Path) -> None:
    well = run("doctor", "--root", str(tmp_path))
    assert well.exit_code == 0, well.output
    assert "ok       roots" in well.stdout
    ill = run("doctor", "--root", str(tmp_path / "gone"))
    assert ill.exit_code == 1
    assert "does not exist" in ill.stdout
    assert "-> create it, or correct the path" in ill.stdout


def test_doctor_survives_settings_that_do_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_LOG_LEVEL", "loud")
    told = run("doctor", "--json")
    assert told.exit_code == 1
    answer = json.loads(told.stdout)
    assert answer["healthy"] is False
    problem = next(check for check in answer["checks"] if check["name"] == "configuration")
    assert problem["status"] == "problem" and "RETINUE_LOG_LEVEL" in problem["finding"]


def test_real_doctor_is_quick_and_contacts_the_configured_endpoint(environment: Mapping[str, str]) -> None:
    settings = {"RETINUE_MODELS__ENDPOINT": "http://127.0.0.1:9/v1", "SOME_TOKEN": "hunter2"}
    done = subprocess.run(
        [*RETINUE, "doctor", "--json"],
        env={**environment, **settings},
        capture_output=True,
        text=True,
        timeout=50,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert "hunter2" not in done.stdout
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["model endpoint"]["status"] == "problem"
