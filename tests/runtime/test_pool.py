"""Slots, deadlines and cancel requests of runs in one server, and in two that share a folder."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.core import Canceled, DeadlineExceeded, Endpoint, QueueFull, RunId, RunLimits, RunSpec, RunStatus
from tests.runtime.runtime_support import DONE, SPEC, Server, server

pytestmark = pytest.mark.anyio


class Job:
    """A run that works until it is released."""

    @classmethod
    async def of(cls, at: Server, spec: RunSpec = SPEC) -> Job:
        return cls(at, (await at.submit(spec)).id)

    def __init__(self, at: Server, run_id: RunId) -> None:
        self.id = run_id
        self.release = asyncio.Event()
        self.working = asyncio.Event()
        self._at = at

    async def perform(self) -> None:
        async with self._at.pool.slot(self.id):
            self.working.set()
            await self.release.wait()
            await self._at.finish(self.id, DONE)


async def test_no_more_runs_work_than_slots_exist(one: Server) -> None:
    """P2"""
    jobs = [await Job.of(one) for _ in range(5)]
    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(job.perform())
        await jobs[1].working.wait()
        statuses = [one.status(job.id) for job in jobs]
        assert statuses == [RunStatus.RUNNING] * 2 + [RunStatus.QUEUED] * 3
        jobs[0].release.set()
        await jobs[2].working.wait()
        assert not jobs[3].working.is_set()
        for job in jobs:
            job.release.set()
    assert {one.status(job.id) for job in jobs} == {RunStatus.SUCCESS}


async def test_run_is_recorded_before_it_works(one: Server) -> None:
    """P5"""
    run = await one.submit(SPEC)
    assert one.status(run.id) is RunStatus.QUEUED
    async with one.pool.slot(run.id):
        started = one.store.runs.get(run.id)
        assert (started.status, started.holds_slot) == (RunStatus.RUNNING, True)


async def test_two_servers_share_the_slots(tmp_path: Path) -> None:
    """P2: all processes share one cap, and a run also gets a slot that the other server frees."""
    async with server(tmp_path, 1) as here, server(tmp_path, 1) as there, asyncio.TaskGroup() as group:
        first, second, third = await Job.of(here), await Job.of(there), await Job.of(here)
        for job in (first, second, third):
            group.create_task(job.perform())
        await first.working.wait()
        first.release.set()
        await asyncio.wait_for(second.working.wait(), 5)
        assert not third.working.is_set()
        second.release.set()
        await asyncio.wait_for(third.working.wait(), 5)
        third.release.set()


async def test_full_queue_refuses_a_run_with_a_clear_error(tmp_path: Path) -> None:
    async with server(tmp_path, max_concurrent=1, max_queued=1) as at, asyncio.TaskGroup() as group:
        working, waiting = await Job.of(at), await Job.of(at)
        for job in (working, waiting):
            group.create_task(job.perform())
        await working.working.wait()
        with pytest.raises(QueueFull):
            await Job.of(at)
        working.release.set()
        await waiting.working.wait()
        waiting.release.set()


async def test_deadline_in_the_queue_ends_the_run_as_timed_out(tmp_path: Path) -> None:
    """P8: the error says that the run never started."""
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        working = await Job.of(at)
        group.create_task(working.perform())
        await working.working.wait()
        late = await Job.of(at, replace(SPEC, limits=RunLimits(queue_s=0.05, run_s=30)))
        with pytest.raises(DeadlineExceeded, match="in the queue"):
            await late.perform()
        await at.store.wait_posted()
        ended = at.store.runs.get(late.id)
        assert (ended.status, ended.timing.started_at) == (RunStatus.TIMEOUT, None)
        assert at.store.queue.scheduling_state(late.id).queueing is False
        working.release.set()


async def test_deadline_after_the_start_stops_the_work(one: Server) -> None:
    job = await Job.of(one, replace(SPEC, limits=RunLimits(queue_s=30, run_s=0.05)))
    with pytest.raises(DeadlineExceeded, match="while it ran"):
        await job.perform()
    assert job.working.is_set()
    await one.store.wait_posted()
    assert not one.store.queue.scheduling_state(job.id).holds_slot


async def test_time_in_the_queue_does_not_count_as_run_time(tmp_path: Path) -> None:
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        working, waiting = (
            await Job.of(at),
            await Job.of(at, replace(SPEC, limits=RunLimits(queue_s=30, run_s=20))),
        )
        for job in (working, waiting):
            group.create_task(job.perform())
        await working.working.wait()
        working.release.set()
        await waiting.working.wait()
        timing = at.store.runs.get(waiting.id).timing
        assert timing.started_at is not None
        assert timing.deadline_at == timing.started_at + 20
        waiting.release.set()


async def test_cancelled_wait_leaves_the_queue(tmp_path: Path) -> None:
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        working, dropped, next_one = await Job.of(at), await Job.of(at), await Job.of(at)
        tasks = [group.create_task(job.perform()) for job in (working, dropped, next_one)]
        await working.working.wait()
        tasks[1].cancel()
        await at.becomes(dropped.id, RunStatus.INTERRUPTED)
        working.release.set()
        await next_one.working.wait()
        next_one.release.set()


@pytest.mark.parametrize("from_elsewhere", [False, True])
async def test_cancel_request_stops_a_working_run(tmp_path: Path, from_elsewhere: bool) -> None:
    """Any process may cancel. The status changes once the run has really stopped."""
    async with server(tmp_path) as at, server(tmp_path) as elsewhere, asyncio.TaskGroup() as group:
        job = await Job.of(at)
        task = group.create_task(expect(Canceled, job))
        await job.working.wait()
        await (elsewhere if from_elsewhere else at).store.write(
            (elsewhere if from_elsewhere else at).store.runs.request_cancel, job.id
        )
        await asyncio.wait_for(task, 5)


async def expect(error: type[BaseException], job: Job) -> None:
    with pytest.raises(error):
        await job.perform()


@pytest.mark.parametrize("from_elsewhere", [False, True])
async def test_cancel_request_ends_a_queued_run_at_once(tmp_path: Path, from_elsewhere: bool) -> None:
    async with server(tmp_path, 1) as at, server(tmp_path, 1) as elsewhere, asyncio.TaskGroup() as group:
        working, waiting = await Job.of(at), await Job.of(at)
        group.create_task(working.perform())
        await working.working.wait()
        task = group.create_task(expect(Canceled, waiting))
        await asyncio.sleep(0)
        canceled = await (elsewhere if from_elsewhere else at).store.write(
            (elsewhere if from_elsewhere else at).store.runs.request_cancel, waiting.id
        )
        assert canceled.status is RunStatus.CANCELED
        await asyncio.wait_for(task, 5)
        working.release.set()


async def test_cancel_request_before_the_wait_is_not_missed(one: Server) -> None:
    job = await Job.of(one)
    await one.store.write(one.store.runs.request_cancel, job.id)
    await asyncio.wait_for(expect(Canceled, job), 5)


async def test_work_that_handles_its_cancellation_can_see_why_it_stopped(one: Server) -> None:
    run = await one.submit(replace(SPEC, limits=RunLimits(run_s=0.05)))
    partial = "nothing"
    async with one.pool.slot(run.id) as slot:
        assert slot.stopped is None
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            partial = "what was found so far"
        assert isinstance(slot.stopped, DeadlineExceeded)
        await one.finish(run.id, replace(DONE, status=RunStatus.TIMEOUT, summary=partial))
    assert one.store.runs.get(run.id).summary == "what was found so far"


async def test_error_of_the_work_is_raised_and_its_slot_is_freed(tmp_path: Path) -> None:
    async with server(tmp_path, 1) as at:
        run = await at.submit(SPEC)
        with pytest.raises(TimeoutError, match="of my own"):
            async with at.pool.slot(run.id):
                raise TimeoutError("of my own")
        async with asyncio.timeout(5), at.pool.slot((await at.submit(SPEC)).id):
            pass


async def test_coordinating_run_takes_no_slot(tmp_path: Path) -> None:
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        working = await Job.of(at)
        group.create_task(working.perform())
        await working.working.wait()
        run = await at.submit(replace(SPEC, needs_slot=False, limits=RunLimits(run_s=0.05)))
        with pytest.raises(DeadlineExceeded):
            async with at.pool.slot(run.id):
                assert at.status(run.id) is RunStatus.RUNNING
                await asyncio.Event().wait()
        working.release.set()


async def test_an_endpoint_with_one_slot_serves_one_run_at_a_time(tmp_path: Path) -> None:
    local = replace(SPEC, endpoint=Endpoint("local", 1))
    async with server(tmp_path, 4) as at, asyncio.TaskGroup() as group:
        first, second, free = await Job.of(at, local), await Job.of(at, local), await Job.of(at)
        for job in (first, second, free):
            group.create_task(job.perform())
        await first.working.wait()
        await free.working.wait()
        assert at.status(second.id) is RunStatus.QUEUED
        first.release.set()
        await second.working.wait()
        second.release.set()
        free.release.set()


async def test_runs_that_are_active_when_the_pool_ends_are_interrupted(tmp_path: Path) -> None:
    """P5: a normal stop of the server leaves no run "running"."""
    left: list[RunId] = []
    with pytest.raises(ExceptionGroup) as failed:
        async with server(tmp_path, 5) as at, asyncio.TaskGroup() as group:
            left += [(await at.submit(SPEC)).id for _ in range(3)]
            working = await Job.of(at)
            group.create_task(working.perform())
            await working.working.wait()
            left.append(working.id)
            raise ZeroDivisionError
    assert failed.group_contains(ZeroDivisionError)
    async with server(tmp_path) as after:
        assert {after.status(run_id) for run_id in left} == {RunStatus.INTERRUPTED}


async def test_deadline_is_paused_while_a_run_waits_for_its_parent(one: Server) -> None:
    run = await one.submit(replace(SPEC, limits=RunLimits(run_s=0.2)))
    async with one.pool.slot(run.id):
        message = await one.store.write(one.store.messages.ask, run.id, "?")
        await asyncio.sleep(0.4)  # the test is about time that passes
        await one.store.write(one.store.messages.reply, message.id, "!")
        await one.becomes(run.id, RunStatus.RUNNING)
        await one.finish(run.id, DONE)
    assert one.status(run.id) is RunStatus.SUCCESS


async def test_run_may_clean_up_after_its_end_is_recorded(one: Server) -> None:
    """Neither its own ending nor a late cancel request interrupts it."""
    run = await one.submit(replace(SPEC, limits=RunLimits(run_s=30)))
    async with one.pool.slot(run.id):
        with one.changes.watch({run.id}) as watch:
            await one.finish(run.id, DONE)
            await one.store.write(one.store.runs.request_cancel, run.id)
            async with asyncio.timeout(5):
                await watch.next()
            await asyncio.sleep(0)
    assert one.status(run.id) is RunStatus.SUCCESS


async def test_run_that_is_not_ready_gets_no_slot(one: Server) -> None:
    """P8: a run that nobody performs is never running."""
    recorded = await one.submit(SPEC)
    async with one.pool.slot((await one.submit(SPEC)).id):
        assert one.status(recorded.id) is RunStatus.QUEUED


async def test_finished_run_passes_its_slot_on_in_one_write(tmp_path: Path) -> None:
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        first, second = await Job.of(at), await Job.of(at)
        for job in (first, second):
            group.create_task(job.perform())
        await first.working.wait()
        assert await at.finish(first.id, DONE)
        assert at.status(second.id) is RunStatus.RUNNING
        assert not await at.finish(first.id, DONE)
        for job in (first, second):
            job.release.set()


async def test_run_that_queues_behind_another_process_is_admitted(tmp_path: Path) -> None:
    """No change in its own process could wake it."""
    async with server(tmp_path, 1) as here, server(tmp_path, 1) as there, asyncio.TaskGroup() as group:
        theirs = await Job.of(there)
        group.create_task(theirs.perform())
        await theirs.working.wait()
        run = await here.submit(SPEC)
        for _ in range(20):
            await asyncio.sleep(0)  # let the notification of its own recording pass

        async def perform() -> None:
            async with here.pool.slot(run.id):
                await here.finish(run.id, DONE)

        waiting = group.create_task(perform())
        for _ in range(20):
            await asyncio.sleep(0)
        theirs.release.set()
        await asyncio.wait_for(waiting, 5)
