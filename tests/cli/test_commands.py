"""The command line: fast help, honest failures, JSON beside every view (P8)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from retinue.cli.main import COMMANDS, main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_help_names_every_command_and_loads_no_heavy_library() -> None:
    code = (
        "import sys\nfrom retinue.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'mcp', 'pydantic', 'anyio', 'asyncio', 're2', 'psutil', 'sqlite3'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    for name in COMMANDS:
        assert f"  {name}" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output


def test_config_lists_every_setting_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_LIMITS__MAX_FILES_READ", "7")
    rows = {row["key"]: row for row in json.loads(run("config", "--json").output)}
    assert rows["limits.max_files_read"]["value"] == 7
    assert rows["limits.max_files_read"]["origin"] == "RETINUE_LIMITS__MAX_FILES_READ"
    assert rows["limits.max_bytes_read"]["origin"] == "default"
    assert "limits.max_files_read" in run("config").output


def test_config_says_where_the_users_own_file_is() -> None:
    told = run("config").stderr
    assert "retinue.toml (not there yet)" in told
    assert str(Path.home()) in told


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_config_check_looks_at_the_models_too(tmp_path: Path, text: str, said: str) -> None:
    """P6, P8: what is wrong, where, and what to write instead; a password in it is not repeated."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    result = run("config", "--check", str(file))
    assert result.exit_code == 2
    assert f"{file}: {said}" in result.stderr
    assert "me:pass" not in result.output


def test_config_check_tells_a_good_file_from_a_bad_one(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("log_level = 'info'\n")
    bad.write_text("log_levle = 'info'\n")
    assert run("config", "--check", str(good)).exit_code == 0
    assert json.loads(run("config", "--check", str(good), "--json").output)["valid"] is True
    wrong = run("config", "--check", str(bad))
    assert wrong.exit_code == 2
    assert "did you mean log_level?" in wrong.output


def test_failure_with_json_wanted_is_json_on_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_LOG_LEVEL", "loud")
    result = run("config", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "config_invalid"


def test_token_is_printed_and_replaced() -> None:
    first = run("token").output.strip()
    assert json.loads(run("token", "--json").output) == {"token": first}
    assert run("token", "--new").output.strip() != first


@pytest.mark.parametrize("root", ["missing", "file", "/"])
def test_impossible_root_stops_the_server_with_a_reason(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").touch()
    result = run("serve", "--root", str(tmp_path / root))
    assert result.exit_code == 2
    assert "--root: roots: " in result.output


def test_unknown_command_is_refused() -> None:
    result = run("sevre")
    assert result.exit_code == 2
    assert "did you mean serve?" in result.output
