"""Changing files: below one root, not hidden, never through a link (P6)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from retinue.codebase import Codebase, FileWriter, Policy
from retinue.core import InvalidInput, LimitExceeded, PathDenied, PathMissing
from tests.codebase.file_support import create_root


def writer(folder: Path, policy: Policy | None = None) -> FileWriter:
    root = create_root(folder, {"src/app.py": "old\n", "README.md": "text\n"})
    return Codebase([root], policy).writer(root)


def write(files: FileWriter, path: str, data: bytes = b"new\n") -> None:
    files.write(files.entry(path), data)


def test_file_is_created_with_its_folders(tmp_path: Path) -> None:
    write(writer(tmp_path), "a/b/c.py")
    assert (tmp_path / "a/b/c.py").read_bytes() == b"new\n"


def test_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    files = writer(tmp_path)
    (tmp_path / "src/app.py").chmod(0o750)
    write(files, "src/app.py")
    assert (tmp_path / "src/app.py").read_bytes() == b"new\n"
    assert stat.S_IMODE((tmp_path / "src/app.py").stat().st_mode) == 0o750
    assert [path.name for path in (tmp_path / "src").iterdir()] == ["app.py"]


def test_other_name_of_a_file_keeps_its_content_P6(tmp_path: Path) -> None:
    files = writer(tmp_path / "root")
    os.link(tmp_path / "root/src/app.py", tmp_path / "outside.py")
    write(files, "src/app.py")
    assert (tmp_path / "outside.py").read_text() == "old\n"


@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks/post-checkout", ".GIT/config", ".git", "sub/.git/config", ".hg/hgrc"),
        *(".env", "deploy/.env.local", "key.pem", ".ssh/authorized_keys", "secrets/token.txt"),
    ],
)
def test_hidden_path_is_refused_P6(tmp_path: Path, path: str) -> None:
    files = writer(tmp_path)
    with pytest.raises(PathDenied):
        write(files, path)
    assert not (tmp_path / path).exists()


@pytest.mark.parametrize("path", ["../outside.py", "src/../../outside.py", "/etc/passwd", "a/../.git/x"])
def test_path_outside_the_root_is_refused_P6(tmp_path: Path, path: str) -> None:
    with pytest.raises(PathDenied):
        write(writer(tmp_path / "root"), path)


def test_link_is_never_followed_P6(tmp_path: Path) -> None:
    files = writer(tmp_path / "root")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("theirs")
    (tmp_path / "root/folder").symlink_to(outside)
    (tmp_path / "root/a.py").symlink_to(outside / "a.py")
    (tmp_path / "root/inner").symlink_to("src")
    for path in ("folder/a.py", "folder/new.py", "a.py", "inner/app.py"):
        with pytest.raises(PathDenied, match="link"):
            write(files, path)
    assert sorted(path.name for path in outside.iterdir()) == ["a.py"]
    assert (outside / "a.py").read_text() == "theirs"
    assert (tmp_path / "root/src/app.py").read_text() == "old\n"


def test_link_that_appears_after_the_check_is_replaced_not_followed_P6(tmp_path: Path) -> None:
    files = writer(tmp_path / "root")
    entry = files.entry("new.py")
    (tmp_path / "outside.py").write_text("theirs")
    (tmp_path / "root/new.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(PathDenied):
        files.write(entry, b"new\n")
    assert (tmp_path / "outside.py").read_text() == "theirs"


@pytest.mark.parametrize("path", ["", ".", "src"])
def test_folder_is_no_file(tmp_path: Path, path: str) -> None:
    with pytest.raises((InvalidInput, PathDenied)):
        write(writer(tmp_path), path)


def test_file_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises((InvalidInput, PathDenied)):
        write(writer(tmp_path), "README.md/inner.py")


def test_large_file_is_refused_P2(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded):
        write(writer(tmp_path, Policy(max_file_bytes=10)), "a.py", b"x" * 11)
    assert not (tmp_path / "a.py").exists()


def test_policy_of_the_user_holds_for_writing_too_P6(tmp_path: Path) -> None:
    with pytest.raises(PathDenied):
        write(writer(tmp_path, Policy(deny=("*.sql",))), "dump.sql")


def test_file_is_removed_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    files = writer(tmp_path)
    files.remove(files.entry("README.md"))
    assert not (tmp_path / "README.md").exists()
    with pytest.raises(PathMissing):
        files.remove(files.entry("README.md"))
