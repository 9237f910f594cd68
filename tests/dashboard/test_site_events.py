"""The event stream tells open pages about changes and about the end of the dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from retinue.core import Stop
from retinue.dashboard.site import change_events
from retinue.service import watch_for_changes
from retinue.store.pruning import prune_runs
from tests.dashboard.conftest import Visit, visiting

pytestmark = pytest.mark.anyio

BEGIN, CHANGE, END = "retry: 2000\n\n", "event: change\ndata:\n\n", "event: end\ndata:\n\n"


async def next_of(stream: AsyncGenerator[str]) -> str:
    with anyio.fail_after(5):
        return await anext(stream)


async def open_stream(visit: Visit, run_id: str | None = None) -> AsyncGenerator[str]:
    """Return a stream that has sent its first line."""
    stream = change_events(visit.service.runs, run_id, lambda: False)
    assert await next_of(stream) == BEGIN
    return stream


async def test_change_of_any_run_sends_an_event() -> None:
    events: list[str] = []

    async def listen(stream: AsyncGenerator[str]) -> None:
        events.append(await next_of(stream))

    async with visiting() as visit, aclosing(await open_stream(visit)) as stream:
        async with anyio.create_task_group() as group:
            group.start_soon(listen, stream)
            await anyio.lowlevel.checkpoint()  # the task is listening now
            await visit.started()
        assert events == [CHANGE]


async def test_new_log_output_of_the_watched_run_is_noticed() -> None:
    """The output is only in the log file; the database does not change."""
    async with visiting() as visit:
        run_id = await visit.started()
        while visit.service.runs.store.runs.get(run_id).process is None:
            await visit.service.runs.next_change(0.05)
        news = watch_for_changes(visit.service.runs, run_id, 0.01)
        async with aclosing(news):
            assert await anext(news) is False
            with visit.service.runs.store.folder.log(run_id).open("a") as log:
                log.write("2026-01-01T00:00:00.000Z stdout a line\n")
            assert await anext(news) is True
            assert await anext(news) is False


async def test_quiet_stream_sends_keepalive_comments() -> None:
    async with visiting() as visit:
        stream = change_events(visit.service.runs, None, lambda: False, interval_s=0.01, keepalive_s=0.02)
        async with aclosing(stream):
            assert await next_of(stream) == BEGIN
            assert await next_of(stream) == ": still there\n\n"


async def test_end_of_the_dashboard_sends_an_event_and_ends_the_stream() -> None:
    ending: list[bool] = []
    async with visiting() as visit:
        stream = change_events(visit.service.runs, None, lambda: bool(ending))
        assert await next_of(stream) == BEGIN
        ending.append(True)
        assert await next_of(stream) == END
        with pytest.raises(StopAsyncIteration):
            await next_of(stream)


async def test_deleting_the_watched_run_ends_the_stream() -> None:
    async with visiting() as visit:
        run_id, _ = await visit.ended("echo"), await visit.ended("echo")
        stream = await open_stream(visit, run_id)
        await asyncio.to_thread(prune_runs, visit.service.runs.store, 1e12, Stop())
        event = await next_of(stream)
        while event == CHANGE:
            event = await next_of(stream)
        assert event == END


async def test_closed_stream_stops_watching_for_changes() -> None:
    async with visiting() as visit:
        watches = visit.service.runs.changes
        before = len(watches._watches)  # pyright: ignore[reportPrivateUsage]
        stream = await open_stream(visit)
        with anyio.move_on_after(0.05):
            await anext(stream)
        await stream.aclose()
        assert len(watches._watches) == before  # pyright: ignore[reportPrivateUsage]
