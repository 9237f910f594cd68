"""The index is short, triggers bring in what a task needs, and each skill is read within limits (P4, P6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retinue.core import Agent, InvalidInput, SkillNotes, estimate_tokens
from tests.learning.skill_support import Place, write_skill_file

AGENT = Agent(name="worker", description="works", executor="local", source="test")
TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fH3jL5"


def opened(place: Place, task: str, skills: tuple[str, ...] | None = None) -> SkillNotes:
    notes = place.library().open("run", replace(AGENT, skills=skills), task)
    assert notes is not None
    return notes


def test_30_skills_cost_about_240_characters(place: Place) -> None:
    names = ["commit", "review", "deploy", "tests", "docs", "errors", "logs", "cache"]
    names += ["queue", "sql", "css", "react", "types", "docker", "helm"]
    for name in [*names, *(f"{name}-2" for name in names)]:
        write_skill_file(place.own, name, "How we do it, in three sentences or more. " * 4)
    index = place.library().index()
    assert all(name in index for name in names)
    assert 200 <= len(index) <= 280


def test_index_describes_what_fits_the_task(place: Place) -> None:
    for name in ("alpha", "beta", "gamma"):
        write_skill_file(place.own, name, f"About {name} things.")
    write_skill_file(place.own, "migrations", "Change the schema of the database with reversible steps.")
    text = opened(place, "add a column to the database schema").text()
    assert "- migrations: Change the schema" in text
    assert "About alpha" not in text


def test_long_index_keeps_what_fits_and_says_what_was_left_out_P4(place: Place) -> None:
    for number in range(300):
        write_skill_file(place.own, f"skill-number-{number:03}", f"About thing {number}.")
    write_skill_file(place.own, "zebra-crossings", "Paint zebra crossings on streets.")
    index = opened(place, "paint a zebra crossing").index
    assert "zebra-crossings" in index
    shown = index.count("skill-number-")
    assert f"and {301 - shown - 1} skills that fit less" in index
    assert len(index) < 1_500


def test_without_skills_a_run_is_told_nothing(place: Place) -> None:
    assert place.library().open("run", AGENT, "do it") is None


def test_trigger_brings_in_the_instructions(place: Place) -> None:
    triggers = ["metadata:", "  triggers: database migration, alembic"]
    write_skill_file(place.own, "migrations", body="1. Write a downgrade.", header=triggers)
    write_skill_file(place.own, "other", body="1. Something else.")
    notes = opened(place, "please write two Database-Migrations for orders")
    assert "## Skill migrations\n1. Write a downgrade." in notes.text()
    assert "Something else" not in notes.text()
    assert notes.given == ["migrations"]
    assert "- migrations:" not in notes.index, "what is given is not described"
    assert "Write a downgrade" not in opened(place, "migrate the customers").text()


def test_trigger_matches_whole_words_only(place: Place) -> None:
    write_skill_file(place.own, "art", body="1. Paint.", header=["metadata:", "  triggers: art"])
    assert opened(place, "start the party").bodies == ()
    assert opened(place, "make ART of it").bodies != ()


def test_triggered_instructions_stay_within_4000_characters(place: Place) -> None:
    for number in range(6):
        header = ["metadata:", "  triggers: release"]
        body = f"1. Step {number}.\n" + "word " * 300
        write_skill_file(place.own, f"part-{number}", body=body, header=header)
    notes = opened(place, "make a release")
    assert sum(len(body) for _, body in notes.bodies) <= 4_000
    assert [name for name, _ in notes.bodies] == ["part-0", "part-1", "part-2"]
    assert "read it first: part-3, part-4, part-5" in notes.text()


def test_long_instructions_are_cut_with_a_way_to_read_on_P4(place: Place) -> None:
    body = "\n".join(f"{number}. Point number {number}." for number in range(1, 400))
    write_skill_file(place.own, "long", body=body, header=["metadata:", "  triggers: release"])
    library = place.library()
    notes = library.open("run", AGENT, "make a release")
    assert notes is not None
    (_, shown), *_ = notes.bodies
    assert len(shown) <= 4_000
    rest = int(shown.rpartition("first_line=")[2].split(")")[0])
    assert notes.use("long", None, rest).startswith(f"{rest}. Point number {rest}.")


def test_each_skill_can_be_read_page_by_page_within_the_budget_P4(place: Place) -> None:
    lines = [f"{number}. Point number {number}." for number in range(1, 900)]
    write_skill_file(place.own, "long", body="\n".join(lines))
    library, first, seen = place.library(tokens=500), 1, list[str]()
    for _ in range(100):
        page = library.read("long", None, first)
        assert estimate_tokens(page) <= 500
        *shown, last = page.split("\n")
        seen += shown
        if not last.startswith("[cut: "):
            seen.append(last)
            break
        first = int(last.rpartition("first_line=")[2].split(")")[0])
    assert seen == lines


def test_line_that_is_too_long_for_an_answer_is_cut_and_the_next_one_can_be_read_P4(place: Place) -> None:
    write_skill_file(place.own, "long", body="\n".join(["first", "word " * 5_000, "last"]))
    library = place.library(tokens=300)
    page = library.read("long", first_line=2)
    assert 'go on with use_skill("long", first_line=3)' in page and len(page) < 1_200
    assert library.read("long", first_line=3) == "last"


def test_files_are_given_by_reference_and_read_by_name(place: Place) -> None:
    folder = write_skill_file(place.own, "forms", body="1. Run the script.").parent
    (folder / "fill.py").write_text("print('fill')")
    library = place.library()
    assert library.read("forms").endswith("file=...): fill.py")
    assert "print" not in library.read("forms")
    assert library.read("forms", "fill.py") == "print('fill')"
    with pytest.raises(InvalidInput, match="has no file") as raised:
        library.read("forms", "../forms/SKILL.md")
    assert raised.value.hint == "its files are: fill.py"


def test_secrets_in_skills_do_not_leave_P6(place: Place) -> None:
    header = ["metadata:", "  triggers: release"]
    folder = write_skill_file(place.own, "leaky", f"Uses {TOKEN}", f"1. Use {TOKEN}.", header).parent
    (folder / "key.txt").write_text(f"token = {TOKEN}")
    library = place.library()
    notes = library.open("run", AGENT, "make a release that uses it")
    assert notes is not None
    for text in (notes.text(), library.index(), library.read("leaky"), library.read("leaky", "key.txt")):
        assert TOKEN not in text


def test_skills_of_an_agents_file_come_with_every_task_and_no_others_do(place: Place) -> None:
    write_skill_file(place.own, "mine", body="1. Mine.")
    write_skill_file(place.own, "other", body="1. Other.", header=["metadata:", "  triggers: release"])
    notes = opened(place, "make a release", ("mine", "missing"))
    assert "1. Mine." in notes.text() and "other" not in notes.text()
    assert notes.notes == ("there is no skill missing",)
    with pytest.raises(InvalidInput, match="there is no skill 'other'"):
        notes.use("other")
    assert place.library().open("run", replace(AGENT, skills=()), "make a release") is None


def test_skill_that_waits_for_an_approval_is_named_but_not_shown_P7(place: Place) -> None:
    write_skill_file(place.shared, "theirs", body="1. Evil.", header=["metadata:", "  triggers: release"])
    notes = opened(place, "make a release")
    assert notes.notes == ("the skill theirs fits and is not used: it is not approved",)
    assert notes.text() == ""
    named = opened(place, "make a release", ("theirs",))
    assert named.notes == ("the skill theirs is not used: it is not approved",)
    assert "Evil" not in named.text()


def test_words_instead_of_a_name_find_a_skill(place: Place) -> None:
    write_skill_file(place.own, "migrations", "Change the schema of the database.")
    write_skill_file(place.own, "colors", "Choose colors.")
    with pytest.raises(InvalidInput) as raised:
        place.library().read("database schema")
    assert raised.value.hint == "migrations: Change the schema of the database."


def test_small_request_gets_what_fits_and_says_what_does_not(place: Place) -> None:
    write_skill_file(place.own, "big", body="word " * 500, header=["metadata:", "  triggers: release"])
    notes = opened(place, "make a release")
    text = notes.text(500)
    assert len(text) <= 500 and "too long to be shown; read it first: big" in text
    assert notes.given == []
    assert "read with" not in notes.text(5_000, can_read=False)


def test_run_is_known_until_it_ends(place: Place) -> None:
    write_skill_file(place.own, "mine")
    library = place.library()
    notes = library.open("run", AGENT, "do it")
    assert library.of_run("run") is notes is not None
    del notes
    assert library.of_run("run") is None


def test_setting_keeps_skills_from_agents_that_do_not_list_them(place: Place) -> None:
    write_skill_file(place.own, "mine")
    library = replace(place.library(), for_agents=False)
    assert library.open("run", AGENT, "do it") is None
    assert library.open("run", replace(AGENT, skills=("mine",)), "do it") is not None
