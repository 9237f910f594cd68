"""`retinue install`, `uninstall`, `doctor` and `config` (P6, P8, P10)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from retinue.setup import HOSTS
from tests.cli.conftest import run
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


HOST_NAMES = [host.name for host in HOSTS]


@pytest.mark.parametrize("host", HOST_NAMES)
def test_install_and_uninstall_work_for_every_host(host: str, tmp_path: Path) -> None:
    added = run("install", host, "--root", str(tmp_path))
    assert added.exit_code == 0, added.output
    assert added.stdout.startswith("Added Retinue to ")
    assert "Nothing to do" in run("install", host, "--root", str(tmp_path)).stdout
    removed = run("uninstall", host)
    assert removed.exit_code == 0
    assert removed.stdout.startswith("Removed Retinue from ")
    again = run("uninstall", host)
    assert (again.exit_code, "Nothing to do" in again.stdout) == (0, True)


def test_installed_entry_has_the_absolute_path_and_uninstall_restores_the_file(
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


def test_print_option_prints_the_entry_and_writes_nothing(home: Path) -> None:
    printed = run("install", "lmstudio", "--print")
    entry = json.loads(printed.stdout)["mcpServers"]["retinue"]
    assert os.path.isabs(entry["command"])  # noqa: PTH117
    assert entry["timeout"] == 600000
    assert "~/.lmstudio/mcp.json" in printed.stderr
    assert run("install", "goose", "--print").stdout.startswith(
        "extensions:\n  retinue:\n    enabled: true\n"
    )
    assert not (home / ".lmstudio").exists()


def test_dry_run_prints_a_diff_and_writes_nothing(cursor_file: Path) -> None:
    """P6: the token of the other server is masked."""
    shown = run("install", "cursor", "--dry-run")
    assert shown.exit_code == 0
    assert '+    "retinue": {' in shown.stdout
    assert "hunter2" not in shown.output
    assert cursor_file.read_text() == NEIGHBOUR
    run("install", "cursor")
    assert '-    "retinue": {' in run("uninstall", "cursor", "--dry-run").stdout
    assert "retinue" in cursor_file.read_text()


def test_dry_run_reports_a_change_of_masked_values(cursor_file: Path) -> None:
    """P8: an empty diff would look as if nothing changed."""
    run("install", "cursor", "--env", "KEY=old")
    assert (
        "Only masked values would change" in run("install", "cursor", "--env", "KEY=new", "--dry-run").stdout
    )


def test_link_option_prints_only_the_link() -> None:
    link = run("install", "lmstudio", "--link").stdout
    assert link.startswith("lmstudio://add_mcp?name=retinue&config=") and link.count("\n") == 1
    assert json.loads(run("install", "lmstudio", "--link", "--json").stdout) == {"link": link.strip()}
    refused = run("install", "goose", "--link")
    assert (refused.exit_code, "no install link" in refused.output) == (2, True)


def test_project_scope_writes_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = json.loads(run("install", "vscode", "--scope", "project", "--env", "A=b=c", "--json").stdout)
    assert outcome["file"] == ".vscode/mcp.json"
    written = json.loads((tmp_path / ".vscode/mcp.json").read_text())["servers"]["retinue"]
    assert written["env"] == {"A": "b=c"}
    assert not (home / ".config").exists()


@pytest.mark.parametrize("host", [host.name for host in HOSTS if host.project_file])
def test_projects_file_has_no_paths_of_this_machine(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: the file is made to be committed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    for roots in ([], ["--root", "src"], ["--root", str(tmp_path)]):
        outcome = json.loads(run("install", host, "--scope", "project", *roots, "--json").stdout)
        text = (tmp_path / outcome["file"]).read_text()
        assert "retinue" in text and str(tmp_path) not in text
        assert str(Path.home()) not in text and sys.prefix not in text
    refused = run("install", host, "--scope", "project", "--root", str(tmp_path.parent))
    assert (refused.exit_code, "outside of this project" in refused.output) == (2, True)
    assert str(tmp_path.parent) + "\n" not in (tmp_path / outcome["file"]).read_text()


def test_install_lets_the_open_project_be_read_where_the_host_tells_it(tmp_path: Path) -> None:
    """A host that does not tell it needs a root; the command says so instead of failing later."""
    assert "--follow-host" in run("install", "claude", "--print").stdout
    assert "--follow-host" not in run("install", "claude", "--root", str(tmp_path), "--print").stdout
    both = run("install", "codex", "--root", str(tmp_path), "--follow-host", "--print").stdout
    assert "--follow-host" in both and str(tmp_path) in both
    assert "Nothing may be read yet" in run("install", "claude", "--no-follow-host").stdout
    assert "--root DIR" in run("install", "claude-desktop").stdout
    refused = run("install", "lmstudio", "--follow-host")
    assert (refused.exit_code, "does not tell" in refused.output) == (2, True)


def test_approval_is_written_only_on_request_and_told_otherwise(home: Path) -> None:
    """P7: a person decides whether tools are called without being asked."""
    assert "--approve" in run("install", "codex").stdout
    assert "approve" not in (home / ".codex/config.toml").read_text()
    assert "--approve" not in run("install", "codex", "--approve").stdout
    assert 'default_tools_approval_mode = "approve"' in (home / ".codex/config.toml").read_text()
    refused = run("install", "claude", "--approve")
    assert (refused.exit_code, "--allowedTools" in refused.output) == (2, True)


def test_list_shows_every_host_and_where_retinue_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (home / ".codex").mkdir()
    run("install", "codex")
    listed = json.loads(run("install", "--list", "--json").stdout)
    assert [host["name"] for host in listed] == HOST_NAMES
    codex = next(host for host in listed if host["name"] == "codex")
    assert (codex["found"], codex["installed"]) == (True, ["user"])
    assert codex["files"] == {"user": "~/.codex/config.toml", "project": ".codex/config.toml"}
    table = run("install", "--list").stdout
    assert "Claude Desktop" in table and "Claude Code" in table
    assert run("install").exit_code == 2


def test_name_says_which_product_is_meant() -> None:
    added = run("install", "claude-code").stdout
    assert "Claude Code (" in added and "desktop app is `claude-desktop`" in added
    refused = run("install", "copilot")
    assert (refused.exit_code, "did you mean copilot-cli?" in refused.output) == (2, True)


def test_uninstall_without_a_host_removes_every_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert run("uninstall").stdout == "Nothing to do: Retinue is not installed in any host.\n"


def test_uninstall_continues_after_a_broken_file(cursor_file: Path) -> None:
    run("install", "lmstudio")
    cursor_file.write_text("{")
    done = run("uninstall")
    assert done.exit_code == 1
    assert "Removed Retinue from LM Studio" in done.stdout
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
def test_wrong_usage_exits_with_2_and_changes_nothing(home: Path, arguments: tuple[str, ...]) -> None:
    before = sorted(home.iterdir())
    assert run(*arguments).exit_code == 2
    assert sorted(home.iterdir()) == before


def test_install_error_is_json_with_the_json_option(cursor_file: Path) -> None:
    cursor_file.chmod(0o444)
    failed = run("install", "cursor", "--json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["error"]["code"] == "unavailable"


def test_install_says_if_the_host_is_not_installed(cursor_file: Path) -> None:
    assert "LM Studio is not installed (no ~/.lmstudio found)." in run("install", "lmstudio").output
    assert "is not installed" not in run("install", "cursor").output


def test_install_warns_about_a_program_in_the_uv_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "uv/archive-v0/x/bin/retinue"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert "uv tool install" in run("install", "cursor").stdout


def test_doctor_prints_problems_with_their_fixes(tmp_path: Path) -> None:
    well = run("doctor", "--root", str(tmp_path))
    assert well.exit_code == 0, well.output
    assert "ok       roots" in well.stdout
    ill = run("doctor", "--root", str(tmp_path / "gone"))
    assert ill.exit_code == 1
    words = " ".join(ill.stdout.split())  # where lines are broken depends on the length of the path
    assert "does not exist" in words
    assert "-> create it, or correct the path" in words


def test_doctor_fits_a_hundred_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that have no blanks, such as paths, stay whole. Further lines stand below the first."""
    monkeypatch.setenv("RETINUE_LOG_LEVEL", "loud")
    lines = run("doctor").stdout.splitlines()
    assert len(lines) > 10
    assert all(len(line) <= 100 or len(line.split()[-1]) > 40 for line in lines)
    assert all(line.split()[0] in ("ok", "warning", "problem") for line in lines if not line.startswith(" "))
    assert all(not line[:20].strip() for line in lines if line.startswith(" "))


def test_doctor_reports_settings_that_do_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_LOG_LEVEL", "loud")
    result = run("doctor", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
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


def test_wrong_value_is_shown_as_it_was_typed() -> None:
    result = run("config", "set", "models.patience_s", "soon")
    assert result.exit_code == 2
    assert "models.patience_s = 'soon': must be an integer from 1 to 3600" in result.stderr


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
def test_folder_that_may_not_be_read_is_refused_as_a_root(tmp_path: Path) -> None:
    """P8: "not found" would claim that it was searched."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    result = run("locate", "retries", "--root", str(closed))
    assert result.exit_code == 2
    assert "not allowed to read" in result.stderr


def test_config_lists_every_setting_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_LIMITS__MAX_FILES_READ", "7")
    rows = {row["key"]: row for row in json.loads(run("config", "--json").output)}
    assert rows["limits.max_files_read"]["value"] == 7
    assert rows["limits.max_files_read"]["origin"] == "RETINUE_LIMITS__MAX_FILES_READ"
    assert rows["limits.max_bytes_read"]["origin"] == "default"
    assert "limits.max_files_read" in run("config").output


def test_config_prints_the_path_of_the_users_file() -> None:
    printed = run("config").stderr
    assert "retinue.toml (does not exist yet)" in printed
    assert str(Path.home()) in printed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[models.endpoints.a]\n", "models.endpoints.a.url: is missing"),
        (
            "[models.endpoints.a]\nurl = 'ftp://x'\n",
            "models.endpoints.a.url: the URL of a model server is not",
        ),
        (
            "[models]\nendpoint = 'http://me:pass@x'\n",
            "models.endpoint: the URL of a model server contains a user name",
        ),
        ("[models.tiers.fast]\nendpoint = 'big'\n", "models.tiers.fast.endpoint = 'big': neither a URL nor"),
    ],
)
def test_config_check_validates_model_endpoints(tmp_path: Path, text: str, expected: str) -> None:
    """P6, P8: the error names the key and the fix, but not a password in the value."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    result = run("config", "--check", str(file))
    assert result.exit_code == 2
    assert f"{file}: {expected}" in result.stderr
    assert "me:pass" not in result.output


def test_config_check_accepts_a_valid_file_and_refuses_an_invalid_one(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("log_level = 'info'\n")
    bad.write_text("log_levle = 'info'\n")
    assert run("config", "--check", str(good)).exit_code == 0
    assert json.loads(run("config", "--check", str(good), "--json").output)["valid"] is True
    wrong = run("config", "--check", str(bad))
    assert wrong.exit_code == 2
    assert "did you mean log_level?" in wrong.output
