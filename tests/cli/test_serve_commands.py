"""`retinue serve` and `retinue token`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run


def test_token_is_printed_and_replaced() -> None:
    first = run("token").output.strip()
    assert json.loads(run("token", "--json").output) == {"token": first}
    assert run("token", "--new").output.strip() != first


def test_server_for_several_hosts_cannot_follow_one() -> None:
    refused = run("serve", "--follow-host", "--http", "127.0.0.1:0")
    assert (refused.exit_code, "cannot be combined" in refused.output) == (2, True)


@pytest.mark.parametrize("root", ["missing", "file", "/"])
def test_server_does_not_start_with_an_invalid_root(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").touch()
    result = run("serve", "--root", str(tmp_path / root))
    assert result.exit_code == 2
    assert "--root: roots: " in result.output
