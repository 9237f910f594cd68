"""No failure of the store stalls or ends the server (P5, P8).

A store whose methods fail, or whose lock another process holds, stands behind a whole service: a program, a
question, research and a workflow are under way meanwhile.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from retinue.config import LoadedSettings
from retinue.config.settings import CommandSettings, RuntimeSettings, Settings
from retinue.core import ACTIVE_STATUSES, Assignment, RetinueError, RunStatus, Unavailable
from retinue.service import ResearchRequest, Service, research_codebase
from retinue.store import Store
from retinue.wiring import build_service, running

pytestmark = pytest.mark.anyio

PROGRAMS = {
    "quick": ("echo", "done"),
    "slow": ("sh", "-c", "sleep 0.3; echo done"),
    "stuck": ("sleep", "60"),
}
WORKFLOW = {"steps": [{"agent": "quick", "plain": True}, {"agent": "quick", "plain": True}]}
HOLD_LOCK = """
import sys, time
from pathlib import Path
from retinue.core import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire(10)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""

Plan = Callable[[], bool]
"""Whether the next call of the method fails."""


class Failing:
    """A table of the store with one method that fails as planned."""

    def __init__(self, table: Any, method: str, fails: Plan) -> None:
        self._table = table
        self._method = method
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        if name == self._method and self._fails():
            raise Unavailable(f"{name} fails as planned")
        return getattr(self._table, name)


class FailingStore(Store):
    def plan(self, table: str, method: str, fails: Plan) -> None:
        setattr(self, table, Failing(getattr(self, table), method, fails))


TABLES = (
    *("runs", "queue", "messages", "events", "ledgers", "child_tokens", "workflows", "checkpoints"),
    "permissions",
)


def kind_of(table: str) -> type[Any]:
    from retinue.store import store as module

    names = {
        "runs": "RunTable",
        "queue": "RunQueue",
        "messages": "MessageTable",
        "events": "EventTable",
        "ledgers": "LedgerTable",
        "child_tokens": "ChildTokens",
        "workflows": "WorkflowTable",
        "checkpoints": "CheckpointTable",
        "permissions": "RememberedPermissions",
    }
    return getattr(module, names[table])


METHODS = [
    (table, name)
    for table in TABLES
    for name in vars(kind_of(table))
    if not name.startswith("_") and callable(getattr(kind_of(table), name))
]


ALWAYS_TESTED = {
    *(
        ("runs", "record"),
        ("runs", "finish"),
        ("runs", "get"),
        ("queue", "admit"),
        ("queue", "scheduling_state"),
    ),
    *(("messages", "ask"), ("events", "add"), ("workflows", "record"), ("checkpoints", "finish")),
}
assert set(METHODS) >= ALWAYS_TESTED, "a method was renamed"


def once() -> Plan:
    left = [True]
    return lambda: bool(left) and left.pop()


def for_seconds(seconds: float) -> Plan:
    ends: list[float] = []

    def fails() -> bool:
        if not ends:
            ends.append(time.monotonic() + seconds)
        return time.monotonic() < ends[0]

    return fails


@asynccontextmanager
async def serving(
    folder: Path, plan: tuple[str, str, Plan] | None = None, lock_timeout_s: float = 10.0
) -> AsyncGenerator[Service]:
    project = folder / "project"
    project.mkdir()
    (project / "retry.py").write_text("def retry_request():\n    return 1\n")
    settings = Settings(
        data_dir=folder / "data",
        roots=(project,),
        runtime=RuntimeSettings(max_concurrent_tasks=4),
        commands={name: CommandSettings(argv=argv) for name, argv in PROGRAMS.items()},
    )
    loaded = LoadedSettings(settings, {})

    open_store = partial(FailingStore.open, lock_timeout_s=lock_timeout_s)
    async with running(loaded, build_service(loaded), adopt_parked=True, open_store=open_store) as service:
        if plan is not None:
            cast("FailingStore", service.runs.store).plan(*plan)
        yield service


async def attempt(work: Any) -> Any:
    """Await the call and return its result or its `RetinueError`."""
    try:
        return await work
    except RetinueError as error:
        return error


async def everything_at_once(service: Service) -> list[Any]:
    """Run a program, a question, a cancel, research and a workflow at the same time."""
    runs = service.runs

    async def program(name: str) -> Any:
        run = await runs.start(name, "go", person=True)
        return await runs.finish(run.id, 30.0)

    async def canceled() -> Any:
        run = await runs.start("stuck", "go", person=True)
        return await runs.cancel_and_wait(run.id, 30.0)

    async def question() -> Any:
        run = await runs.start("stuck", "go", person=True)
        asking = asyncio.create_task(runs.ask_parent(run.id, "which?", 20.0))
        while not (pending := service.runs.store.messages.pending(run.id)) and not asking.done():
            await runs.next_change(0.05)
        if pending:
            await attempt(runs.reply(run.id, pending[0].id, "this one"))
        told = await asking
        await attempt(runs.cancel_and_wait(run.id, 30.0))
        return told

    async def workflow() -> Any:
        run = await service.workflows.start(None, Assignment(feature="x"), spec=WORKFLOW, person=True)
        return await service.workflows.finish(run.id, 30.0)

    async def research() -> Any:
        return await research_codebase(service, ResearchRequest(question="where is retry_request?"))

    works = (program("quick"), program("slow"), canceled(), question(), workflow(), research())
    return list(await asyncio.gather(*map(attempt, works)))


async def the_record_becomes_true(service: Service) -> None:
    """Wait until every recorded run has ended."""
    runs = service.runs
    async with asyncio.timeout(30):
        while active := runs.store.runs.list(statuses=ACTIVE_STATUSES, limit=-1):
            for run in active:
                await attempt(runs.cancel(run.id))
            await runs.next_change(0.05)


async def a_new_run_works(service: Service) -> None:
    run = await service.runs.start("quick", "go", person=True)
    async with asyncio.timeout(20):
        done = await service.runs.finish(run.id, 20.0)
    assert (done["status"], done["result"].strip()) == ("success", "done")


async def check_fault(folder: Path, table: str, method: str, plan: Plan) -> None:
    async with serving(folder, (table, method, plan)) as service:
        async with asyncio.timeout(50):
            results = await everything_at_once(service)
        assert all(isinstance(result, dict | RetinueError) for result in results)
        assert service.ping() == "pong"
        while plan():
            await service.runs.next_change(0.05)
        await the_record_becomes_true(service)
        await a_new_run_works(service)
        for run in service.runs.store.runs.list(limit=-1):
            assert run.status.ended, run
            if run.status is RunStatus.SUCCESS and run.spec.agent in ("quick", "slow"):
                assert run.result is not None and run.exit_code == 0


@pytest.mark.parametrize(
    ("table", "method"),
    [each if each in ALWAYS_TESTED else pytest.param(*each, marks=pytest.mark.slow) for each in METHODS],
    ids=str,
)
async def test_method_that_fails_once_ends_at_most_one_run(tmp_path: Path, table: str, method: str) -> None:
    await check_fault(tmp_path, table, method, once())


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("table", "method"), METHODS, ids=str)
async def test_method_that_fails_for_five_seconds_leaves_the_server_alive(
    tmp_path: Path, table: str, method: str
) -> None:
    await check_fault(tmp_path, table, method, for_seconds(5))


@pytest.mark.parametrize(
    "held_s", [3.0, pytest.param(60.0, marks=[pytest.mark.slow, pytest.mark.timeout(180)])]
)
async def test_lock_held_by_another_process_stalls_neither_reads_nor_runs(
    tmp_path: Path, held_s: float
) -> None:
    """The lock is held for longer than a write waits. Writes that must not be lost happen afterwards."""
    write_waits_s = min(10.0, held_s / 3)
    async with serving(tmp_path, lock_timeout_s=write_waits_s) as service:
        runs = service.runs
        first, second = [await runs.start("slow", "go", person=True) for _ in range(2)]
        while runs.store.runs.get(second.id).process is None:
            await runs.next_change(0.05)
        lock = runs.store.folder.write_lock
        holder = await asyncio.to_thread(
            subprocess.Popen,
            [sys.executable, "-c", HOLD_LOCK, lock, str(held_s)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
        slowest = 0.0
        while holder.poll() is None:
            began = time.perf_counter()
            assert service.ping() == "pong"
            assert runs.status(first.id)["status"] in ("running", "success")
            await asyncio.sleep(0.01)
            slowest = max(slowest, time.perf_counter() - began - 0.01)
        holder.stdout.close()
        assert "done" in runs.store.folder.log(first.id).read_text()
        for run in (first, second):
            done = await runs.finish(run.id, 30.0)
            assert (done["status"], done["result"].strip()) == ("success", "done")
    assert slowest < write_waits_s / 2, "something waited for the lock, not for a busy machine"


async def test_run_that_cannot_be_recorded_is_never_started(tmp_path: Path) -> None:
    """A run starts only after the transaction that records it has committed."""
    async with serving(tmp_path, ("child_tokens", "issue", once())) as service:
        with pytest.raises(Unavailable):
            await service.runs.start("quick", "go", person=True)
        assert service.runs.store.runs.list() == []
        await a_new_run_works(service)
