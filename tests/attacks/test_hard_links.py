"""A hard link shows no secret, and a file that is refused because of one is not passed over in silence."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Self

import pytest

from retinue.codebase import Codebase, SearchPattern
from retinue.codebase.access.directory import DescriptorDirectory
from retinue.core import PathDenied, Stop
from tests.codebase.file_support import create_root


def make_deep_folder(folder: Path, levels: int) -> None:
    """Create folders one in another, and a secret in the last one with a second name beside them."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    secret = os.open(".env", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd)
    os.write(secret, b"needle\n")
    os.close(secret)
    os.link(".env", folder.parent / "linked-secret.txt", src_dir_fd=fd)
    os.close(fd)


@pytest.mark.parametrize("levels", [101, 400])
def test_a_deep_folder_neither_hides_other_files_nor_shows_its_own(tmp_path: Path, levels: int) -> None:
    """P6, P8: a search said that nothing matches, because hard links could not be looked up so deep."""
    root = create_root(tmp_path / "root", {"a.txt": "needle\n", "folder/b.txt": "hay\n"})
    os.link(root.path / "a.txt", root.path / "again.txt")
    make_deep_folder(root.path / "folder", levels)
    found = Codebase([root]).grep(SearchPattern("needle"), Stop(30))
    assert [match.entry.path for match in found.matches] == ["a.txt", "again.txt"]
    with pytest.raises(PathDenied):
        Codebase([root]).read("linked-secret.txt", Stop(30))


class PartlyUnreadable(DescriptorDirectory):
    """A directory without permission to read `folder`, even for root."""

    def enter(self, name: str) -> Self:
        if name == "folder":
            raise PermissionError(errno.EACCES, "no permission")
        return super().enter(name)


def test_an_unreadable_folder_is_told_where_it_hides_files_with_several_names(tmp_path: Path) -> None:
    """P7, P8"""
    root = create_root(tmp_path / "root", {"a.txt": "needle\n", "folder/b.txt": "hay\n"})
    os.link(root.path / "a.txt", root.path / "again.txt")
    codebase = Codebase([root], open_directory=PartlyUnreadable.from_path)
    found = codebase.grep(SearchPattern("needle"), Stop(30))
    assert found.matches == ()
    assert "unchecked hard links" in found.omitted.limits
    with pytest.raises(PathDenied, match="several names"):
        codebase.read("a.txt", Stop(30))


@pytest.mark.parametrize("secret", [".ssh/id_ed25519", ".netrc", ".aws/sso/cache/token"])
def test_a_hard_link_to_a_secret_of_the_home_directory_is_not_read(tmp_path: Path, secret: str) -> None:
    """P6"""
    root = create_root(tmp_path / "root", {"a.txt": "hay\n"})
    file = Path.home() / secret
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("needle\n", encoding="utf-8")
    os.link(file, root.path / "harmless.txt")
    codebase = Codebase([root])
    assert codebase.grep(SearchPattern("needle"), Stop(30)).matches == ()
    with pytest.raises(PathDenied):
        codebase.read("harmless.txt", Stop(30))


def test_a_hard_link_to_another_file_outside_is_read(tmp_path: Path) -> None:
    """Package managers link dependencies to a store outside; refusing them all would hide these files."""
    root = create_root(tmp_path / "root", {"a.txt": "hay\n"})
    (tmp_path / "store").write_text("needle\n", encoding="utf-8")
    os.link(tmp_path / "store", root.path / "package.js")
    assert len(Codebase([root]).grep(SearchPattern("needle"), Stop(30)).matches) == 1
