"""Notifications within one process and between two."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from retinue.core import RunId
from retinue.runtime import Changes
from tests.runtime.runtime_support import DONE, SPEC, Server, server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_change_in_any_process_wakes_a_waiting_task(tmp_path: Path, elsewhere: bool) -> None:
    async with server(tmp_path) as here, server(tmp_path) as there:
        run = await here.submit(SPEC)
        ended = asyncio.create_task(
            here.changes.until(lambda: here.status(run.id).ended or None, {run.id}, wait_s=5)
        )
        await asyncio.sleep(0)
        await (there if elsewhere else here).store.write(
            (there if elsewhere else here).store.runs.request_cancel, run.id
        )
        assert await ended is True


async def test_change_in_another_thread_wakes_a_waiting_task(one: Server) -> None:
    run = await one.submit(SPEC)
    with one.changes.watch({run.id}, poll_s=None) as watch:
        await asyncio.to_thread(one.store.runs.request_cancel, run.id)
        async with asyncio.timeout(5):
            assert await watch.next() == {run.id}


async def test_changes_of_other_runs_do_not_wake_a_waiting_task(one: Server) -> None:
    run, other = await one.submit(SPEC), await one.submit(SPEC)
    checks = 0

    def check() -> bool | None:
        nonlocal checks
        checks += 1
        return one.status(run.id).ended or None

    waiting = asyncio.create_task(one.changes.until(check, {run.id}, wait_s=5))
    await asyncio.sleep(0)
    for _ in range(20):
        await one.store.write(one.store.runs.set_summary, other.id, "busy")
        await asyncio.sleep(0)
    before = checks
    await one.store.write(one.store.runs.request_cancel, run.id)
    assert await waiting
    assert before <= 2


async def test_until_returns_none_after_the_timeout(one: Server) -> None:
    assert await one.changes.until(lambda: None, {RunId.new()}, wait_s=0.01) is None


async def test_until_returns_at_once_if_the_check_holds(one: Server) -> None:
    assert await one.changes.until(lambda: "so", {RunId.new()}, wait_s=0) == "so"


async def test_database_is_not_polled_while_nobody_waits(tmp_path: Path) -> None:
    """An idle server makes no queries."""
    async with server(tmp_path) as at:
        looks = 0

        def count(_: str) -> None:
            nonlocal looks
            looks += 1

        connection = at.store.database._reader  # pyright: ignore[reportPrivateUsage] - to see every query
        connection.set_trace_callback(count)
        await asyncio.sleep(0.1)  # the test is about time that passes
        connection.set_trace_callback(None)
        assert looks <= 1


async def test_watch_ends_with_its_block(one: Server) -> None:
    async with Changes(one.store):
        pass
    await one.submit(SPEC)
    assert len(asyncio.all_tasks()) <= 4
    run = await one.submit(SPEC)
    async with one.pool.slot(run.id):
        await one.store.write(one.store.runs.finish, run.id, DONE)
