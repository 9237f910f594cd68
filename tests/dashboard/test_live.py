"""Open pages are told when to look again, and when there is nothing to wait for any more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from retinue.core import Stop
from retinue.dashboard import site
from retinue.service import run_news
from retinue.store import prune_runs
from tests.dashboard.conftest import Visit, visiting

pytestmark = pytest.mark.anyio

BEGIN, CHANGE, END = "retry: 2000\n\n", "event: change\ndata:\n\n", "event: end\ndata:\n\n"


async def next_of(stream: AsyncGenerator[str]) -> str:
    with anyio.fail_after(5):
        return await anext(stream)


async def begun(visit: Visit, run_id: str | None = None) -> AsyncGenerator[str]:
    """A stream that has told its beginning and listens."""
    stream = site.change_events(visit.service.runs, run_id, lambda: False)
    assert await next_of(stream) == BEGIN
    return stream


async def test_change_of_any_run_is_told() -> None:
    heard: list[str] = []

    async def listen(stream: AsyncGenerator[str]) -> None:
        heard.append(await next_of(stream))

    async with visiting() as visit, aclosing(await begun(visit)) as stream:
        async with anyio.create_task_group() as group:
            group.start_soon(listen, stream)
            await anyio.lowlevel.checkpoint()  # it listens now
            await visit.started()
        assert heard == [CHANGE]


async def test_output_of_the_run_that_is_watched_is_told() -> None:
    """It stands in the log alone; the database has nothing new."""
    async with visiting() as visit:
        run_id = await visit.started()
        while visit.service.runs.store.runs.get(run_id).process is None:
            await visit.service.runs.next_change(0.05)
        news = run_news(visit.service.runs, run_id, 0.01)
        async with aclosing(news):
            assert await anext(news) is False
            with visit.service.runs.store.folder.log(run_id).open("a") as log:
                log.write("2026-01-01T00:00:00.000Z stdout a line\n")
            assert await anext(news) is True
            assert await anext(news) is False


async def test_silence_is_broken_by_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PAUSE_S", 0.01)
    monkeypatch.setattr(live, "STILL_THERE_S", 0.02)
    async with visiting() as visit, aclosing(await begun(visit)) as stream:
        assert await next_of(stream) == ": still there\n\n"


async def test_end_of_the_dashboard_is_told_and_ends_the_stream() -> None:
    ending: list[bool] = []
    async with visiting() as visit:
        stream = site.change_events(visit.service.runs, None, lambda: bool(ending))
        assert await next_of(stream) == BEGIN
        ending.append(True)
        assert await next_of(stream) == END
        with pytest.raises(StopAsyncIteration):
            await next_of(stream)


async def test_run_that_is_removed_ends_its_stream() -> None:
    async with visiting() as visit:
        run_id, _ = await visit.ended("echo"), await visit.ended("echo")
        stream = await begun(visit, run_id)
        prune_runs(visit.service.runs.store, 1e12, Stop())
        told = await next_of(stream)
        while told == CHANGE:
            told = await next_of(stream)
        assert told == END


async def test_reader_that_goes_away_leaves_no_watch_behind() -> None:
    async with visiting() as visit:
        watches = visit.service.runs.changes
        before = len(watches._watches)  # pyright: ignore[reportPrivateUsage]
        stream = await begun(visit)
        with anyio.move_on_after(0.05):
            await anext(stream)
        await stream.aclose()
        assert len(watches._watches) == before  # pyright: ignore[reportPrivateUsage]
