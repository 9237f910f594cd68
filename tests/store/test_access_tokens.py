"""The server's token is private, stable, and the same for every server of a data folder."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retinue.core import Unavailable
from retinue.store import load_or_create_token, replace_token


def test_token_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    token = load_or_create_token(data)
    assert len(token) >= 32
    assert load_or_create_token(data) == token
    if os.name == "posix":
        assert stat.S_IMODE((data / "token").stat().st_mode) == 0o600
        assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_servers_that_start_together_agree_on_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        tokens = set(pool.map(load_or_create_token, [tmp_path / "data"] * 64))
    assert len(tokens) == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["token"]


def test_new_token_replaces_the_old_one(tmp_path: Path) -> None:
    assert load_or_create_token(tmp_path) != replace_token(tmp_path) == load_or_create_token(tmp_path)


@pytest.mark.parametrize("content", ["", "short", "\xff" * 40])
def test_damaged_token_is_refused_with_a_hint(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content, encoding="latin-1")
    with pytest.raises(Unavailable) as caught:
        load_or_create_token(tmp_path)
    assert "retinue token --new" in str(caught.value.hint)


def test_data_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable):
        load_or_create_token(tmp_path / "file" / "data")
