"""Skills are written as a whole, inside their folder only, and never over another one (P6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import Conflict, InvalidInput, Unavailable
from retinue.definitions import SkillFolder, check_skill
from retinue.learning import (
    SkillPoint,
    check_skill_name,
    copy_skill,
    find_points,
    remove_skill,
    skill_document,
    write_skill,
)
from tests.learning.skill_support import Place, write_skill_file


@pytest.fixture
def folder(tmp_path: Path) -> SkillFolder:
    project = tmp_path / "project"
    project.mkdir()
    return SkillFolder(project / ".retinue/skills", "project", ".retinue/skills", project)


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "", ".", "Big", "a--b", "-a", "a-", "drafts", "x" * 65, "a b", "a\0", "ü", "a\n"]
)
def test_name_that_is_no_plain_name_is_refused_P6(folder: SkillFolder, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid name"):
        check_skill_name(name)
    with pytest.raises(InvalidInput):
        write_skill(folder, name, "text")
    assert not folder.path.exists()


@pytest.mark.parametrize(
    "description",
    [
        "Plain.",
        "How errors: codes",
        "a\n---\nname: other",
        "# no",
        "- no",
        "'",
        '"',
        "yes",
        "[a]",
        "ümlaut {x}",
    ],
)
def test_description_cannot_break_out_of_the_header(folder: SkillFolder, description: str) -> None:
    text = skill_document("mine", description, ["a, b", "c: d"])
    assert [each for each in check_skill(text.encode(), "mine", is_folder=True) if each.fatal] == []
    assert text.count("\nname: ") == 1


def test_existing_skill_is_kept(folder: SkillFolder) -> None:
    file = write_skill(folder, "mine", "first")
    assert file == folder.path / "mine" / "SKILL.md"
    with pytest.raises(Conflict, match="exists already"):
        write_skill(folder, "mine", "second")
    assert file.read_text() == "first"
    assert sorted(each.name for each in file.parent.iterdir()) == ["SKILL.md"], "no draft is left behind"
    (folder.path / "single.md").write_text("x")
    with pytest.raises(Conflict):
        write_skill(folder, "single", "x")


def test_nothing_is_written_through_a_link_P6(folder: SkillFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder.path.mkdir(parents=True)
    (folder.path / "mine").symlink_to(outside)
    with pytest.raises(Conflict):
        write_skill(folder, "mine", "text")
    linked = SkillFolder(tmp_path / "project" / "linked", "project", "linked", tmp_path / "project")
    linked.path.symlink_to(outside)
    for write in (lambda: write_skill(linked, "new", "x"), lambda: copy_skill(outside, linked, "new")):
        with pytest.raises(Conflict):
            write()
    assert list(outside.iterdir()) == []


def test_copy_takes_plain_files_and_leaves_nothing_if_it_fails(folder: SkillFolder, tmp_path: Path) -> None:
    source = write_skill_file(tmp_path / "from", "forms").parent
    (source / "lib").mkdir()
    (source / "lib" / "fill.py").write_text("print()")
    (source / ".git").mkdir()
    file = copy_skill(source, folder, "forms")
    assert file.read_bytes() == (source / "SKILL.md").read_bytes()
    copied = [each.relative_to(file.parent).as_posix() for each in file.parent.rglob("*") if each.is_file()]
    assert sorted(copied) == ["SKILL.md", "lib/fill.py"]
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match="link is a link"):
        copy_skill(source, folder, "again")
    assert sorted(each.name for each in folder.path.iterdir()) == ["forms"]


def test_removed_skill_can_be_moved_back(place: Place) -> None:
    file = write_skill_file(place.own, "mine")
    target = remove_skill(place.catalog().live()["mine"].file, place.folder / "removed")
    assert not file.parent.exists()
    target.rename(file.parent)
    assert list(place.catalog().live()) == ["mine"]


def test_folder_that_cannot_be_written_is_said(folder: SkillFolder) -> None:
    folder.path.parent.mkdir()
    folder.path.write_text("a file")
    with pytest.raises(Unavailable, match="cannot be written"):
        write_skill(folder, "mine", "text")


def test_points_are_found_with_their_lines() -> None:
    body = (
        "# Steps\n\n1. First\n   goes on\n2) Second\n\n```\n3. code\n  more\n```\n10. Tenth\n\n on\nend\n x"
    )
    assert find_points(body) == (
        SkillPoint(1, 3, "First\ngoes on", last=4),
        SkillPoint(2, 5, "Second", last=5),
        SkillPoint(10, 11, "Tenth\non", last=13),
    )


def test_skill_that_could_not_be_written_takes_no_name(folder: SkillFolder) -> None:
    """As on a full disk: files may not grow here."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(Unavailable, match="cannot be written"):
            write_skill(folder, "mine", "a text that is too long")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(folder.path.iterdir()) == []
    write_skill(folder, "mine", "a text that is too long")
