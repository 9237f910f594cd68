"""Skills of all folders; those of projects only if trusted and approved, by their content (P6, P7)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from retinue.core import InvalidInput, Unauthorized
from retinue.learning import SkillCatalog
from tests.learning.skill_support import Place, write_skill_file


def approve_all(catalog: SkillCatalog) -> None:
    catalog.approve([each for each in catalog.all_skills() if each.needs_approval])


def test_skills_of_all_folders_are_found_and_the_nearest_wins(place: Place) -> None:
    folders = [
        *(place.project / each for each in (".retinue/skills", ".claude/skills", ".agents/skills")),
        *(place.project / ".smallcode/skills", place.own, place.home / ".claude/skills"),
        *(place.home / each for each in (".agents/skills", ".smallcode/skills", ".config/smallcode/skills")),
    ]
    for number, folder in enumerate(folders):
        write_skill_file(folder, f"only-{number}")
        write_skill_file(folder, "everywhere", f"from folder {number}")
    catalog = place.catalog()
    approve_all(catalog)
    live = catalog.live()
    assert sorted(live) == ["everywhere", *(f"only-{number}" for number in range(len(folders)))]
    assert live["everywhere"].file.description == "from folder 0"


def test_skill_of_an_untrusted_project_is_not_loaded_P7(place: Place) -> None:
    write_skill_file(place.shared, "theirs")
    write_skill_file(place.own, "mine")
    catalog = place.catalog()
    approve_all(catalog)
    assert sorted(catalog.live()) == ["mine", "theirs"]
    place.trusted = False
    assert sorted(catalog.live()) == ["mine"]
    with pytest.raises(Unauthorized, match="its project is not trusted"):
        catalog.read(catalog.find("theirs"))


def test_skill_that_may_not_be_used_does_not_take_the_name_of_another_P7(place: Place) -> None:
    write_skill_file(place.shared, "commits", "theirs")
    write_skill_file(place.own, "commits", "mine")
    assert place.catalog().live()["commits"].file.description == "mine"


def test_approval_pins_the_content_and_a_changed_file_needs_a_new_one_P7(place: Place) -> None:
    file = write_skill_file(place.shared, "theirs", body="1. Good.")
    catalog = place.catalog()
    assert catalog.live() == {}
    assert catalog.find("theirs").refusal == "it is not approved"
    catalog.approve([catalog.find("theirs")])
    assert catalog.read(catalog.live()["theirs"]).body == "1. Good."
    file.write_text(file.read_text().replace("Good", "Evil"))
    assert catalog.live() == {}
    assert catalog.find("theirs").refusal == "it has changed since it was approved"
    file.write_text(file.read_text().replace("Evil", "Good"))
    assert list(catalog.live()) == ["theirs"], "the approved content is back"


def test_change_of_another_file_of_the_skill_needs_a_new_approval_P7(place: Place) -> None:
    script = write_skill_file(place.shared, "theirs").parent / "go.sh"
    script.write_text("echo good")
    catalog = place.catalog()
    approve_all(catalog)
    skill = catalog.live()["theirs"]
    assert catalog.read(skill).files == ("go.sh",)
    script.write_text("echo evil")
    with pytest.raises(Unauthorized, match="has changed since it was approved"):
        catalog.read(skill)


def test_content_that_was_changed_between_the_list_and_the_reading_is_not_used_P6(place: Place) -> None:
    file = write_skill_file(place.shared, "theirs", body="1. Good.")
    catalog = place.catalog()
    approve_all(catalog)
    listed = catalog.live()["theirs"]
    file.write_text(file.read_text().replace("Good", "Evil"))
    with pytest.raises(Unauthorized):
        catalog.read(listed)


def test_damaged_approvals_approve_nothing_P7(place: Place) -> None:
    write_skill_file(place.shared, "theirs")
    approve_all(place.catalog())
    file = place.folder / "data" / "approved-skills.json"
    for damaged in ("", "[]", '{"x": 1}', file.read_text().replace("sha256", "sha1")):
        file.write_text(damaged)
        assert place.catalog().live() == {}


def test_body_is_read_on_demand_once_and_again_when_the_file_changes(place: Place) -> None:
    file = write_skill_file(place.own, "mine", body="1. Old.")
    catalog = place.catalog()
    skill = catalog.live()["mine"]
    assert catalog.bodies_read == 0
    assert {catalog.read(skill).body for _ in range(3)} == {"1. Old."}
    assert catalog.bodies_read == 1
    file.write_text(file.read_text().replace("Old", "New!"))
    assert catalog.read(skill).body == "1. New!."
    file.write_text(file.read_text().replace("Does it", "Does more"))
    assert catalog.live()["mine"].file.description == "Does more."


def test_listing_300_skills_opens_each_file_once_and_no_body(place: Place) -> None:
    for number in range(300):
        folder = place.own if number % 2 else place.shared
        write_skill_file(folder, f"skill-{number:03}", f"Does the thing {number}.", "1. Do it.\n" * 2_000)
    approve_all(place.catalog())
    catalog = place.catalog()
    opened: list[str] = []
    files = {str(file) for file in place.folder.rglob("SKILL.md")}

    def count(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]) in files:
            opened.append(str(arguments[0]))

    sys.addaudithook(lambda event, arguments: count(event, arguments) if listening else None)
    listening = [True]
    assert len(catalog.live()) == 300
    assert sorted(opened) == sorted(files)
    assert len(catalog.live()) == 300
    listening.clear()
    assert len(opened) == 300, "the second list comes from the cache"
    assert catalog.bodies_read == 0


def test_drafts_are_listed_apart_and_their_names_are_taken(place: Place) -> None:
    write_skill_file(place.shared / "drafts", "proposed")
    write_skill_file(place.own, "mine")
    catalog = place.catalog()
    assert list(catalog.live()) == ["mine"]
    assert [each.name for each in catalog.all_skills()] == ["mine"]
    assert [each.name for each in catalog.all_skills(drafts=True)] == ["proposed"]
    assert catalog.taken_names() == {"mine", "proposed"}


def test_link_to_a_skill_beside_it_takes_neither_its_name_nor_its_place(place: Place) -> None:
    """In one folder, whichever comes first, and when the cache answers."""
    place.shared.mkdir(parents=True)
    (place.shared / "plain.md").write_text("Plain text\n1. one\n", encoding="utf-8")
    for link in ("alias.md", "zalias.md"):
        (place.shared / link).symlink_to("plain.md")
    catalog = place.catalog()
    for _ in range(2):
        found = [(each.name, Path(each.file.path).name) for each in catalog.all_skills()]
        assert found == [("alias", "alias.md"), ("plain", "plain.md"), ("zalias", "zalias.md")]


def test_link_to_a_skill_in_another_known_folder_is_not_reported_twice(place: Place) -> None:
    write_skill_file(place.home / ".agents/skills", "shared")
    (place.home / ".claude/skills").mkdir(parents=True)
    (place.home / ".claude/skills/shared").symlink_to(place.home / ".agents/skills/shared")
    assert [each.file.source for each in place.catalog().all_skills()] == ["~/.agents/skills/shared/SKILL.md"]


def test_home_that_is_a_root_has_the_users_own_skills(place: Place) -> None:
    write_skill_file(place.home / ".claude/skills", "mine")
    place.project = place.home
    place.trusted = False
    assert list(place.catalog().live()) == ["mine"]


def test_unknown_name_suggests_a_known_one(place: Place) -> None:
    write_skill_file(place.own, "api-errors")
    with pytest.raises(InvalidInput, match="there is no skill 'api-error'") as raised:
        place.catalog().find("api-error")
    assert raised.value.hint == "did you mean api-errors?"


def test_skill_that_disappears_is_gone(place: Place) -> None:
    file = write_skill_file(place.own, "mine")
    catalog = place.catalog()
    skill = catalog.live()["mine"]
    file.unlink()
    assert catalog.live() == {}
    with pytest.raises(InvalidInput, match="cannot be read"):
        catalog.read(skill)


def test_folder_that_cannot_be_listed_has_no_skills(place: Place, tmp_path: Path) -> None:
    place.own.parent.mkdir(parents=True)
    place.own.write_text("not a folder")
    (place.home / ".smallcode").symlink_to(tmp_path / "nowhere")
    assert place.catalog().all_skills() == []
