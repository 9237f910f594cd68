"""Twelve ways in which small models misbehave, and three in which servers do.

The same runs produce docs/hostile-models.md.
"""

from __future__ import annotations

import json

import pytest

from scripts.hostile_models import ANSWER, MODELS, SERVERS, Behaviour, perform

pytestmark = pytest.mark.anyio

ALL = pytest.mark.parametrize("behaviour", [*MODELS, *SERVERS], ids=lambda one: one.name.replace(" ", "-"))


def test_there_are_twelve_hostile_models() -> None:
    assert len(MODELS) == 12


@ALL
async def test_model_that_recovers_still_answers(behaviour: Behaviour) -> None:
    seen = await perform(behaviour, behaviour.recovering())
    assert seen.outcome.error is None
    if behaviour.schema is not None:
        assert json.loads(seen.outcome.output)["places"] == ["src/app.py:4"]
    elif behaviour.name == "invented places":
        assert seen.outcome.output == (
            "See src/app.py:4, src/app.py:900 [not there] and src/retry/core.py:12 [not there]."
        )
    else:
        assert seen.outcome.output.startswith(ANSWER)


@ALL
async def test_model_that_never_recovers_ends_within_its_limits_P2_P8(behaviour: Behaviour) -> None:
    """Whatever it does, the loop ends by itself and says why."""
    seen = await perform(behaviour, behaviour.lasting())
    assert 1 <= seen.outcome.usage["steps"] <= 15
    assert seen.outcome.error is not None or seen.outcome.notes
    assert seen.outcome.error is None or seen.outcome.error.code != "internal_error"


@ALL
async def test_model_is_corrected_in_one_line(behaviour: Behaviour) -> None:
    for script in (behaviour.recovering(), behaviour.lasting()):
        for line in (await perform(behaviour, script)).told:
            assert "\n" not in line and len(line) < 200


@pytest.mark.parametrize("name", ["repeated calls", "no end", "overflow during a run"])
async def test_findings_are_kept_if_no_answer_comes_P2(name: str) -> None:
    behaviour = next(one for one in MODELS if one.name == name)
    seen = await perform(behaviour, behaviour.lasting())
    assert seen.outcome.error is not None
    assert seen.outcome.output
