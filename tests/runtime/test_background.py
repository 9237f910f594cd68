"""Background jobs run once at a time and end with their block."""

from __future__ import annotations

import threading
from functools import partial

import anyio
import pytest

from retinue.core import Canceled, Stop
from retinue.runtime import BackgroundJobs

pytestmark = pytest.mark.anyio


async def reached(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, 5)


async def test_job_with_the_same_key_is_not_started_while_running_or_just_after() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(stop: Stop) -> None:
        begun.set()
        go_on.wait(5)

    async with BackgroundJobs() as background:
        assert background.schedule("index", work)
        assert not background.schedule("index", work)
        assert background.schedule("another", lambda stop: None)
        await reached(begun)
        go_on.set()
    assert not background.schedule("index", work)


async def test_job_may_run_again_after_the_pause() -> None:
    done = threading.Semaphore(0)
    async with BackgroundJobs(repeat_after_s=0) as background:
        for _ in range(3):
            assert background.schedule("index", lambda stop: done.release())
            assert await anyio.to_thread.run_sync(partial(done.acquire, timeout=5))
            await anyio.sleep(0.01)


async def test_end_of_the_block_stops_running_jobs() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(stop: Stop) -> None:
        begun.set()
        try:
            while True:
                stop.check()
                threading.Event().wait(0.002)
        except Canceled:
            ended.set()
            raise

    with anyio.fail_after(5):
        async with BackgroundJobs() as background:
            background.schedule("index", work)
            await reached(begun)
    assert ended.is_set()


async def test_failed_job_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def broken(stop: Stop) -> None:
        raise ZeroDivisionError

    async with BackgroundJobs() as background:
        background.schedule("broken", broken)
        await anyio.sleep(0.01)
        background.schedule("sound", lambda stop: done.set())
        await reached(done)
    assert "a background job failed" in caplog.text
