"""Research with a model uses its advice if it is valid, and says so if it is not (P2, P3, P8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from retinue.core import BudgetKind, ContextOverflow, RunStatus
from retinue.service import (
    ResearchRequest,
    Service,
    analyze_component,
    find_patterns,
    locate_in_codebase,
    research_codebase,
)
from retinue.wiring import build_service, read_settings, recording
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, says

pytestmark = pytest.mark.anyio

SURE = "what does RetryPolicy.should_retry decide?"
VAGUE = "what happens when a call fails?"
"""Questions that are answered with high and with lower confidence."""


def advice(order: list[int], *sentences: str) -> str:
    explanation = [{"text": text, "cites": [1]} for text in sentences]
    return json.dumps({"order": order, "explanation": explanation})


@asynccontextmanager
async def with_model(
    project: Path, script: Iterable[ScriptLine], **flags: Any
) -> AsyncGenerator[tuple[Service, ScriptedModel]]:
    scripted = ScriptedModel(script)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["llamacpp"])) as url:
        loaded = read_settings({"roots": (str(project),), "models.endpoint": url, **flags})
        async with recording(loaded, build_service(loaded)) as service:
            yield service, scripted


async def without_model(project: Path, question: str) -> dict[str, Any]:
    loaded = read_settings({"roots": (str(project),)})
    async with recording(loaded, build_service(loaded)) as service:
        return await locate_in_codebase(service, ResearchRequest(question=question))


async def test_model_orders_and_explains_what_was_found_and_adds_nothing_P3(project: Path) -> None:
    before = await without_model(project, VAGUE)
    count = len({one.partition(":")[0] for one in before["references"]})
    assert count >= 2
    assert before["confidence"] != "high"
    async with with_model(project, [advice([count], "The delay doubles.", "See `made_up()`.")]) as (
        service,
        _,
    ):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=VAGUE))
    assert after["references"][0] != before["references"][0]
    assert sorted(after["references"]) == sorted(before["references"])
    assert after["summary"].startswith("The delay doubles.")
    assert "made_up" not in json.dumps(after)
    assert "Ordered and explained by scripted; 1 of its sentences left out." in after["notes"]


async def test_place_with_high_confidence_stays_first(project: Path) -> None:
    before = await without_model(project, SURE)
    assert before["confidence"] == "high"
    async with with_model(project, [advice([2, 1])]) as (service, _):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=SURE))
    assert after["references"][0] == before["references"][0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (says("I would look in the settings."), "did not answer with the JSON"),
        (says(advice([77])), "chose none of"),
        (ContextOverflow("the prompt is too long"), "Without the model"),
    ],
)
async def test_unusable_advice_leaves_the_answer_unchanged_and_is_reported_P8(
    project: Path, line: ScriptLine, why: str
) -> None:
    before = await without_model(project, VAGUE)
    async with with_model(project, [line]) as (service, _):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=VAGUE))
    assert after["references"] == before["references"]
    assert after["summary"] == before["summary"]
    assert why in after["notes"]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9/v1", "nowhere", "ftp://x"])
async def test_report_is_complete_and_says_so_if_the_model_server_is_missing_P10(
    project: Path, endpoint: str
) -> None:
    flags = {"roots": (str(project),), "models.endpoint": endpoint}
    loaded = read_settings(flags)
    async with recording(loaded, build_service(loaded)) as service:
        report: dict[str, Any] = await research_codebase(service, ResearchRequest(question=VAGUE))
    assert report["locator"]["value"]["references"]
    assert "Without the model" in report["locator"]["value"]["notes"]
    assert report["analyzer"]["status"] == "ok"


async def test_slow_model_gets_only_its_share_of_the_time_P2(project: Path) -> None:
    async def never(_: object) -> ScriptLine:
        await asyncio.Event().wait()
        raise AssertionError

    async with with_model(project, [never] * 3) as (service, scripted):
        request = ResearchRequest(question=VAGUE, constraints={"deadline_ms": 3_000})
        report: dict[str, Any] = await research_codebase(service, request)
        left = service.runs.list(active=True)["runs"]
    assert "it did not answer within" in report["locator"]["value"]["notes"]
    assert report["analyzer"]["status"] == "ok"
    assert left == []
    assert scripted.prompts


async def test_advice_is_a_run_with_its_model_endpoint_and_tokens(project: Path) -> None:
    async with with_model(project, [advice([1])] * 3) as (service, _):
        await research_codebase(service, ResearchRequest(question=VAGUE))
        asked = [run for run in service.runs.store.runs.list() if run.spec.executor == "local"]
    assert {run.spec.agent for run in asked} >= {"locator"}
    for run in asked:
        assert run.status is RunStatus.SUCCESS
        assert run.spec.model == "scripted"
        assert run.spec.endpoint is not None
        assert run.usage.get(BudgetKind.TOKENS) > 0
        assert run.usage.get(BudgetKind.STEPS) == 1


async def test_analyzer_and_pattern_finder_are_explained_too(project: Path) -> None:
    async with with_model(project, [advice([1]), advice([2], "It waits longer each time.")]) as (service, _):
        traced: dict[str, Any] = await analyze_component(
            service, ResearchRequest(question="how does with_retry wait?")
        )
    assert traced["summary"].startswith("It waits longer each time.")
    assert "Explained by scripted." in traced["notes"]
    async with with_model(project, [advice([1]), advice([1], "All of them are alike.")]) as (service, _):
        shown: dict[str, Any] = await find_patterns(
            service, ResearchRequest(question="examples of with_retry")
        )
    assert shown["summary"].startswith("All of them are alike.")


async def test_setting_switches_the_model_off_for_research(project: Path) -> None:
    async with with_model(project, [advice([2])], **{"models.research": False}) as (service, scripted):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=VAGUE))
    assert scripted.prompts == []
    assert "model" not in str(after["notes"])
