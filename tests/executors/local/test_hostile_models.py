"""Twelve ways in which small models misbehave, and three in which servers do. The same runs make the docs."""

from __future__ import annotations

import json

import pytest

from scripts.hostile_models import ANSWER, MODELS, SERVERS, Behaviour, perform

pytestmark = pytest.mark.anyio

ALL = pytest.mark.parametrize("behaviour", [*MODELS, *SERVERS], ids=lambda one: one.name.replace(" ", "-"))


def test_there_are_twelve() -> None:
    assert len(MODELS) == 12


@ALL
async def test_a_model_that_comes_to_its_senses_still_answers(behaviour: Behaviour) -> None:
    seen = await perform(behaviour, behaviour.recovering())
    assert seen.outcome.error is None
    if behaviour.schema is not None:
        assert json.loads(seen.outcome.output)["places"] == ["src/app.py:4"]
    elif behaviour.name == "invented places":
        assert seen.outcome.output == (
            "See src/app.py:4, src/app.py:900 [not there] and src/retry/core.py:12 [not there]."
        )
    else:
        assert seen.outcome.output == ANSWER


@ALL
async def test_a_model_that_never_does_ends_within_its_limits(behaviour: Behaviour) -> None:
    """P2, P8: whatever it does, the loop ends by itself and says why."""
    seen = await perform(behaviour, behaviour.lasting())
    assert 1 <= seen.outcome.usage["steps"] <= 15
    assert seen.outcome.error is not None or seen.outcome.notes
    assert seen.outcome.error is None or seen.outcome.error.code != "internal_error"


@ALL
async def test_what_the_model_is_told_is_one_line(behaviour: Behaviour) -> None:
    for script in (behaviour.recovering(), behaviour.lasting()):
        for line in (await perform(behaviour, script)).told:
            assert "\n" not in line and len(line) < 200


@pytest.mark.parametrize("name", ["repeated calls", "no end", "overflow in the middle"])
async def test_what_was_found_is_kept_when_no_answer_comes(name: str) -> None:
    """P2"""
    behaviour = next(one for one in MODELS if one.name == name)
    seen = await perform(behaviour, behaviour.lasting())
    assert seen.outcome.error is not None
    assert seen.outcome.output
