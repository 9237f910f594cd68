"""Waiting for runs: notified at once in their own process, polled in others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.config import LoadedSettings
from retinue.config.settings import CommandSettings, RuntimeSettings, Settings
from retinue.core import Budget, RunLimits
from retinue.service import RunWaiter
from retinue.wiring import build_service, running
from tests.runtime.runtime_support import DONE, SPEC, Server, server

pytestmark = pytest.mark.anyio


def waiting_at(at: Server) -> RunWaiter:
    return RunWaiter(at.store, at.changes, at.owner.id)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_wait_ends_with_the_run_in_any_process(tmp_path: Path, elsewhere: bool) -> None:
    async with server(tmp_path) as here, server(tmp_path) as there:
        run = await here.submit(SPEC)
        waiting = waiting_at(there if elsewhere else here)
        ended = asyncio.create_task(waiting.until([run.id], "all", 60))
        await asyncio.sleep(0)
        await here.store.write(here.store.runs.request_cancel, run.id)
        async with asyncio.timeout(5):
            await ended


async def test_wait_for_a_run_of_this_process_does_not_poll(tmp_path: Path) -> None:
    """Otherwise a wait of an hour would be 720,000 queries."""
    async with server(tmp_path) as at:
        run = await at.submit(SPEC)
        looks = 0

        def count(query: str) -> None:
            nonlocal looks
            looks += "data_version" in query

        connection = at.store.database._writer  # pyright: ignore[reportPrivateUsage] - to see every query
        connection.set_trace_callback(count)
        await waiting_at(at).until([run.id], "all", 0.1)  # the test is about time that passes
        connection.set_trace_callback(None)
        assert looks <= 2


async def test_long_wait_for_a_run_of_another_process_looks_ever_more_rarely(tmp_path: Path) -> None:
    """Waiting for a person costs almost nothing."""
    async with server(tmp_path) as here, server(tmp_path) as there:
        run = await here.submit(SPEC)
        looks = 0

        def count(query: str) -> None:
            nonlocal looks
            looks += "data_version" in query

        connection = there.store.database._writer  # pyright: ignore[reportPrivateUsage] - to see every query
        connection.set_trace_callback(count)
        await waiting_at(there).until([run.id], "all", 0.8)  # the test is about time that passes
        connection.set_trace_callback(None)
        assert looks <= 80, "one look every 5 ms would be 160"


async def test_question_that_the_caller_knows_does_not_end_another_wait(tmp_path: Path) -> None:
    """P9: a host that waits again before somebody answers does not spin."""
    async with server(tmp_path, max_concurrent=3) as at:
        waiting = waiting_at(at)
        first, second = await at.submit(SPEC), await at.submit(SPEC)
        async with asyncio.timeout(5), at.pool.slot(first.id), at.pool.slot(second.id):
            asked = await at.store.write(at.store.messages.ask, first.id, "left?")
            await waiting.until([first.id, second.id], "any", 60)
            again = asyncio.create_task(waiting.until([first.id, second.id], "any", 60, known=[asked.id]))
            both = asyncio.create_task(waiting.until([first.id, second.id], "all", 60, known=[asked.id]))
            alone = asyncio.create_task(waiting.until([first.id], "all", 60, known=[asked.id]))
            done, _ = await asyncio.wait((again, both, alone), timeout=0.1)
            assert not done
            await at.store.write(at.store.messages.ask, second.id, "right?")
            await asyncio.gather(again, both)
            assert not alone.done()
            await at.store.write(at.store.messages.ask, first.id, "how far?")
            await alone


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_wait_for_a_run_ends_with_a_question_of_a_run_below_it(tmp_path: Path, elsewhere: bool) -> None:
    """P9: whoever waits for the first run is the only one who can answer."""
    async with server(tmp_path, max_concurrent=3) as here, server(tmp_path) as there:
        may_spawn = RunLimits(budget=Budget(spawns=2))
        first = await here.submit(replace(SPEC, limits=may_spawn))
        child = await here.submit(replace(SPEC, parent=first.id, limits=may_spawn))
        grandchild = await here.submit(replace(SPEC, parent=child.id))
        at = there if elsewhere else here
        asked = asyncio.create_task(waiting_at(at).until([first.id], "all", 60))
        past = asyncio.create_task(waiting_at(at).until([first.id], "all", 60, past_questions=True))
        await asyncio.sleep(0)
        async with AsyncExitStack() as running, asyncio.timeout(5):
            for run in (first, child, grandchild):
                await running.enter_async_context(here.pool.slot(run.id))
            message = await here.store.write(here.store.messages.ask, grandchild.id, "which one?")
            await asked
        for run in (first, child, grandchild):
            found = waiting_at(at).open_questions(at.store.runs.get(run.id))
            assert [each.id for each in found] == [message.id]
        assert not past.done()
        assert await here.finish(first.id, DONE)
        async with asyncio.timeout(5):
            await past


async def test_question_is_an_event_of_every_run_above(tmp_path: Path) -> None:
    async with server(tmp_path) as at:
        first = await at.submit(replace(SPEC, limits=RunLimits(budget=Budget(spawns=1))))
        child = await at.submit(replace(SPEC, parent=first.id))
        async with asyncio.timeout(5), at.pool.slot(first.id), at.pool.slot(child.id):
            await at.store.write(at.store.messages.ask, child.id, "which one?")
        [event] = at.store.events.of_run(first.id, kind="child_asks")
        assert event.data == {"run": child.id}
        assert not at.store.events.of_run(child.id, kind="child_asks")


async def test_named_time_limit_holds_in_the_queue_and_the_wait_has_a_reason(tmp_path: Path) -> None:
    """P2, P8: a command with `--timeout 20` waited minutes for a slot, in silence."""
    settings = Settings(
        data_dir=tmp_path / "data",
        roots=(tmp_path,),
        runtime=RuntimeSettings(max_concurrent_tasks=1),
        commands={"stuck": CommandSettings(argv=("sleep", "60"))},
    )
    loaded = LoadedSettings(settings, {})
    async with running(loaded, build_service(loaded)) as service:
        runs = service.runs
        first = await runs.start("stuck", "go", person=True)
        patient = await runs.start("stuck", "go", person=True)
        hurried = await runs.start("stuck", "go", person=True, changes={"timeout_s": 0.1})
        assert (await runs.finish(hurried.id, 30.0))["error"]["message"] == "the deadline passed in the queue"
        assert runs.held_back(first.id) is None
        assert (runs.held_back(patient.id) or "").startswith("stuck waits for a free slot")
        for run in (first, patient):
            await runs.cancel_and_wait(run.id)
