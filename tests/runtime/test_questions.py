"""Questions and answers in one process and between two."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from retinue.core import NO_ANSWER, Conflict, Message, MessageStatus, RunStatus
from retinue.runtime import QuestionBroker
from tests.runtime.runtime_support import DONE, SPEC, Server, server

pytestmark = pytest.mark.anyio


async def reply_when_asked(at: Server, run_id: str, answer: str) -> None:
    """Wait for a question of a run and answer it, as a parent does."""
    run = at.store.runs.list()[-1].id
    assert run == run_id
    pending = await at.changes.until(lambda: at.store.messages.pending(run) or None, {run}, 5)
    assert pending
    await at.store.write(at.store.messages.reply, pending[0].id, answer)


async def test_question_is_answered_from_another_process(tmp_path: Path) -> None:
    async with server(tmp_path) as owner, server(tmp_path) as child, server(tmp_path) as parent:
        run = await owner.submit(SPEC)
        async with owner.pool.slot(run.id), asyncio.TaskGroup() as group:
            group.create_task(reply_when_asked(parent, run.id, "main"))
            message = await QuestionBroker(child.store, child.changes).ask(run.id, "which branch?", wait_s=5)
        assert (message.status, message.answer) == (MessageStatus.ACKNOWLEDGED, "main")


async def test_answer_is_delivered_once_the_run_has_a_slot_again(tmp_path: Path) -> None:
    """P2"""
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        broker = QuestionBroker(at.store, at.changes)
        asking, other = await at.submit(SPEC), await at.submit(SPEC)
        release = asyncio.Event()
        other_works = asyncio.Event()

        async def work_on_the_other() -> None:
            async with at.pool.slot(other.id):
                other_works.set()
                await release.wait()

        async with at.pool.slot(asking.id):
            group.create_task(work_on_the_other())
            question = group.create_task(broker.ask(asking.id, "?", wait_s=5))
            await at.becomes(asking.id, RunStatus.WAITING)
            await other_works.wait()
            [message] = at.store.messages.pending(asking.id)
            await at.store.write(at.store.messages.reply, message.id, "!")
            assert at.store.messages.get(message.id).status is MessageStatus.REPLIED
            assert not question.done()
            release.set()
            assert (await question).status is MessageStatus.ACKNOWLEDGED


async def test_unanswered_question_is_still_pending_after_the_timeout(one: Server) -> None:
    """P7: never a hang."""
    run = await one.submit(SPEC)
    broker = QuestionBroker(one.store, one.changes)
    async with one.pool.slot(run.id):
        message = await broker.ask(run.id, "?", wait_s=0.01)
        assert message.status is MessageStatus.PENDING
        assert one.status(run.id) is RunStatus.WAITING
        await one.store.write(one.store.messages.reply, message.id, "late, but still")
        answered = await broker.wait_for_answer(message.id, wait_s=5)
        assert answered.answer == "late, but still"
        assert await broker.wait_for_answer(message.id, wait_s=0) == answered


async def test_question_of_ask_once_is_settled_after_the_timeout_P8(
    one: Server,
) -> None:
    """The run is running again, and a late answer is refused because nobody would read it."""
    run = await one.submit(SPEC)
    async with one.pool.slot(run.id):
        reply = await QuestionBroker(one.store, one.changes).ask_once(run.id, "?", wait_s=0.01)
        assert (reply.status, reply.answer) == (MessageStatus.ACKNOWLEDGED, NO_ANSWER)
        assert reply.timed_out
        assert one.status(run.id) is RunStatus.RUNNING
        with pytest.raises(Conflict):
            await one.store.write(one.store.messages.reply, reply.message.id, "late")


async def test_answer_in_time_counts_even_if_a_slot_is_free_only_later_P8(tmp_path: Path) -> None:
    async with server(tmp_path, 1) as at, asyncio.TaskGroup() as group:
        asking, other = await at.submit(SPEC), await at.submit(SPEC)
        async with at.pool.slot(asking.id):
            once = group.create_task(
                QuestionBroker(at.store, at.changes).ask_once(asking.id, "?", wait_s=0.1)
            )
            await at.becomes(asking.id, RunStatus.WAITING)
            async with at.pool.slot(other.id):
                [message] = at.store.messages.pending(asking.id)
                await at.store.write(at.store.messages.reply, message.id, "yes")
                done, _ = await asyncio.wait([once], timeout=0.3)
                assert not done
                await at.finish(other.id, DONE)
            assert (await once).answer == "yes"
            assert (await once).status is MessageStatus.ACKNOWLEDGED


async def test_question_of_a_cancelled_caller_is_withdrawn_P8(one: Server) -> None:
    run = await one.submit(SPEC)
    async with one.pool.slot(run.id):
        asking = asyncio.create_task(QuestionBroker(one.store, one.changes).ask(run.id, "?", wait_s=5))
        await one.becomes(run.id, RunStatus.WAITING)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await one.store.wait_posted()
        assert one.store.messages.pending(run.id) == []
        await one.becomes(run.id, RunStatus.RUNNING)


async def test_answer_before_the_cancellation_stays(one: Server) -> None:
    run = await one.submit(SPEC)
    async with one.pool.slot(run.id):
        asking = asyncio.create_task(QuestionBroker(one.store, one.changes).ask(run.id, "?", wait_s=5))
        await one.becomes(run.id, RunStatus.WAITING)
        [message] = one.store.messages.pending(run.id)
        await one.store.write(one.store.messages.reply, message.id, "just in time")
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert one.store.messages.get(message.id).answer == "just in time"


async def test_wait_for_an_answer_ends_when_the_run_ends(one: Server) -> None:
    run = await one.submit(SPEC)
    async with one.pool.slot(run.id), asyncio.TaskGroup() as group:
        waiting: asyncio.Task[Message] = group.create_task(
            QuestionBroker(one.store, one.changes).ask(run.id, "?", wait_s=5)
        )
        await one.becomes(run.id, RunStatus.WAITING)
        await one.store.write(one.store.runs.finish, run.id, DONE)
        assert (await waiting).status is MessageStatus.CLOSED
