"""Projects are trusted by their exact path, and an unreadable file trusts nothing (P7)."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from threading import Thread

import pytest

from retinue.core import Unavailable
from retinue.store import TrustedProjects
from retinue.store.user_decisions import TRUST_FILE


def test_trust_covers_exactly_one_folder_and_persists(tmp_path: Path) -> None:
    project, data = tmp_path / "project", tmp_path / "data"
    (project / "clone").mkdir(parents=True)
    (tmp_path / "link").symlink_to(project)
    TrustedProjects(data).add(tmp_path / "link")
    known = TrustedProjects(data)
    assert project in known
    assert project / "clone" not in known
    assert tmp_path not in known
    assert known.paths() == [str(project)]
    known.remove(project)
    assert project not in TrustedProjects(data)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff", b'[["/"]]'])
def test_unreadable_file_trusts_nothing_and_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TRUST_FILE).write_bytes(content)
    known = TrustedProjects(tmp_path)
    assert tmp_path not in known
    if content != b'[["/"]]':
        with pytest.raises(Unavailable, match="cannot be used"):
            known.add(tmp_path)
        assert (tmp_path / TRUST_FILE).read_bytes() == content


def test_concurrent_writers_lose_no_project(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(20)]
    threads = [Thread(target=TrustedProjects(tmp_path / "data").add, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert TrustedProjects(tmp_path / "data").paths() == sorted(map(str, folders))
    assert not list((tmp_path / "data").glob(".*"))


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")
def test_only_its_owner_can_write_the_file(tmp_path: Path) -> None:
    TrustedProjects(tmp_path / "data").add(tmp_path)
    assert stat.S_IMODE((tmp_path / "data" / TRUST_FILE).stat().st_mode) == 0o600
