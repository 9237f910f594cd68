"""The `retinue` command: fast help, lazy subcommands, errors as text and JSON (P8)."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from retinue.cli.main import COMMANDS
from tests.cli.conftest import run


def test_help_lists_every_command_without_loading_heavy_libraries() -> None:
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
def test_help_of_every_command_has_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    cut = [line for line in result.output.splitlines() if line.endswith("...") and line.startswith("  ")]
    assert not cut, "these lines of subcommands are too long to be shown"


def test_error_is_json_on_stdout_with_the_json_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_LOG_LEVEL", "loud")
    result = run("config", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "config_invalid"


def test_unknown_command_is_refused_with_a_suggestion() -> None:
    result = run("sevre")
    assert result.exit_code == 2
    assert "did you mean serve?" in result.output


def test_help_names_the_exit_codes_and_each_command_once() -> None:
    shown = run("--help").output
    for code in ("0    success", "4    not ended", "130  Ctrl-C"):
        assert code in shown
    for name in COMMANDS:
        assert len(re.findall(rf"^  {name} ", shown, re.MULTILINE)) == 1
    assert "\nOther:" not in shown
    assert "...\n" not in shown.partition("Ask about code:")[2], "a command's line is too long to be shown"


def test_version_has_a_short_option() -> None:
    assert run("-V").output == run("--version").output
