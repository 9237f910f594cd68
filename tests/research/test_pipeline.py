"""One budget and one deadline for all roles; whatever happens to one, there is a valid report (P2, P8)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from retinue.codebase import Policy
from retinue.core import Charge, LimitExceeded, PathMissing, RoleOutcome, RoleResult, Root, Stop
from retinue.research import (
    InThread,
    Ledger,
    ResearchConstraints,
    ResearchPlan,
    check_question,
    investigate,
    report_of,
    roles_for,
    search_scope,
)
from retinue.research.pipeline import Findings
from retinue.research.role_runs import RoleWork, attempt
from tests.research.conftest import write

pytestmark = pytest.mark.anyio


class Recording:
    """Performs roles, and remembers which and how long they had; may spoil some."""

    def __init__(self, spoil: Callable[[str], RoleWork | None] = lambda role: None) -> None:
        self.roles: list[str] = []
        self.seconds: list[float] = []
        self._spoil = spoil
        self._perform = InThread()

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        self.roles.append(role)
        self.seconds.append(seconds)
        return await self._perform(role, self._spoil(role) or work, seconds)


def request(project: Path, question: str, thoughts: Path | None = None, **limits: int) -> ResearchPlan:
    return ResearchPlan(
        asked=check_question(question),
        scope=search_scope([Root.at(project)], Policy(), (), Stop()),
        thoughts=thoughts and search_scope([Root.at(thoughts)], Policy(), (), Stop()),
        constraints=ResearchConstraints(**limits),
        redact=str,
    )


async def run(asking: ResearchPlan, perform: Recording | None = None) -> Findings:
    return await investigate(asking, roles_for(asking.asked), perform or Recording())


def shown(findings: Findings) -> dict[str, Any]:
    return report_of(findings).as_dict()


async def test_locator_runs_first_and_the_others_share_what_is_left(project: Path) -> None:
    """Phase 2, `research_codebase` orchestration."""
    perform = Recording()
    report = shown(await run(request(project, "examples of with_retry", deadline_ms=20_000), perform))
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
    assert ("patterns" in shown(await run(request(project, question)))) is wanted


async def test_roles_after_the_locator_run_beside_each_other(project: Path) -> None:
    both = threading.Barrier(2, timeout=5)

    def meet(stop: Stop, charge: Charge) -> RoleResult:
        both.wait()
        return RoleResult(summary="met")

    perform = Recording(lambda role: None if role == "locator" else meet)
    report = shown(await run(request(project, "examples of with_retry"), perform))
    assert report["analyzer"]["value"]["summary"] == report["patterns"]["value"]["summary"] == "met"


def fails(stop: Stop, charge: Charge) -> RoleResult:
    raise PathMissing("nothing readable at 'a.py'")


def breaks(stop: Stop, charge: Charge) -> RoleResult:
    raise ZeroDivisionError("secret inside")


def hangs(stop: Stop, charge: Charge) -> RoleResult:
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
    """Phase 2, deadlines and error mapping: structured, with stable codes, nothing of our insides."""
    perform = Recording(lambda performed: work if performed == role else None)
    report = shown(await run(request(project, "how does with_retry work?", deadline_ms=3_000), perform))
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
    """Phase 2, cancellation: a canceled task stops working, and nothing outlives its scope."""
    started, ended = threading.Event(), threading.Event()

    def work(stop: Stop, charge: Charge) -> RoleResult:
        started.set()
        try:
            return hangs(stop, charge)
        finally:
            ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(InThread(), "locator", work, 60.0)
        assert await anyio.to_thread.run_sync(started.wait, 5)
        tasks.cancel_scope.cancel()
    assert ended.is_set()


def test_canceled_role_is_said_to_be() -> None:
    stop = Stop()
    stop.cancel()
    outcome = attempt("locator", hangs, stop)
    assert (outcome.status, outcome.error and outcome.error.name) == ("canceled", "canceled")


async def test_spent_deadline_stops_roles_before_they_begin(project: Path) -> None:
    report = shown(await run(request(project, "with_retry", deadline_ms=0)))
    assert report["locator"]["status"] == "timeout"
    assert report["progress"]["filesRead"] == 0


async def test_one_budget_holds_for_all_roles_together(project: Path) -> None:
    """Phase 4, budget enforcement: across the whole pipeline, not for each role."""
    findings = await run(request(project, "examples of with_retry", max_files_read=7, max_bytes_read=900))
    report = shown(findings)
    assert report["progress"]["filesRead"] <= 7
    assert report["progress"]["bytesRead"] <= 900
    assert report["locator"]["status"] == report["analyzer"]["status"] == report["patterns"]["status"] == "ok"
    assert any("results may be truncated" in note for note in report["notes"])


def test_ledger_never_passes_its_limits_under_threads() -> None:
    """P2: limits are hard, also when roles read beside each other."""
    ledger = Ledger(max_files=50, max_bytes=10_000)
    refused = threading.Semaphore(0)

    def read(thread: int) -> None:
        for number in range(100):
            try:
                ledger.charge((thread, number), 100)
            except LimitExceeded:
                refused.release()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ledger.files, ledger.bytes) == (50, 5_000)
    assert ledger.refused == ("files",)
    ledger.charge((0, 0), 5_000)
    with pytest.raises(LimitExceeded) as caught:
        ledger.charge((0, 0), 1)
    assert (caught.value.kind, caught.value.limit) == ("bytes", 10_000)


async def test_same_question_gives_the_same_report_but_for_times(project: Path) -> None:
    """Determinism: also when several reports are made at once."""
    reports: list[dict[str, Any]] = []

    async def one() -> None:
        report = shown(await run(request(project, "examples of with_retry")))
        del report["id"], report["progress"]["elapsedMs"]
        for role in ("locator", "analyzer", "patterns"):
            del report[role]["timing"]
        reports.append(report)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(one)
    assert len({json.dumps(report) for report in reports}) == 1


async def test_historical_documents_are_searched_after_the_code(project: Path, tmp_path: Path) -> None:
    """Thoughts roles run only where such documents are, and come last."""
    notes = write(
        tmp_path / "thoughts",
        {"2024/retries.md": "# Retry decision\n\nIn 2024 with_retry was chosen over a queue.\n"},
    ).resolve()
    asking = request(project, "how does with_retry work?", thoughts=notes)
    report = shown(await run(asking))
    assert report["rootsSearched"] == [str(project), str(notes)]
    (reference,) = report["thoughtsLocator"]["value"]["references"]
    assert reference.startswith("2024/retries.md")
    assert report["rootOf"][reference] == 1
    assert "with_retry was chosen" in report["thoughtsAnalyzer"]["value"]["key_findings"][0]
    assert list(report).index("thoughtsLocator") > list(report).index("analyzer")
    assert "thoughtsLocator" not in shown(await run(request(project, "with_retry")))
