"""What a model is asked for an explanation, within its time, and what is kept of its reply (P2, P3)."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from retinue.answers.role_context import RoleContext
from retinue.core import (
    DeadlineExceeded,
    Model,
    ModelFacts,
    ModelFailed,
    ModelSpeed,
    Prompt,
    Reference,
    Reply,
    ReplyPiece,
)
from retinue.research.explanation import (
    PLANS,
    USUAL_PLAN,
    Explained,
    FoundPlaces,
    ReportReading,
    plan_request,
)
from tests.answers.conftest import ContextFor
from tests.models.scripted_model import FACTS


@pytest.mark.parametrize(
    ("speed", "seconds", "plan"),
    [
        (ModelSpeed(2_000, 100), 27.0, PLANS[0]),
        (ModelSpeed(53, 14), 110.0, PLANS[0]),
        (ModelSpeed(53, 14), 50.0, PLANS[1]),
        (ModelSpeed(53, 14), 27.0, USUAL_PLAN),
        (ModelSpeed(53, 14), 20.0, PLANS[4]),
        (ModelSpeed(20, 5), 50.0, PLANS[4]),
        (ModelSpeed(20, 5), 27.0, PLANS[5]),
        (ModelSpeed(5, 1), 27.0, None),
        (ModelSpeed(53, 14), 2.0, None),
        (None, 27.0, USUAL_PLAN),
        (None, 0.5, None),
    ],
)
def test_model_is_asked_as_much_as_its_speed_allows_P2(
    speed: ModelSpeed | None, seconds: float, plan: object
) -> None:
    assert plan_request(speed, seconds) == plan


class StuckModel:
    """Sends the beginning of a reply, and then nothing."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning

    async def facts(self) -> ModelFacts:
        return FACTS

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        if self.beginning and on_text is not None:
            await on_text(self.beginning)
        await asyncio.Event().wait()
        raise AssertionError


class RememberedSpeed:
    """Remembers the speed of one model."""

    def __init__(self) -> None:
        self.noted: ModelSpeed | None = None

    def client_for(self, name: str = "default") -> Model:
        raise AssertionError

    def known_skills(self, facts: ModelFacts) -> None: ...

    def speed(self, facts: ModelFacts) -> ModelSpeed | None:
        return self.noted

    def note_speed(self, facts: ModelFacts, read: float | None, written: float | None) -> None:
        assert read is not None
        self.noted = ModelSpeed(read, written or read / 4)


async def explain(context: RoleContext, model: Model, models: RememberedSpeed, seconds: float) -> Explained:
    async def log(text: str) -> None: ...

    found = FoundPlaces(context, (Reference("src/shop/retry.py", 19),), frozenset())
    deadline = time.monotonic() + seconds
    return await ReportReading(models=models, model=model, found=found, deadline=deadline, log=log).explain()


@pytest.mark.anyio
async def test_deadline_keeps_what_came_of_a_reply_P2(context_for: ContextFor) -> None:
    whole = json.dumps({"line": "if not policy.should_retry(attempt):", "answer": "It calls `policy`. It is"})
    model = StuckModel(whole[:-2])
    made = await explain(context_for("how are calls retried?"), model, RememberedSpeed(), 1.5)
    assert made.explanation is not None
    assert len(made.explanation.sentences) == 1


@pytest.mark.anyio
async def test_model_that_does_not_begin_to_answer_is_remembered_as_slow_P2(context_for: ContextFor) -> None:
    models = RememberedSpeed()
    with pytest.raises(DeadlineExceeded, match="did not answer"):
        await explain(context_for("how are calls retried?"), StuckModel(""), models, 1.5)
    assert plan_request(models.noted, 1.5) is None
    with pytest.raises(DeadlineExceeded, match="too slow"):
        await explain(context_for("how are calls retried?"), StuckModel(""), models, 1.5)


@pytest.mark.anyio
async def test_places_without_code_are_not_blamed_on_the_model_P8(context_for: ContextFor) -> None:
    async def log(text: str) -> None: ...

    found = FoundPlaces(context_for("how are calls retried?"), (Reference("gone.py", 1),), frozenset())
    work = ReportReading(
        models=RememberedSpeed(), model=StuckModel(""), found=found, deadline=time.monotonic() + 5, log=log
    )
    with pytest.raises(ModelFailed, match="the places that were found have no code to show"):
        await work.explain()
