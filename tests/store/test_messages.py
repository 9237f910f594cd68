"""Questions and answers, and how they change the run that asks."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from itertools import product

import pytest

from retinue.core import (
    Conflict,
    MessageId,
    MessageStatus,
    PermissionWanted,
    RunLimits,
    RunStatus,
    RunUnknown,
    ToolRequest,
    Unavailable,
)
from retinue.core.message import MESSAGE_CHANGES
from retinue.store import Capacity, Store
from tests.store.store_support import DONE, ROOMY, SPEC, Bench

ONE = Capacity(max_concurrent=1, max_queued=10)


def test_question_is_answered_and_acknowledged(bench: Bench) -> None:
    run = bench.running()
    asked = bench.store.messages.ask(run.id, "which \ud800 branch?")
    assert (asked.status, asked.question) == (MessageStatus.PENDING, "which ? branch?")
    assert bench.status(run.id) is RunStatus.WAITING
    assert bench.store.messages.pending(run.id) == [asked]

    replied = bench.store.messages.reply(asked.id, "main")
    assert (replied.status, replied.answer) == (MessageStatus.REPLIED, "main")
    bench.admit(ROOMY)
    assert bench.status(run.id) is RunStatus.RUNNING

    taken = bench.store.messages.acknowledge(asked.id)
    assert taken.status is MessageStatus.ACKNOWLEDGED
    assert bench.store.messages.of_run(run.id) == [taken]


def test_waiting_run_frees_its_slot_and_queues_for_one_after_the_answer(bench: Bench) -> None:
    """P2: the cap holds while answers arrive."""
    first, second = bench.queued(), bench.queued()
    assert bench.admit(ONE) == [first.id]
    message = bench.store.messages.ask(first.id, "?")
    assert bench.admit(ONE) == [second.id]
    bench.store.messages.reply(message.id, "!")
    assert bench.admit(ONE) == []
    assert bench.status(first.id) is RunStatus.WAITING
    with pytest.raises(Conflict, match="waits for a slot"):
        bench.store.messages.acknowledge(message.id)
    bench.store.runs.finish(second.id, DONE)
    assert bench.admit(ONE) == [first.id]
    bench.store.messages.acknowledge(message.id)


def test_answered_run_continues_before_runs_that_have_not_started(bench: Bench) -> None:
    first, second, third = bench.queued(), bench.queued(), bench.queued()
    bench.admit(ONE)
    message = bench.store.messages.ask(first.id, "?")
    bench.admit(ONE)
    bench.store.messages.reply(message.id, "!")
    bench.store.runs.finish(second.id, DONE)
    assert bench.admit(ONE) == [first.id]
    assert bench.status(third.id) is RunStatus.QUEUED


def test_run_that_needs_no_slot_continues_at_once(bench: Bench) -> None:
    run = bench.queued(replace(SPEC, needs_slot=False))
    message = bench.store.messages.ask(run.id, "?")
    bench.store.messages.reply(message.id, "!")
    assert bench.status(run.id) is RunStatus.RUNNING


def test_run_continues_after_its_last_open_question_is_answered(bench: Bench) -> None:
    run = bench.running()
    first = bench.store.messages.ask(run.id, "one?")
    second = bench.store.messages.ask(run.id, "two?")
    bench.store.messages.reply(first.id, "1")
    assert bench.admit(ROOMY) == []
    bench.store.messages.reply(second.id, "2")
    assert bench.admit(ROOMY) == [run.id]


def test_waiting_for_an_answer_does_not_count_against_the_deadline(bench: Bench) -> None:
    run = bench.running(replace(SPEC, limits=RunLimits(run_s=30)))
    deadline = run.timing.deadline_at
    assert deadline is not None
    assert deadline == bench.clock.now + 30
    message = bench.store.messages.ask(run.id, "?")
    bench.clock.now += 300
    bench.store.messages.reply(message.id, "!")
    bench.admit(ROOMY)
    assert bench.store.runs.get(run.id).timing.deadline_at == deadline + 300


def test_question_can_be_answered_only_once(bench: Bench) -> None:
    run = bench.running()
    message = bench.store.messages.ask(run.id, "?")
    bench.store.messages.reply(message.id, "first")
    with pytest.raises(Conflict):
        bench.store.messages.reply(message.id, "second")
    assert bench.store.messages.get(message.id).answer == "first"


def test_only_a_running_or_waiting_run_can_ask(bench: Bench) -> None:
    queued = bench.queued()
    with pytest.raises(Conflict):
        bench.store.messages.ask(queued.id, "?")
    ended = bench.running()
    bench.store.runs.finish(ended.id, DONE)
    with pytest.raises(Conflict):
        bench.store.messages.ask(ended.id, "?")
    with pytest.raises(RunUnknown):
        bench.store.messages.reply(MessageId.new(), "!")
    assert bench.store.messages.of_run(queued.id) == []


@pytest.mark.parametrize("answered", [False, True])
def test_open_questions_are_closed_when_the_run_ends(bench: Bench, answered: bool) -> None:
    """P5, P8: nobody is asked on behalf of a run that has ended."""
    run = bench.running()
    message = bench.store.messages.ask(run.id, "?")
    if answered:
        bench.store.messages.reply(message.id, "!")
    bench.store.runs.finish(run.id, DONE)
    closed = bench.store.messages.get(message.id)
    assert closed.status is MessageStatus.CLOSED
    assert closed.closed_at == bench.clock.now
    assert closed.answer == ("!" if answered else None)
    with pytest.raises(Conflict):
        bench.store.messages.reply(message.id, "late")


def test_database_refuses_an_illegal_status_change_of_a_message(bench: Bench) -> None:
    run = bench.running()
    database = sqlite3.connect(bench.store.folder.database, isolation_level=None)

    def change(message_id: MessageId, status: MessageStatus) -> None:
        database.execute(
            "UPDATE messages SET status = :status, answer = 'x', replied_at = 1,"
            " acknowledged_at = CASE :status WHEN 'acknowledged_by_subagent' THEN 1 END,"
            " closed_at = CASE :status WHEN 'closed' THEN 1 END WHERE id = :id",
            {"id": message_id, "status": status},
        )

    for before, after in product(MessageStatus, MessageStatus):
        message = bench.store.messages.ask(run.id, "?")
        if before is MessageStatus.ACKNOWLEDGED:
            change(message.id, MessageStatus.REPLIED)
        if before is not MessageStatus.PENDING:
            change(message.id, before)
        if after in MESSAGE_CHANGES[before]:
            change(message.id, after)
        else:
            with pytest.raises(sqlite3.IntegrityError):
                change(message.id, after)
            assert bench.store.messages.get(message.id).status is before
    database.close()


def test_exactly_one_of_many_concurrent_answers_wins(bench: Bench) -> None:
    stores = [Store.open(bench.store.folder.path) for _ in range(4)]
    try:
        run = bench.running()
        for _ in range(10):
            message = bench.store.messages.ask(run.id, "?")
            start = threading.Barrier(len(stores))
            won: list[str] = []

            def reply(
                store: Store, name: str, message_id: MessageId = message.id, start: threading.Barrier = start
            ) -> None:
                start.wait(5)
                try:
                    store.messages.reply(message_id, name)
                except Conflict:
                    return
                won.append(name)  # noqa: B023 - joined within the turn of the loop

            threads = [threading.Thread(target=reply, args=(store, str(n))) for n, store in enumerate(stores)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(5)
            assert won == [bench.store.messages.get(message.id).answer]
            bench.admit(ROOMY)
    finally:
        for store in stores:
            store.close()


def test_requested_permission_is_stored_with_the_question(bench: Bench) -> None:
    wanted = PermissionWanted(
        ToolRequest("Bash", "touch 'ü \ud800'", '{"timeout": 5}'), "Bash(x)", 30.0, "careful"
    )
    asked = bench.store.messages.ask(bench.running().id, "may I?", wanted)
    kept = PermissionWanted(ToolRequest("Bash", "touch 'ü ?'"), "Bash(x)", 30.0, "careful")
    assert asked.permission == kept
    assert asked.permission and asked.permission.asked.details == '{"timeout": 5}'
    assert bench.store.messages.ask(bench.running().id, "which one?").permission is None
    with pytest.raises(Unavailable, match="never changes"):
        bench.store.database.rows("UPDATE messages SET permission = NULL")


def test_open_questions_of_all_runs_are_listed_oldest_first(bench: Bench) -> None:
    first, second, third = bench.running(), bench.running(), bench.running()
    asked = [bench.store.messages.ask(run.id, "?") for run in (second, first, third, first)]
    bench.store.messages.reply(asked[1].id, "!")
    bench.store.runs.finish(third.id, replace(DONE, status=RunStatus.CANCELED))
    assert bench.store.messages.all_pending() == [asked[0], asked[3]]


def test_latest_events_are_returned_in_order(bench: Bench) -> None:
    run = bench.running()
    for number in range(5):
        bench.store.events.add(run.id, "counted", {"number": number})
    assert [event.data["number"] for event in bench.store.events.latest(run.id, 2)] == [3, 4]
