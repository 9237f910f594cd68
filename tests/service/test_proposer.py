"""The strong model is shown the friction that matters, as much as it can read at once (P4)."""

from __future__ import annotations

import math
from typing import Any

from retinue.core import RunId, as_object, estimate_tokens
from retinue.learning import DraftKind, Friction, FrictionKind
from retinue.service.proposer import FrictionEvidence, answer_schema


def friction(kind: FrictionKind, number: int) -> Friction:
    return Friction(kind=kind, agent="writer", what=f"thing {number}", runs=(RunId("r"),), times=3)


def evidence(*friction: Friction) -> FrictionEvidence:
    return FrictionEvidence(
        friction=friction,
        granted={"writer": ["Bash(make test)"]},
        agents=["writer"],
        skills={"style": ["One.", "Two."]},
    )


def shown(facts: list[Any]) -> list[str]:
    return [str(as_object(fact["friction"])["what"]) for fact in facts if "friction" in fact]


def test_every_kind_of_friction_is_shown_before_the_second_of_a_kind() -> None:
    """Questions and permissions lose no tokens, so they come last in the list."""
    tasks = [friction(FrictionKind.TASK, number) for number in range(6)]
    others = [friction(FrictionKind.QUESTION, 6), friction(FrictionKind.PERMISSION, 7)]
    facts = evidence(*tasks, *others).within(math.inf)
    assert shown(facts) == ["thing 0", "thing 6", "thing 7", "thing 1", "thing 2"]
    assert {"skill": "style", "points": {"1": "One.", "2": "Two."}} in facts


def test_first_friction_is_shown_however_little_fits() -> None:
    everything = evidence(*(friction(FrictionKind.TASK, number) for number in range(3)))
    assert shown(everything.within(0)) == ["thing 0"]
    few = everything.within(80)
    assert 1 < len(few) < 5
    assert sum(estimate_tokens(str(fact)) for fact in few) <= 100


def test_model_is_offered_only_help_that_its_evidence_allows() -> None:
    """A real model of 1.5B parameters proposed to edit skills that do not exist."""
    task = friction(FrictionKind.TASK, 1)
    alone = evidence(task).within(0)
    fields: Any = answer_schema(alone)["properties"]
    assert fields["friction"]["enum"] == [task.id]
    assert set(fields["kind"]["enum"]) == {"skill", "agent", "memory", "none"}
    whole: Any = answer_schema(evidence(task).within(math.inf))["properties"]
    assert set(whole["kind"]["enum"]) == {*DraftKind, "none"} - {"team"}, "a team has two members"
    assert (whole["skill"]["enum"], whole["rule"]["enum"]) == (["style"], ["Bash(make test)"])
