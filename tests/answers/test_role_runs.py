"""Every question is a run with a child run for each role: recorded, metered, ended (P2, P5, P8, P9)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from anyio import CapacityLimiter

from retinue.codebase import Located, Locator, ParsedQuestion
from retinue.core import (
    Canceled,
    InvalidInput,
    PathMissing,
    RoleResult,
    Run,
    RunId,
    RunStatus,
    Spending,
    Stop,
)
from retinue.research import (
    Investigation,
    PerformInThread,
)
from retinue.service import (
    ResearchRequest,
    RunService,
    Service,
    analyze_component,
    locate_in_codebase,
    read_log,
    research_codebase,
)
from retinue.service.research import answer_in_run
from retinue.store import Store, recover_dead_owners
from retinue.wiring import build_service, read_settings, recording
from tests.answers.test_pipeline import investigation_of

pytestmark = pytest.mark.anyio
QUESTION = "how does with_retry work?"
PROJECT = Path(__file__).parent.parent.parent


@asynccontextmanager
async def up(project: Path, **flags: Any) -> AsyncGenerator[tuple[Service, RunService]]:
    loaded = read_settings({"roots": (str(project),), **flags})
    async with recording(loaded, build_service(loaded)) as service:
        yield service, service.runs


def by_agent(runs: RunService) -> dict[str, Run]:
    return {run.spec.agent: run for run in runs.store.runs.list()}


class Hanging:
    """A role that works until it is stopped."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def __call__(self, stop: Stop, spending: Spending | None = None) -> RoleResult:
        self.begun.set()
        try:
            while True:
                stop.check()
                threading.Event().wait(0.005)
        finally:
            self.ended.set()


def investigation_with(project: Path, before_search: Callable[[Stop], object]) -> Investigation:
    """An investigation whose locator calls a function before it searches."""

    class Prepared(Locator):
        def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
            before_search(stop)
            return super().locate(question, limit, stop)

    investigation = investigation_of(project, QUESTION)
    scope = investigation.scope
    investigation.scope = replace(scope, locator=Prepared(scope.codebase))
    return investigation


async def test_each_role_is_a_child_run_of_the_question(project: Path) -> None:
    async with up(project) as (service, runs):
        answer: dict[str, Any] = await research_codebase(service, ResearchRequest(question=QUESTION))
        found = by_agent(runs)
        request_run = found["research"]
        assert set(found) == {"research", "locator", "analyzer"}
        assert {run.status for run in found.values()} == {RunStatus.SUCCESS}
        assert {run.spec.executor for run in found.values()} == {"deterministic"}
        assert {found[role].spec.parent for role in ("locator", "analyzer")} == {request_run.id}
        assert request_run.spec.task == QUESTION
        for role in ("locator", "analyzer"):
            stored: Any = found[role].result
            whole = stored["value"]
            lists = {name: whole[name] for name in ("references", "key_findings")}
            assert whole == answer[role]["value"] | lists | {"summary": whole["summary"]}
            for name, items in lists.items():  # the report tells nothing twice
                assert set(answer[role]["value"][name]) <= set(items)
            assert whole["summary"] in read_log(runs, found[role].id)["log"]
        stored_result: Any = request_run.result
        assert stored_result["value"] == answer


async def test_what_roles_read_is_charged_to_their_meters_and_to_the_tree(project: Path) -> None:
    """P2: reads are reserved within the budget of the whole tree."""
    async with up(project) as (service, runs):
        answer: dict[str, Any] = await research_codebase(
            service, ResearchRequest(question=QUESTION, constraints={"maxFilesRead": 5})
        )
        found = by_agent(runs)
        usage = [found[role].usage.as_dict() for role in ("locator", "analyzer")]
        accounts = runs.store.ledgers.accounts(found["research"].id)
    read = answer["progress"]
    assert sum(one.get("files", 0) for one in usage) == read["filesRead"] <= 5
    assert sum(one.get("bytes", 0) for one in usage) == read["bytesRead"]
    assert {kind.value: (account.taken, account.limit) for kind, account in accounts.items()} == {
        "files": (read["filesRead"], 5),
        "bytes": (read["bytesRead"], 1_048_576),
    }


async def test_locator_alone_is_one_run_with_its_usage(project: Path) -> None:
    async with up(project) as (service, runs):
        answer: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=QUESTION))
        [run] = runs.store.runs.list()
    assert (run.spec.agent, run.spec.parent, run.status) == ("locator", None, RunStatus.SUCCESS)
    assert run.usage.as_dict()["files"] == len({one.partition(":")[0] for one in answer["references"]})


async def test_answers_are_the_same_with_and_without_runs(project: Path) -> None:
    async with up(project) as (service, _):
        recorded: dict[str, Any] = await analyze_component(service, ResearchRequest(question=QUESTION))
        plain: dict[str, Any] = await analyze_component(
            replace(service, run_service=None), ResearchRequest(question=QUESTION)
        )
    assert recorded | {"timing": 0} == plain | {"timing": 0}


async def test_invalid_question_leaves_no_run(project: Path) -> None:
    async with up(project) as (service, runs):
        with pytest.raises(InvalidInput):
            await research_codebase(service, ResearchRequest(question="?"))
        assert runs.store.runs.list() == []


async def test_late_locator_is_a_run_that_timed_out(project: Path) -> None:
    """P8: the answer and the run report the same."""
    async with up(project) as (service, runs):
        answer: dict[str, Any] = await locate_in_codebase(
            service, ResearchRequest(question=QUESTION, constraints={"deadlineMs": 1})
        )
        [run] = runs.store.runs.list()
    assert (answer["status"], run.status) == ("timeout", RunStatus.TIMEOUT)
    assert run.error == {"code": "deadline_exceeded", "message": answer["error"]["message"]}


async def test_failing_role_ends_its_run_with_the_code_of_its_error(project: Path) -> None:
    def fail(_: Stop) -> None:
        raise PathMissing("gone: a.py")

    async with up(project) as (_, runs):
        answer: Any = await answer_in_run(runs, investigation_with(project, fail))
        found = by_agent(runs)
    assert answer["locator"]["status"] == "error"
    assert found["locator"].error == {"code": "path_missing", "message": "gone: a.py"}
    assert found["research"].status is RunStatus.SUCCESS


@pytest.mark.parametrize("agent", ["research", "locator"])
async def test_cancel_ends_the_roles_and_their_threads(project: Path, agent: str) -> None:
    """Canceling the request cancels its roles; canceling a role cancels that role alone."""
    hanging = Hanging()
    async with up(project) as (_, runs):
        asking = asyncio.create_task(answer_in_run(runs, investigation_with(project, hanging)))
        assert await anyio.to_thread.run_sync(hanging.begun.wait, 5)
        await runs.cancel_and_wait(by_agent(runs)[agent].id)
        if agent == "research":
            with pytest.raises(Canceled):
                await asking
        else:
            answer: Any = await asking
            assert answer["locator"]["status"] == "canceled"
        assert hanging.ended.is_set()
        found = by_agent(runs)
    assert found["locator"].status is RunStatus.CANCELED
    assert found["research"].status is (RunStatus.CANCELED if agent == "research" else RunStatus.SUCCESS)


async def test_slow_answer_becomes_a_handle_that_can_be_waited_for(project: Path) -> None:
    """P9: nothing is lost if the host stops waiting first."""
    go_on = threading.Event()

    def wait(_: Stop) -> None:
        assert go_on.wait(20)

    async with up(project) as (_, runs):
        impatient = replace(runs, patience_s=0.01)
        handle: Any = await answer_in_run(impatient, investigation_with(project, wait))
        assert handle["status"] == "running"
        assert "wait_for_runs" in handle["next"]
        go_on.set()
        done = await runs.wait([handle["run_id"]], "all", 5)
    assert done["runs"][0]["result"]["locator"]["status"] == "ok"


async def test_person_at_a_terminal_gets_the_answer_however_long_it_takes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P9: `patience_s` is for hosts; a command waits for its answer."""
    monkeypatch.setenv("RETINUE_RUNTIME__PATIENCE_S", "1")
    slow = investigation_with(project, lambda _: threading.Event().wait(1.3))
    async with up(project) as (_, runs):
        answer: Any = await answer_in_run(runs, slow)
    assert answer["locator"]["status"] == "ok"


async def test_no_more_roles_work_at_once_than_the_settings_allow(project: Path) -> None:
    """Phase 2: the workers enforce `max_concurrent_tasks`; the other roles wait, and each gets its turn."""
    lock, at_work, most = threading.Lock(), 0, 0

    def work(_: Stop) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        threading.Event().wait(0.01)
        with lock:
            at_work -= 1

    async with up(project) as (_, runs):
        bounded = replace(runs, workers=CapacityLimiter(2))
        asking = [answer_in_run(bounded, investigation_with(project, work)) for _ in range(8)]
        answers: list[Any] = await asyncio.gather(*asking)
    assert [answer["locator"]["status"] for answer in answers] == ["ok"] * 8
    assert most == 2


async def test_role_without_a_free_worker_times_out() -> None:
    """Phase 2: a role that waits in vain does not release a worker that it never had."""
    hanging, workers = Hanging(), CapacityLimiter(1)
    threads = PerformInThread(workers)
    first = asyncio.create_task(threads("locator", hanging, 60.0))
    assert await anyio.to_thread.run_sync(hanging.begun.wait, 5)
    outcome = await threads("analyzer", hanging, 0.02)
    assert (outcome.status, workers.borrowed_tokens) == ("timeout", 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert hanging.ended.is_set()
    assert workers.borrowed_tokens == 0


def test_killed_server_leaves_no_role_running(project: Path, own_folders: Path) -> None:
    """P5: the next server marks the run of the question and of its role as interrupted."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.answers.hanging_server", str(project)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    assert process.stdout is not None
    request_id = RunId.parse(process.stdout.readline().strip())
    process.kill()
    process.wait(20)
    process.stdout.close()
    with Store.open(own_folders) as store:
        assert len(recover_dead_owners(store, lambda _: None)) == 2
        found = store.runs.list(request=request_id)
    assert {(run.spec.agent, run.status) for run in found} == {
        ("research", RunStatus.INTERRUPTED),
        ("locator", RunStatus.INTERRUPTED),
    }
