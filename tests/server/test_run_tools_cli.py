"""The command line shows and controls the runs of a server (P6, P8)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from tests.conftest import RETINUE
from tests.server.conftest import SECRET, call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]


def cli(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([*RETINUE, *arguments], capture_output=True, text=True, timeout=40)
    return done.returncode, done.stdout


def in_process(*arguments: str) -> tuple[int, str]:
    """Run a command in this process, which is faster than `cli`."""
    done = CliRunner().invoke(main, list(arguments))
    return done.exit_code, done.stdout


async def test_command_line_shows_answers_and_cancels_runs_of_a_server() -> None:
    order = {"do": "call", "calls": [{"tool": "ask_parent", "arguments": {"question": "go on?"}}]}
    async with host() as client:
        asked = await call(client, "run_subagent", agent_name="asks", prompt=json.dumps(order), wait_s=20)
        sleeping = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        _, table = await anyio.to_thread.run_sync(in_process, "runs", "--active")
        assert "asks: go on?" in table
        _, listed = await anyio.to_thread.run_sync(in_process, "runs", "--active", "--json")
        assert len(json.loads(listed)["runs"]) == 2
        code, _ = await anyio.to_thread.run_sync(cli, "wait", asked["run_id"], "--timeout", "5")
        assert code == 4
        code, _ = await anyio.to_thread.run_sync(in_process, "reply", asked["run_id"], "yes")
        assert code == 0
        code, told = await anyio.to_thread.run_sync(cli, "wait", asked["run_id"], "--timeout", "20")
        assert code == 0
        assert '"answer": "yes"' in told
        code, told = await anyio.to_thread.run_sync(cli, "cancel", sleeping["run_id"])
        assert (code, told.strip()) == (0, f"{sleeping['run_id']} is canceled")
        code, log = await anyio.to_thread.run_sync(
            in_process, "logs", asked["run_id"], "-f", "--stream", "stdout"
        )
        assert code == 0
        assert '"answer": "yes"' in log


def test_agent_command_runs_in_the_foreground() -> None:
    assert cli("agent", "echo", "hello") == (0, "hello\n")
    code, output = in_process("agent", "fails", "x", "--json")
    assert code == 1
    assert json.loads(output)["status"] == "error"
    assert in_process("agent", "ecko", "x")[0] == 2
    assert in_process("reply", "1k09m8cp19a5a0m", "x")[0] == 1
    assert "echo" in in_process("agents")[1]


def test_command_line_redacts_secrets_in_tasks_and_settings() -> None:
    """P6: text on the command line may contain secrets."""
    assert in_process("agent", "echo", f"use {SECRET}")[0] == 0
    for arguments in (("runs",), ("runs", "--json")):
        assert SECRET not in in_process(*arguments)[1]
    done = subprocess.run(
        [*RETINUE, "config"],
        capture_output=True,
        text=True,
        env={**os.environ, "RETINUE_X": SECRET},
        timeout=30,
    )
    assert done.returncode == 2
    assert SECRET not in done.stderr


def test_unusable_data_folder_is_reported_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*RETINUE, "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "RETINUE_DATA_DIR": str(tmp_path / "file" / "data")},
        timeout=30,
    )
    assert done.returncode == 1
    assert "the data folder cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
