"""A report has one place for a model's explanation, and says once why it is empty (P2, P3, P8)."""

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
    locate_in_codebase,
    research_codebase,
)
from retinue.wiring import build_service, read_settings, recording
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, says

pytestmark = pytest.mark.anyio

QUESTION = "what happens when a call fails?"


def advice(*sentences: str) -> str:
    return json.dumps({"explanation": [{"text": text, "cites": [1]} for text in sentences]})


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


async def test_model_explains_what_was_found_in_its_own_place_and_changes_nothing_else_P3(
    project: Path,
) -> None:
    before = await without_model(project, QUESTION)
    async with with_model(project, [advice("The delay doubles.", "See `made_up()`.")]) as (service, _):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=QUESTION))
    assert after["explanation"] == {"model": "scripted", "sentences": ["The delay doubles."]}
    assert "made_up" not in json.dumps(after)
    for same in ("references", "key_findings", "summary", "confidence"):
        assert after[same] == before[same]
    assert after["notes"].count("scripted") == 1
    assert "1 of its sentences left out" in after["notes"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (says("I would look in the settings."), "did not answer with the JSON"),
        (says(advice("It is in `nowhere.py`.")), "said nothing usable"),
        (ContextOverflow("the prompt is too long"), "Without the model"),
    ],
)
async def test_unusable_advice_leaves_the_answer_unchanged_and_is_reported_P8(
    project: Path, line: ScriptLine, why: str
) -> None:
    before = await without_model(project, QUESTION)
    async with with_model(project, [line]) as (service, _):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=QUESTION))
    assert after["references"] == before["references"]
    assert after["summary"] == before["summary"]
    assert "explanation" not in after
    assert why in after["notes"]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9/v1", "nowhere", "ftp://x"])
async def test_report_is_complete_and_says_so_if_the_model_server_is_missing_P10(
    project: Path, endpoint: str
) -> None:
    flags = {"roots": (str(project),), "models.endpoint": endpoint}
    loaded = read_settings(flags)
    async with recording(loaded, build_service(loaded)) as service:
        report: dict[str, Any] = await research_codebase(service, ResearchRequest(question=QUESTION))
    assert report["locator"]["value"]["references"]
    assert json.dumps(report).count("Without the model") == 1
    assert any(note.startswith("Without the model") for note in report["notes"])
    assert report["analyzer"]["status"] == "ok"


async def test_slow_model_gets_only_its_share_of_the_time_P2(project: Path) -> None:
    async def never(_: object) -> ScriptLine:
        await asyncio.Event().wait()
        raise AssertionError

    async with with_model(project, [never]) as (service, scripted):
        request = ResearchRequest(question=QUESTION, constraints={"deadline_ms": 3_000})
        report: dict[str, Any] = await research_codebase(service, request)
        left = service.runs.list(active=True)["runs"]
    assert any("it did not answer within" in note for note in report["notes"])
    assert report["analyzer"]["status"] == "ok"
    assert left == []
    assert scripted.prompts


async def test_advice_is_a_run_with_its_model_endpoint_and_tokens(project: Path) -> None:
    async with with_model(project, [advice("It waits longer each time.")]) as (service, _):
        await research_codebase(service, ResearchRequest(question=QUESTION))
        asked = [run for run in service.runs.store.runs.list() if run.spec.executor == "local"]
    assert [run.spec.agent for run in asked] == ["explanation"]
    for run in asked:
        assert run.status is RunStatus.SUCCESS
        assert run.spec.model == "scripted"
        assert run.spec.endpoint is not None
        assert run.usage.get(BudgetKind.TOKENS) > 0
        assert run.usage.get(BudgetKind.STEPS) == 1


async def test_report_asks_the_model_once_whatever_its_roles(project: Path) -> None:
    async with with_model(project, [advice("All of them are alike.")]) as (service, scripted):
        report: dict[str, Any] = await research_codebase(
            service, ResearchRequest(question="examples of with_retry")
        )
    assert len(scripted.prompts) == 1
    assert report["explanation"]["sentences"] == ["All of them are alike."]
    assert json.dumps(report).count("All of them are alike.") == 1


async def test_setting_switches_the_model_off_for_research(project: Path) -> None:
    async with with_model(project, [advice("It waits.")], **{"models.research": False}) as (
        service,
        scripted,
    ):
        after: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=QUESTION))
    assert scripted.prompts == []
    assert "model" not in str(after["notes"])
