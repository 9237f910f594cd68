"""`retinue skills`: list, show, new, check, add, remove and approve, with exit codes (P6, P7, P8)."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.learning.skill_support import write_skill_file

SHARED = ".retinue/skills"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def listed(*more: str) -> dict[str, dict[str, object]]:
    rows = json.loads(run("skills", "list", "--json", *more).output)
    return {row["name"]: row for row in rows.get("drafts", rows.get("skills"))}


def test_new_skill_is_used_once_its_project_is_trusted_and_again_after_each_approval(project: Path) -> None:
    written = run(
        "skills", "new", "api-errors", "--description", "How errors are written", "--trigger", "422"
    )
    assert written.exit_code == 0, written.output
    file = project / SHARED / "api-errors" / "SKILL.md"
    assert run("skills", "check").exit_code == 0
    assert listed()["api-errors"]["unused_because"] == "its project is not trusted"
    assert run("skills", "approve", "api-errors").exit_code == 1
    trusted = run("agents", "trust", str(project))
    assert "its skills are approved as they are now: api-errors" in trusted.output
    assert listed()["api-errors"]["used"] is True
    file.write_text(file.read_text() + "4. More.\n")
    assert listed()["api-errors"]["unused_because"] == "it has changed since it was approved"
    approved = run("skills", "approve", "--all")
    assert approved.exit_code == 0 and "api-errors" in approved.output
    shown = json.loads(run("skills", "show", "api-errors", "--json").output)
    assert [point["number"] for point in shown["points"]] == [1, 2, 3, 4]
    assert (shown["used"], shown["triggers"]) == (True, ["422"])
    assert run("skills", "approve", "api-errors", "--remove").exit_code == 0
    assert listed()["api-errors"]["unused_because"] == "it is not approved"
    run("skills", "approve", "api-errors")
    run("agents", "trust", str(project), "--remove")
    run("agents", "trust", str(project))
    assert listed()["api-errors"]["used"] is True


def test_show_prints_the_instructions_even_before_an_approval(project: Path) -> None:
    write_skill_file(
        project / SHARED, "theirs", body="1. Read me first.", header=["allowed-tools: Bash(rm:*)"]
    )
    shown = run("skills", "show", "theirs")
    assert "1. Read me first." in shown.output
    assert "unused_because: its project is not trusted" in shown.output
    assert "allowed-tools grants nothing here" in shown.output


def test_check_prints_file_and_line_and_fails(project: Path) -> None:
    file = write_skill_file(project / ".claude/skills", "bad", header=["licens: MIT"])
    (project / "secret.md").write_text(
        "# Use it\nexport GITHUB_TOKEN=ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fH3jL5\n"
    )
    result = run("skills", "check")
    assert result.exit_code == 1
    assert f"{file}:4: error: there is no key 'licens'; did you mean license?" in result.output
    assert "1 skill checked, 1 error" in result.output
    single = run("skills", "check", "secret.md", "--json")
    assert single.exit_code == 0
    problems = json.loads(single.output)["problems"]
    assert {(row["line"], row["level"]) for row in problems} == {(1, "warning"), (2, "warning")}
    assert "ghp_" not in single.output
    assert run("skills", "check", "nowhere").exit_code == 2


def test_add_copies_a_valid_skill_and_refuses_others(project: Path, tmp_path: Path) -> None:
    source = write_skill_file(tmp_path / "from", "forms").parent
    assert run("skills", "add", str(source), "--user").exit_code == 0
    assert listed()["forms"]["used"] is True
    assert run("skills", "add", str(source)).exit_code == 1, "there is one of that name"
    bad = write_skill_file(tmp_path / "from", "bad", header=["licens: MIT"]).parent
    refused = run("skills", "add", str(bad))
    assert refused.exit_code == 2 and "nothing was copied" in refused.output
    (tmp_path / "link").symlink_to(source)
    assert run("skills", "add", str(tmp_path / "link")).exit_code == 2
    (tmp_path / "notes.md").write_text("# How we release\n1. Tag it.\n")
    assert run("skills", "add", str(tmp_path / "notes.md"), "--name", "releases").exit_code == 0
    assert (project / SHARED / "releases.md").exists()
    assert run("skills", "check", str(project / SHARED / "releases.md")).exit_code == 0
    (tmp_path / "named.md").write_text("---\nname: other\ndescription: d\n---\n1. Do it.\n")
    assert run("skills", "add", str(tmp_path / "named.md"), "--name", "named").exit_code == 2
    assert run("skills", "add", str(tmp_path / "named.md")).exit_code == 0
    assert "other" in listed()


def test_check_of_agents_warns_of_a_skill_that_does_not_exist(project: Path) -> None:
    write_skill_file(Path.home() / ".config/retinue/skills", "api-errors")
    file = project / ".retinue/agents/writer2.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: d\nskills: [api-errors, api-error]\n---\nDo it.\n")
    result = run("agents", "check")
    assert result.exit_code == 0
    warning = "warning: skills: there is no skill 'api-error'; did you mean api-errors?"
    assert f"{file}:3: {warning}" in result.output


def test_remove_moves_a_skill_away_and_says_how_to_undo_it(project: Path) -> None:
    file = write_skill_file(project / SHARED, "mine")
    done = json.loads(run("skills", "remove", "mine", "--json").output)
    assert not file.exists()
    Path(done["to"]).rename(done["from"])
    assert file.exists()
    assert run("skills", "remove", "nothing").exit_code == 2


def test_drafts_are_listed_on_request_only(project: Path) -> None:
    write_skill_file(project / SHARED / "drafts", "proposed")
    assert listed() == {}
    assert listed("--drafts")["proposed"]["unused_because"] == "it is a draft"
    assert run("skills", "new", "proposed", "--description", "d").exit_code == 1, "the name is taken"


def test_skill_that_cannot_be_read_keeps_no_other_from_a_check_and_an_approval(project: Path) -> None:
    """A clone may bring pipes, links to themselves and files without an end."""
    folder = project / SHARED
    write_skill_file(folder, "good")
    (folder / "big.md").write_bytes(b"a" * 300_000)
    (folder / "loop").symlink_to("loop")
    (folder / "out.md").symlink_to("/etc/hostname")
    (folder / "nested" / "SKILL.md").mkdir(parents=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.md")
    done = run("skills", "check")
    assert done.exit_code == 1
    assert "big.md:1: error: the file is larger than 256 KiB" in done.output
    assert "1: error: the link leads out of the folder of skills" in done.output
    trusted = run("agents", "trust", ".")
    assert trusted.exit_code == 0 and "as they are now: good" in trusted.output
    (folder / "good" / "SKILL.md").write_text("---\nname: good\ndescription: d\n---\nother\n")
    approved = run("skills", "approve", "--all")
    assert (approved.exit_code, approved.output.split()[:2]) == (0, ["approved", "good"])


def test_skills_are_listed_without_the_store_P8(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are files. Only how runs with them ended is in the store."""
    run("skills", "new", "mine", "--description", "d", "--user")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "retinue.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("RETINUE_DATA_DIR", str(broken))
    done = run("skills")
    assert done.exit_code == 0 and "mine" in done.stdout
    assert "it is not known how runs with skills ended" in done.stderr


def test_command_that_undoes_a_removal_can_be_pasted(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.md").write_text("Odd\n")
    monkeypatch.setenv("RETINUE_DATA_DIR", str(tmp_path / "a folder"))
    assert run("skills", "add", str(tmp_path / "odd.md")).exit_code == 0
    removed = run("skills", "remove", "odd").stdout
    command = shlex.split(removed.partition("to undo: ")[2])
    assert command[0] == "mv" and len(command) == 3
    Path(command[1]).rename(command[2])
    assert "odd" in listed()


def test_hint_appears_if_hosts_do_not_see_the_skills(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "hosts do not see skills" not in run("skills").output
    run("skills", "new", "mine", "--description", "d", "--user")
    assert "`retinue config set tools.groups --add skills`" in run("skills").output
    assert "1 skill in use" in run("doctor").output
    monkeypatch.setenv("RETINUE_TOOLS__GROUPS", "all")
    assert "hosts do not see skills" not in run("skills").output


@pytest.mark.parametrize(
    "arguments",
    [("approve",), ("approve", "a", "--all"), ("new", "Bad Name", "--description", "d"), ("show", "nothing")],
)
def test_wrong_arguments_end_with_2(project: Path, arguments: tuple[str, ...]) -> None:
    assert run("skills", *arguments).exit_code == 2


def test_skill_with_control_characters_does_not_reach_the_terminal(project: Path) -> None:
    write_skill_file(project / SHARED, "evil", "a \x1b]0;x\x07 b", "1. \x1b[2J cleared")
    for arguments in (("skills",), ("skills", "show", "evil"), ("skills", "check")):
        assert "\x1b" not in run(*arguments).output


def test_removed_link_leaves_the_skill_that_it_led_to_in_use(project: Path) -> None:
    file = write_skill_file(project / SHARED, "theirs")
    assert run("agents", "trust", str(project)).exit_code == 0
    link = file.parent.with_name("alias")
    link.symlink_to("theirs")
    assert f"removed theirs: {link}" in run("skills", "remove", "theirs").output
    assert not os.path.lexists(link) and file.exists()
    assert run("skills", "list", "--json").stdout.count('"used": true') == 1


def test_link_is_shown_and_removed_but_what_it_leads_to_is_not_P6(project: Path, tmp_path: Path) -> None:
    """A clone may bring links to the user's own files."""
    folder = project / SHARED
    write_skill_file(folder, "real")
    outside = tmp_path / "private"
    write_skill_file(tmp_path, "private", body="my own notes")
    (folder / "away.md").symlink_to(outside / "SKILL.md")
    (folder / "gone").symlink_to(outside)
    (folder / "alias").symlink_to(folder / "real")
    checked = run("skills", "check").output
    assert f"{folder}/away.md:1: error: the link leads out" in checked
    assert str(outside) not in checked
    for name in ("away", "gone"):
        shown = run("skills", "show", name).output
        assert "the link leads out of the folder" in shown
        assert "my own notes" not in shown and str(outside) not in shown
    for link in ("away.md", "gone", "alias"):
        name = link.removesuffix(".md")
        assert run("skills", "remove", name if name != "alias" else "real").exit_code == 0
        assert (outside / "SKILL.md").exists()
    assert [each.name for each in folder.iterdir()] == ["real"]


def test_approval_names_the_skills_that_it_leaves_out_P8(project: Path) -> None:
    write_skill_file(project / SHARED, "good")
    (project / SHARED / "big.md").write_bytes(b"a" * 300_000)
    trusted = run("agents", "trust", ".")
    assert "big is not approved" in trusted.output and "larger than 256 KiB" in trusted.output
    again = run("skills", "approve", "--all")
    assert again.exit_code == 0 and "big is not approved" in again.output
    assert json.loads(run("skills", "approve", "--all", "--json").stdout)["not_approved"]
