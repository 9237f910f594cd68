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


@pytest.mark.parametrize("root", ["missing", "file", "/"])
def test_server_does_not_start_with_an_invalid_root(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").touch()
    result = run("serve", "--root", str(tmp_path / root))
    assert result.exit_code == 2
    assert "--root: roots: " in result.output
