"""Skills have three shapes, headers are read alone, and no link leads out of their folder (P6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retinue.definitions import (
    MalformedDefinition,
    SkillFile,
    SkillFolder,
    read_skill,
    read_skill_file,
    read_skill_header,
)
from retinue.definitions.skill_files import MAX_SKILLS_PER_FOLDER

HEADER = "---\nname: mine\ndescription: Does it.\n---\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "skills"
    path.mkdir(parents=True)
    return path


def found_in(folder: Path) -> dict[str, SkillFile]:
    where = SkillFolder(folder, "project", "skills", folder.parent)
    headers = [read_skill_header(entry, where) for entry in where.entries()]
    return {each.name: each for each in headers if each is not None}


def test_all_three_shapes_are_skills(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "SKILL.md").write_text("---\nname: one\ndescription: First.\n---\nBody\n")
    (folder / "two.md").write_text("---\nname: two\ndescription: Second.\ntriggers: [a b, c]\n---\nBody\n")
    (folder / "Three Things.md").write_text("\n# How we do three things\n\nBody\n")
    (folder / "four").mkdir()
    (folder / "four" / "skill.md").write_text("---\ndescription: Fourth.\n---\nBody\n")
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("no skill")
    skills = found_in(folder)
    assert {name: each.description for name, each in skills.items()} == {
        "one": "First.",
        "two": "Second.",
        "three-things": "How we do three things",
        "four": "Fourth.",
    }
    assert skills["two"].triggers == ("a b", "c")
    assert [each.problem for each in skills.values()] == [None] * 4


@pytest.mark.parametrize("name", ["README.md", "readme.md", "CHANGELOG.md", "LICENSE.md", "Contributing.md"])
def test_readme_is_no_skill(folder: Path, name: str) -> None:
    (folder / name).write_text(HEADER)
    assert found_in(folder) == {}


def test_a_draft_is_never_listed(folder: Path) -> None:
    for drafts in ("drafts", "Drafts"):
        (folder / drafts / "new").mkdir(parents=True)
        (folder / drafts / "new" / "SKILL.md").write_text(HEADER)
        (folder / drafts / "SKILL.md").write_text(HEADER)
        (folder / drafts / "mine.md").write_text(HEADER)
    assert found_in(folder) == {}


def test_crlf_and_byte_order_mark_make_no_difference(folder: Path) -> None:
    text = (
        "---\nname: mine\ndescription: Does it.\nmetadata:\n  triggers: one, two\n---\n# Steps\n1. Do it.\n"
    )
    (folder / "a.md").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    skill = found_in(folder)["mine"]
    assert (skill.description, skill.triggers, skill.problem) == ("Does it.", ("one", "two"), None)
    assert read_skill(skill).body == "# Steps\n1. Do it."


def test_only_the_beginning_of_a_file_is_read_for_the_list(folder: Path) -> None:
    (folder / "a.md").write_bytes(HEADER.encode() + b"x" * 5_000 + b"\xff not UTF-8")
    skill = found_in(folder)["mine"]
    assert (skill.description, skill.problem) == ("Does it.", None)
    with pytest.raises(MalformedDefinition, match="UTF-8"):
        read_skill(skill)


def test_long_header_is_read_to_its_end(folder: Path) -> None:
    more = "".join(f"  key-{number}: {'x' * 90}\n" for number in range(90))
    (folder / "a.md").write_text(f"---\ndescription: Does it.\nmetadata:\n{more}name: late\n---\nBody\n")
    assert found_in(folder)["late"].problem is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\nname: ../up\ndescription: d\n---\n", "'../up' is not a valid name"),
        ("---\nname: a/b\ndescription: d\n---\n", "'a/b' is not a valid name"),
        ("---\nname: [a]\ndescription: d\n---\n", "'' is not a valid name"),
        ("---\nname: mine\n", "the header is not closed"),
        ("---\nname: a\nname: b\n---\n", "the key 'name' appears twice"),
    ],
)
def test_broken_header_is_a_problem_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "a.md").write_text(text)
    problem = found_in(folder)["a"].problem
    assert problem is not None and problem.message == message and problem.line >= 1


def test_invisible_characters_of_a_description_are_shown_P7(folder: Path) -> None:
    (folder / "a.md").write_text("---\nname: mine\ndescription: good\u200b\u202ebad\n---\n")
    assert found_in(folder)["mine"].description == "good\\u{200b}\\u{202e}bad"


def test_link_out_of_the_folder_is_refused_P6(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_text("---\nname: secret\ndescription: secret text\n---\n")
    (folder / "linked").symlink_to(outside)
    (folder / "file.md").symlink_to(outside / "SKILL.md")
    (folder / "inner").mkdir()
    (folder / "inner" / "SKILL.md").symlink_to(outside / "SKILL.md")
    skills = found_in(folder)
    assert sorted(skills) == ["file", "inner", "linked"]
    assert all(each.problem is not None and each.description == "" for each in skills.values())


def test_folder_that_leads_out_of_its_project_has_no_skills_P6(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(HEADER)
    link = folder.parent / "linked"
    link.symlink_to(tmp_path)
    assert found_in(link) == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    problem = found_in(folder)["pipe"].problem
    assert problem is not None and problem.message == "not a regular file"


def make_bundle(folder: Path) -> SkillFile:
    (folder / "mine" / "scripts").mkdir(parents=True)
    (folder / "mine" / "SKILL.md").write_text(f"{HEADER}Run scripts/go.py.\n")
    (folder / "mine" / "scripts" / "go.py").write_text("print('go')\r\n")
    (folder / "mine" / ".env").write_text("KEY=1")
    return found_in(folder)["mine"]


def test_files_of_a_skill_are_named_and_can_be_read(folder: Path) -> None:
    skill = make_bundle(folder)
    assert read_skill(skill).files == ("scripts/go.py",)
    assert read_skill_file(skill, "scripts/go.py") == "print('go')\r\n".replace("\r\n", "\n")


@pytest.mark.parametrize("name", [".env", "../other.md", "/etc/passwd", "scripts", "", "scripts/../SKILL.md"])
def test_no_other_file_can_be_read_P6(folder: Path, name: str) -> None:
    skill = make_bundle(folder)
    (folder / "other.md").write_text("secret")
    with pytest.raises(MalformedDefinition, match="has no file"):
        read_skill_file(skill, name)


def test_link_inside_a_skill_is_refused_P6(folder: Path, tmp_path: Path) -> None:
    skill = make_bundle(folder)
    (tmp_path / "secret").write_text("secret")
    (folder / "mine" / "link.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(MalformedDefinition, match=r"link\.txt is a link"):
        read_skill(skill)
    with pytest.raises(MalformedDefinition, match=r"link\.txt is a link"):
        read_skill_file(skill, "link.txt")


def test_digest_changes_with_each_file_of_a_skill(folder: Path) -> None:
    skill = make_bundle(folder)
    digests = {read_skill(skill).digest}
    (folder / "mine" / "scripts" / "go.py").write_text("print('gone')")
    digests.add(read_skill(skill).digest)
    (folder / "mine" / "scripts" / "go.py").rename(folder / "mine" / "scripts" / "run.py")
    digests.add(read_skill(skill).digest)
    (folder / "mine" / "SKILL.md").write_text(f"{HEADER}Other.\n")
    digests.add(read_skill(skill).digest)
    assert len(digests) == 4


def test_link_to_itself_is_no_skill_and_harms_no_other(folder: Path) -> None:
    """A clone may bring one."""
    (folder / "loop").symlink_to("loop")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "mine.md").write_text("Mine\n", encoding="utf-8")
    assert {name: skill.problem is None for name, skill in found_in(folder).items()}["mine"]


def test_files_beyond_the_limit_of_a_folder_are_told_P8(folder: Path) -> None:
    for number in range(MAX_SKILLS_PER_FOLDER + 3):
        (folder / f"s{number:04d}.md").touch()
    *_, last = SkillFolder(folder, "user", "skills").entries()
    assert last.name == "s1000"
    assert last.refused == "only the first 1,000 files of a folder are read: 3 are left out"
