"""Waiting for runs: notified at once in their own process, polled in others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from retinue.service import RunWaiter
from tests.runtime.runtime_support import SPEC, Server, server

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
