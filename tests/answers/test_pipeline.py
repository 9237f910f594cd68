"""All roles share one budget and one deadline; if one fails, the report is still valid (P2, P8)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from retinue.answers import (
    FilesRead,
    ReadBudget,
    ResearchConstraints,
    ResearchRequest,
    open_scope,
    read_question,
)
from retinue.codebase import Policy
from retinue.core import LimitExceeded, PathMissing, RoleOutcome, RoleResult, Root, Spending, Stop
from retinue.redaction import SecretRedactor
from retinue.research import (
    Investigation,
    PerformInThread,
)
from retinue.research.pipeline import build_report, investigate
from retinue.research.role_runs import RoleWork
from retinue.store import Reports
from tests.answers.conftest import write

pytestmark = pytest.mark.anyio


class Recording:
    """Performs roles and records which, and how much time they had. May replace the work of some."""

    def __init__(
        self, replaced: Callable[[str], RoleWork | None] = lambda role: None, budget: Spending | None = None
    ) -> None:
        self.roles: list[str] = []
        self.seconds: list[float] = []
        self._replaced = replaced
        self._perform = PerformInThread() if budget is None else PerformInThread(spending=budget)

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        self.roles.append(role)
        self.seconds.append(seconds)
        return await self._perform(role, self._replaced(role) or work, seconds)


def investigation_of(
    project: Path, question: str, thoughts: Path | None = None, **limits: int
) -> Investigation:
    return Investigation(
        request=ResearchRequest(question=question),
        question=read_question(question),
        constraints=ResearchConstraints(**limits),
        scope=open_scope([Root.at(project)], Policy(), (), Stop()),
        thoughts=thoughts and open_scope([Root.at(thoughts)], Policy(), (), Stop()),
        redactor=SecretRedactor(),
        reports=Reports(project.parent / "data"),
        artifact_dir=project.parent / "artifacts",
    )


async def report_of(investigation: Investigation, perform: Recording | None = None) -> dict[str, Any]:
    await investigate(investigation, perform or Recording())
    return build_report(investigation).as_dict()


async def test_locator_runs_first_and_the_others_share_the_remaining_time(project: Path) -> None:
    """Phase 2, `research_codebase` orchestration."""
    perform = Recording()
    investigation = investigation_of(project, "examples of with_retry", deadline_ms=20_000)
    report = await report_of(investigation, perform)
    assert perform.roles == ["locator", "analyzer", "patterns"]
    assert 20 >= perform.seconds[0] >= perform.seconds[1]
    assert report["progress"]["spawnedTasks"] == 3


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("show existing patterns for retries", True),
        ("is there something similar to with_retry?", True),
        ("give me an example of with_retry", True),
        ("where is with_retry?", False),
        ("how does with_retry work?", False),
    ],
)
async def test_pattern_finder_runs_only_when_examples_are_asked_for(
    project: Path, question: str, wanted: bool
) -> None:
    assert ("patterns" in await report_of(investigation_of(project, question))) is wanted


async def test_roles_after_the_locator_run_at_the_same_time(project: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def meet(stop: Stop, spending: Spending) -> RoleResult:
        both.wait()
        return RoleResult(summary="met")

    perform = Recording(lambda role: None if role == "locator" else meet)
    report = await report_of(investigation_of(project, "examples of with_retry"), perform)
    assert report["analyzer"]["value"]["summary"] == report["patterns"]["value"]["summary"] == "met"


def fails(stop: Stop, spending: Spending) -> RoleResult:
    raise PathMissing("nothing readable at 'a.py'")


def breaks(stop: Stop, spending: Spending) -> RoleResult:
    raise ZeroDivisionError("secret inside")


def hangs(stop: Stop, spending: Spending) -> RoleResult:
    while True:
        stop.check()
        threading.Event().wait(0.005)


@pytest.mark.parametrize(
    ("work", "status", "name"),
    [
        (fails, "error", "path_missing"),
        (breaks, "error", "internal_error"),
        (hangs, "timeout", "deadline_exceeded"),
    ],
)
@pytest.mark.parametrize("role", ["locator", "analyzer"])
async def test_failing_role_leaves_a_valid_report(
    project: Path, work: RoleWork, status: str, name: str, role: str
) -> None:
    """Phase 2, deadlines and error mapping: structured, with stable codes, and no internal details."""
    perform = Recording(lambda performed: work if performed == role else None)
    # A hanging locator uses up any deadline; otherwise the other role needs time to finish.
    deadline_ms = 300 if work is hangs and role == "locator" else 3_000
    investigation = investigation_of(project, "how does with_retry work?", deadline_ms=deadline_ms)
    report = await report_of(investigation, perform)
    outcome = report[role]
    assert (outcome["status"], outcome["error"]["name"]) == (status, name)
    assert "value" not in outcome
    assert "secret inside" not in json.dumps(report)
    assert status in report["summary"]
    if role == "analyzer":
        assert report["locator"]["value"]["references"]
    else:
        assert "analyzer" not in report


async def test_cancel_ends_the_thread_before_it_returns() -> None:
    """Phase 2, cancellation: a canceled role stops working, and its thread has ended."""
    started, ended = threading.Event(), threading.Event()

    def work(stop: Stop, spending: Spending) -> RoleResult:
        started.set()
        try:
            return hangs(stop, spending)
        finally:
            ended.set()

    performing = asyncio.create_task(PerformInThread().perform("locator", work, 60.0))
    assert await anyio.to_thread.run_sync(started.wait, 5)
    performing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await performing
    assert ended.is_set()


async def test_canceled_role_reports_that_it_was_canceled() -> None:
    def work(stop: Stop, spending: Spending) -> RoleResult:
        stop.cancel()
        return hangs(stop, spending)

    outcome: RoleOutcome = (await PerformInThread().perform("locator", work, 60.0)).result
    assert (outcome.status, outcome.error and outcome.error.name) == ("canceled", "canceled")


async def test_spent_deadline_stops_roles_before_they_begin(project: Path) -> None:
    report = await report_of(investigation_of(project, "with_retry", deadline_ms=0))
    assert report["locator"]["status"] == "timeout"
    assert report["progress"]["filesRead"] == 0


async def test_one_budget_holds_for_all_roles_together(project: Path) -> None:
    """Phase 4, budget enforcement: across the whole pipeline, not for each role."""
    perform = Recording(budget=ReadBudget(max_files=7, max_bytes=900))
    report = await report_of(investigation_of(project, "examples of with_retry"), perform)
    assert report["progress"]["filesRead"] <= 7
    assert report["progress"]["bytesRead"] <= 900
    assert report["locator"]["status"] == report["analyzer"]["status"] == report["patterns"]["status"] == "ok"
    assert any("results may be truncated" in note for note in report["notes"])


def test_limits_are_never_exceeded_by_concurrent_threads() -> None:
    """P2: limits are hard, even if roles read at the same time."""
    read, budget = FilesRead(), ReadBudget(max_files=50, max_bytes=10_000)
    read.charge("first", 100, budget)

    def read_files(thread: int) -> None:
        for number in range(100):
            with suppress(LimitExceeded):
                read.charge((thread, number), 100, budget)

    threads = [threading.Thread(target=read_files, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (read.files, read.bytes) == (50, 5_000)
    assert read.refused == ("files",)
    read.charge("first", 5_000, budget)
    with pytest.raises(LimitExceeded) as caught:
        read.charge("first", 1, budget)
    assert (caught.value.kind, caught.value.limit) == ("bytes", 10_000)


def test_refused_read_is_not_counted_at_all() -> None:
    """P2: a file whose bytes do not fit does not count as a file either."""
    read, budget = FilesRead(), ReadBudget(max_files=1, max_bytes=10)
    with pytest.raises(LimitExceeded):
        read.charge("large", 11, budget)
    assert (read.files, read.bytes) == (0, 0)
    read.charge("small", 10, budget)
    assert (read.files, read.bytes) == (1, 10)


async def test_same_question_gives_the_same_report_apart_from_times(project: Path) -> None:
    """Determinism: also if several reports are made at the same time."""

    async def report_without_times() -> str:
        report = await report_of(investigation_of(project, "examples of with_retry"))
        del report["id"], report["progress"]["elapsedMs"]
        for role in ("locator", "analyzer", "patterns"):
            del report[role]["timing"]
        return json.dumps(report)

    reports = await asyncio.gather(*(report_without_times() for _ in range(5)))
    assert len(set(reports)) == 1


async def test_historical_documents_are_searched_after_the_code(project: Path, tmp_path: Path) -> None:
    """The roles for historical documents run only if there are such documents, and come last."""
    notes = write(
        tmp_path / "thoughts",
        {"2024/retries.md": "# Retry decision\n\nIn 2024 with_retry was chosen over a queue.\n"},
    ).resolve()
    report = await report_of(investigation_of(project, "how does with_retry work?", thoughts=notes))
    assert report["rootsSearched"] == [str(project), str(notes)]
    (reference,) = report["thoughtsLocator"]["value"]["references"]
    assert reference.startswith("2024/retries.md")
    assert report["rootOf"][reference] == 1
    assert "with_retry was chosen" in report["thoughtsAnalyzer"]["value"]["key_findings"][0]
    assert list(report).index("thoughtsLocator") > list(report).index("analyzer")
    assert "thoughtsLocator" not in await report_of(investigation_of(project, "with_retry"))
