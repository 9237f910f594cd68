"""The MCP servers of a run, and how the exit of one is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from retinue.executors.cli.mcp_servers import ReadyServer, recorded_exits, retinue_server, with_exit_recorders

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="exits are recorded on Unix")

FAILING = ReadyServer(name="failing", argv=("sh", "-c", "exit 3"))


def test_exit_code_of_a_server_is_recorded_P8(tmp_path: Path) -> None:
    servers = (ReadyServer(name="remote", url="http://127.0.0.1:1"), FAILING)
    remote, failing = with_exit_recorders(servers, tmp_path)
    assert remote is servers[0]
    assert list(recorded_exits(servers, tmp_path)) == []
    assert subprocess.run(failing.argv, check=False).returncode == 3
    assert list(recorded_exits(servers, tmp_path)) == [("failing", "3")]


def test_retinues_own_server_is_started_without_a_recorder(tmp_path: Path) -> None:
    own = retinue_server({"RETINUE_CHILD_SOCKET": "/socket", "RETINUE_CHILD_TOKEN": "token"})
    assert own is not None
    assert list(with_exit_recorders((own,), tmp_path)) == [own]


def test_recorded_exit_code_is_not_read_through_a_planted_link_P6(tmp_path: Path) -> None:
    """The run can change the folder in which exit codes are recorded."""
    secret = tmp_path / "secret"
    secret.write_text("4242", encoding="utf-8")
    servers = (FAILING, FAILING)
    (tmp_path / "ended-0").symlink_to(secret)
    assert list(recorded_exits(servers, tmp_path)) == []
    (tmp_path / "ended-1").write_text("-9", encoding="ascii")
    assert list(recorded_exits(servers, tmp_path)) == [("failing", "-9")]
