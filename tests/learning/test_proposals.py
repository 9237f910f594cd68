"""Proposals come from a model, so each gate refuses what must not become a file (P6, P7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from retinue.core import InvalidInput
from retinue.definitions import check_skill, split_skill
from retinue.learning.in_use import change_points
from retinue.learning.proposals import Gates, read_proposal
from retinue.learning.skill_writer import find_points

POINTS = ["Run `make test` first.", "Write a changelog line."]
GATES = Gates(
    taken_names={"Release", "old-draft"},
    agents={"writer", "reviewer"},
    recent_tasks=[f"fix bug number {i}" for i in range(10)],
    granted={"writer": {"Bash(make test)"}},
    skill_points=lambda name: POINTS if name == "release" else None,
    hides_secret=lambda text: "hunter2" in text,
)
SKILL: dict[str, Any] = {
    "kind": "skill",
    "name": "add-docstrings",
    "description": "How docstrings are written here: one line, present tense",
    "triggers": ["docstring"],
    "points": ["Begin with a verb.", "Do not repeat the name."],
}


def refused(**changes: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_proposal({**SKILL, **changes}, GATES)
    return caught.value.message


def test_skill_becomes_a_file_with_numbered_points() -> None:
    text = read_proposal(SKILL, GATES).text()
    assert check_skill(text.encode(), "add-docstrings", is_folder=True) == []
    _, body = split_skill(text.encode())
    assert [point.text for point in find_points(body)] == SKILL["points"]


@pytest.mark.parametrize(
    "name", ["", "../evil", "a/b", "A", "-x", "x" * 65, "a b", "main", "drafts", None, 7]
)
def test_name_is_refused_unless_it_is_a_plain_name(name: Any) -> None:
    assert "name" in refused(name=name)


def test_name_that_is_taken_anywhere_is_refused() -> None:
    assert refused(name="release") == "the proposal was refused: the name release is taken"
    assert "taken" in refused(name="old-draft")


@pytest.mark.parametrize(
    "description",
    [
        "",
        "a\n---\nname: evil",
        "--- x",
        "```",
        "bell \a",
        "zero\u200bwidth",
        "right\u202eto left",
        "x" * 301,
        7,
    ],
)
def test_description_cannot_end_the_header_or_hide_text(description: Any) -> None:
    assert "description" in refused(description=description)


@pytest.mark.parametrize(
    "triggers", [[], ["the"], ["ab"], ["x" * 41], ["a\nb"], ["bug"], ["t"] * 9, "docstring"]
)
def test_trigger_is_refused_if_it_would_fire_always_or_never(triggers: Any) -> None:
    assert "trigger" in refused(triggers=triggers)


@pytest.mark.parametrize("points", [[], ["x"] * 10, ["x" * 401], ["one\n---\ntwo"], [""], "text"])
def test_points_are_few_and_short(points: Any) -> None:
    assert "point" in refused(points=points)


def test_secret_is_refused_in_any_field() -> None:
    assert "secret" in refused(points=["The password is hunter2."])


def test_unknown_kind_is_refused() -> None:
    assert "not one of" in refused(kind="plugin")


def test_edit_that_a_model_names_like_its_skill_gets_a_name_of_its_own() -> None:
    given = {"kind": "edit", "name": "release", "description": "why", "skill": "release"}
    proposal = read_proposal({**given, "edits": [{"point": 1, "text": "Run `make check`."}]}, GATES)
    assert (proposal.name, proposal.skill) == ("release-edit", "release")


def test_edit_changes_single_points_and_nothing_else() -> None:
    edit = {"kind": "edit", "name": "release-tests", "description": "why", "skill": "release"}
    proposal = read_proposal({**edit, "edits": [{"point": 1, "text": "Run `make check`."}]}, GATES)
    body = "# Release\n\n1. Run `make test`\n   first.\n\nThen:\n2. Write a changelog line.\n\nDone."
    changed = change_points(body, proposal.edits)
    assert changed == "# Release\n\n1. Run `make check`.\n\nThen:\n2. Write a changelog line.\n\nDone."
    edits = [{"point": 3, "text": "Tag it."}, {"point": 1, "text": ""}]
    added = read_proposal({**edit, "edits": edits}, GATES)
    assert (
        change_points(body, added.edits)
        == "# Release\n\n\nThen:\n1. Write a changelog line.\n2. Tag it.\n\nDone."
    )
    assert change_points(body, {}) == body


def test_changed_point_takes_its_paragraphs_along() -> None:
    body = "1. Run it.\n\n   ```\n   make test\n   ```\n2. Write.\n\n\tMore.\n\nDone.\n"
    assert change_points(body, {}) == body
    assert (
        change_points(body, {1: "Run `make check`."})
        == "1. Run `make check`.\n2. Write.\n\n\tMore.\n\nDone.\n"
    )
    assert change_points(body, {2: ""}) == "1. Run it.\n\n   ```\n   make test\n   ```\n\nDone.\n"


def test_numbers_and_bullets_that_a_model_writes_before_points_are_left_out() -> None:
    given = {**SKILL, "points": ["1. Begin with a verb.", "2) 3 lines at most.", "- Use `-x`.", "* -v too."]}
    points = ("Begin with a verb.", "3 lines at most.", "Use `-x`.", "-v too.")
    assert read_proposal(given, GATES).points == points
    edit = {**SKILL, "kind": "edit", "skill": "release", "edits": [{"point": 1, "text": "1. Run `make x`."}]}
    assert read_proposal(edit, GATES).edits == {1: "Run `make x`."}


def test_skill_whose_triggers_are_in_no_task_that_it_is_about_is_refused() -> None:
    gates = replace(GATES, slowed_tasks=["add a docstring to load()", "make file 3"])
    assert read_proposal(SKILL, gates).triggers == ("docstring",)
    with pytest.raises(InvalidInput, match="none of its triggers is in a task that it is about"):
        read_proposal({**SKILL, "triggers": ["type hint", "docs"]}, gates)


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [{"point": 4, "text": "x"}],
        [{"point": 0, "text": "x"}],
        [{"point": True, "text": "x"}],
        [{"point": 1, "text": POINTS[0]}],
        [{"point": 1, "text": ""}, {"point": 2, "text": ""}],
        [{"point": 1, "text": "a\nb"}],
    ],
)
def test_edit_that_is_no_small_change_is_refused(edits: Any) -> None:
    assert "refused" in refused(kind="edit", skill="release", edits=edits)


def test_edit_of_a_skill_that_is_no_numbered_list_is_refused() -> None:
    assert "numbered list" in refused(kind="edit", skill="prose", edits=[{"point": 1, "text": "x"}])


def test_rule_is_refused_unless_people_granted_exactly_this_before() -> None:
    rule = {"kind": "rule", "agent": "writer", "rule": "Bash(make test)"}
    assert read_proposal({**SKILL, **rule}, GATES).rule == "Bash(make test)"
    assert "granted" in refused(**{**rule, "rule": "Bash(make:*)"})
    assert "granted" in refused(**{**rule, "agent": "reviewer"})


def test_team_needs_agents_that_exist() -> None:
    team = {"kind": "team", "members": ["writer", "reviewer"]}
    assert yaml.safe_load(read_proposal({**SKILL, **team}, GATES).text())["agents"] == ["writer", "reviewer"]
    assert "no agent ghost" in refused(kind="team", members=["writer", "ghost"])
    assert "two to five" in refused(kind="team", members=["writer"])


def test_agent_may_only_read() -> None:
    proposal = read_proposal({**SKILL, "kind": "agent", "tools": ["Bash", "Write"]}, GATES)
    assert yaml.safe_load(proposal.text().split("---\n")[1])["tools"] == ["Read", "Grep", "Glob"]


def test_trigger_that_fires_in_many_tasks_is_refused_in_every_form_of_its_words() -> None:
    for trigger in ("fix bug", "Fixing bugs", "bug-number"):
        assert "in more than 30% of recent tasks" in refused(triggers=[trigger]), trigger
    read_proposal({**SKILL, "triggers": ["ug num"]}, GATES)  # only parts of words are in the tasks
