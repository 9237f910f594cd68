"""The table of runs: recorded before anything happens, and changed only as the rules allow."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from retinue.core import (
    ENDED_STATUSES,
    STATUS_CHANGES,
    Budget,
    Conflict,
    Ending,
    Endpoint,
    OwnerId,
    ProcessIdentity,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    RunUnknown,
    Usage,
)
from retinue.core.run import RESUMABLE_CHANGES
from retinue.store import Store
from tests.store.store_support import DONE, ROOMY, SPEC, Bench


def test_run_is_recorded_completely_before_it_starts(bench: Bench) -> None:
    """P5, P8: everything known about a run is recorded while it is queued."""
    spec = RunSpec(
        agent="reviewer",
        task="look at \N{GREEK SMALL LETTER LAMDA} and '; DROP TABLE runs; --",
        executor="command",
        caller="cli",
        model="qwen",
        tools=("Read", "Grep"),
        limits=RunLimits(queue_s=5, run_s=30, budget=Budget(files=50, bytes=1_048_576)),
        endpoint=Endpoint("http://localhost:1234", 1),
        command="echo",
    )
    recorded = bench.queued(spec)
    reread = bench.store.runs.get(recorded.id)
    assert reread == recorded
    assert reread.spec == spec
    assert (reread.status, reread.owner, reread.request) == (RunStatus.QUEUED, bench.owner_id, recorded.id)
    assert reread.timing.enqueued_at == bench.clock.now
    assert reread.timing.deadline_at == bench.clock.now + 5
    assert reread.host


def test_record_is_visible_to_other_connections_at_once(bench: Bench) -> None:
    run = bench.queued()
    with Store.open(bench.store.folder.path) as other:
        assert other.runs.get(run.id).status is RunStatus.QUEUED


def test_a_child_belongs_to_the_request_of_its_ancestors(bench: Bench) -> None:
    first = bench.running()
    child = bench.running(bench.child_of(first.id))
    grandchild = bench.queued(bench.child_of(child.id))
    assert (child.request, grandchild.request) == (first.id, first.id)
    assert {run.id for run in bench.store.runs.list(request=first.id)} == {first.id, child.id, grandchild.id}
    assert [run.id for run in bench.store.runs.list(parent=child.id)] == [grandchild.id]


def test_ended_run_cannot_start_runs(bench: Bench) -> None:
    """P2: a canceled tree does not grow."""
    parent = bench.running()
    bench.store.runs.finish(parent.id, DONE)
    with pytest.raises(Conflict):
        bench.queued(bench.child_of(parent.id))
    with pytest.raises(RunUnknown):
        bench.queued(bench.child_of(RunId.new()))
    assert len(bench.store.runs.list()) == 1


def test_first_ending_stays(bench: Bench) -> None:
    """P8"""
    run = bench.running()
    bench.clock.now += 3
    outcome = Ending(
        status=RunStatus.ERROR,
        result={"partial": [1, 2.5, None, "\ud800"]},
        error={"code": "x"},
        summary="broke",
        exit_code=3,
        usage=Usage.of(files=2),
    )
    assert bench.store.runs.finish(run.id, outcome)
    assert not bench.store.runs.finish(run.id, DONE)
    ended = bench.store.runs.get(run.id)
    assert (ended.status, ended.exit_code, ended.summary) == (RunStatus.ERROR, 3, "broke")
    assert (ended.result, ended.error) == (outcome.result, outcome.error)
    assert ended.usage == Usage.of(files=2)
    assert ended.timing.ended_at == bench.clock.now
    assert not ended.holds_slot


def test_reported_summary_stays_if_the_ending_has_none(bench: Bench) -> None:
    run = bench.running()
    bench.store.runs.set_summary(run.id, "half done \ud800")
    bench.store.runs.set_usage(run.id, Usage.of(steps=4))
    bench.store.runs.finish(run.id, DONE)
    ended = bench.store.runs.get(run.id)
    assert ended.summary == "half done ?"
    assert ended.usage == Usage.of(steps=4)
    bench.store.runs.set_summary(run.id, "all done")
    assert bench.store.runs.get(run.id).summary == "all done"
    with pytest.raises(Conflict):
        bench.store.runs.set_usage(run.id, Usage.of(steps=5))


def test_unknown_run_raises_run_unknown(bench: Bench) -> None:
    for call in (
        lambda: bench.store.runs.get(RunId.new()),
        lambda: bench.store.runs.finish(RunId.new(), DONE),
        lambda: bench.store.runs.request_cancel(RunId.new()),
        lambda: bench.store.runs.set_usage(RunId.new(), Usage({})),
        lambda: bench.store.messages.ask(RunId.new(), "?"),
    ):
        with pytest.raises(RunUnknown):
            call()


def test_process_is_stored_with_its_start_time(bench: Bench) -> None:
    """P5: a later process with the same pid cannot be mistaken for it."""
    run = bench.running()
    process = ProcessIdentity(4321, "99.5")
    bench.store.runs.set_process(run.id, process)
    assert bench.store.runs.get(run.id).process == process


def test_cancel_ends_a_queued_run_at_once_and_asks_a_running_one_to_stop(bench: Bench) -> None:
    """P8: the status is "canceled" only after the run has really ended."""
    running, queued = bench.running(), bench.queued()
    assert bench.store.runs.request_cancel(queued.id).status is RunStatus.CANCELED
    asked = bench.store.runs.request_cancel(running.id)
    assert (asked.status, asked.cancel_requested) == (RunStatus.RUNNING, True)


def test_cancel_reaches_all_descendants(bench: Bench) -> None:
    parent = bench.running()
    running_child = bench.running(bench.child_of(parent.id))
    ended_child = bench.running(bench.child_of(parent.id))
    bench.store.runs.finish(ended_child.id, DONE)
    queued_grandchild = bench.queued(bench.child_of(running_child.id))
    stranger = bench.queued()
    bench.store.runs.request_cancel(parent.id)
    assert bench.store.runs.get(running_child.id).cancel_requested
    assert bench.status(queued_grandchild.id) is RunStatus.CANCELED
    assert bench.status(ended_child.id) is RunStatus.SUCCESS
    assert bench.status(stranger.id) is RunStatus.QUEUED


def test_runs_are_listed_newest_first_and_filtered(bench: Bench) -> None:
    ids = [bench.running().id for _ in range(5)]
    bench.store.runs.finish(ids[0], DONE)
    assert [run.id for run in bench.store.runs.list()] == ids[::-1]
    assert [run.id for run in bench.store.runs.list(limit=2)] == ids[:2:-1]
    assert [run.id for run in bench.store.runs.list(statuses=ENDED_STATUSES)] == [ids[0]]
    assert bench.store.runs.list(statuses=[]) == []
    assert bench.store.runs.list(owner=OwnerId.new()) == []


def test_every_status_change_adds_an_event(bench: Bench) -> None:
    run = bench.running()
    bench.store.events.add(run.id, "progress", {"done": 1})
    bench.store.runs.request_cancel(run.id)
    bench.store.runs.finish(run.id, DONE)
    events = bench.store.events.of_run(run.id)
    assert [(event.kind, event.data.get("status")) for event in events] == [
        ("status", "queued"),
        ("status", "running"),
        ("progress", None),
        ("cancel_requested", None),
        ("status", "success"),
    ]
    assert bench.store.events.of_run(run.id, after=events[-2].seq) == events[-1:]
    assert bench.store.events.of_run(run.id, limit=1) == events[:1]


def put_into(database: sqlite3.Connection, run_id: RunId, status: RunStatus) -> None:
    """Bring a run to a status with SQL, in as few steps as possible."""
    if status is RunStatus.QUEUED:
        return
    if status not in STATUS_CHANGES[RunStatus.QUEUED]:
        change_by_hand(database, run_id, RunStatus.RUNNING)
    change_by_hand(database, run_id, status)


def change_by_hand(database: sqlite3.Connection, run_id: RunId, status: RunStatus) -> None:
    database.execute(
        "UPDATE runs SET status = ?, turn = NULL, started_at = coalesce(started_at, 1), ended_at = ?,"
        " waiting_since = ? WHERE id = ?",
        (status, 1 if status.ended else None, 1 if status is RunStatus.WAITING else None, run_id),
    )


@pytest.mark.parametrize(("resumable", "changes"), [(False, STATUS_CHANGES), (True, RESUMABLE_CHANGES)])
def test_database_refuses_an_illegal_status_change(
    bench: Bench, resumable: bool, changes: Mapping[RunStatus, frozenset[RunStatus]]
) -> None:
    """P8: even another version of Retinue, or a person with an SQL shell, cannot break the table."""
    database = sqlite3.connect(bench.store.folder.database, isolation_level=None)
    for before, after in product(RunStatus, RunStatus):
        run = bench.queued(replace(SPEC, resumable=resumable))
        put_into(database, run.id, before)
        if after in changes[before] or (after is before and not before.ended):
            change_by_hand(database, run.id, after)
        else:
            with pytest.raises(sqlite3.IntegrityError):
                change_by_hand(database, run.id, after)
            assert bench.status(run.id) is before
    database.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runs SET task = 'another'",
        "UPDATE runs SET owner = 'another'",
        "UPDATE runs SET id = 'another'",
        "UPDATE runs SET slot = 1",
        "UPDATE runs SET slot = 2",
        "UPDATE runs SET status = 'paused'",
        "UPDATE runs SET ended_at = 1",
        "UPDATE runs SET pid = 1",
        "UPDATE events SET kind = 'another'",
        "INSERT INTO runs (id, request, agent, caller, task, executor, tools, budget, needs_slot, owner,"
        " host, status, enqueued_at, started_at, changed_at)"
        " VALUES ('x', 'x', 'a', 'c', 't', 'e', '[]', '{}', 0, 'o', 'h', 'running', 1, 1, 1)",
    ],
)
def test_database_refuses_inconsistent_rows(bench: Bench, change: str) -> None:
    bench.queued()
    database = sqlite3.connect(bench.store.folder.database, isolation_level=None)
    try:
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(change)
    finally:
        database.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.sampled_from(["admit", "start", "ask", "reply", "acknowledge", "lend", "reclaim", "cancel"]),
            st.sampled_from(sorted(ENDED_STATUSES)),
        ),
        max_size=12,
    )
)
def test_no_sequence_of_calls_makes_an_illegal_status_change(
    bench: Bench, calls: list[str | RunStatus]
) -> None:
    """P8: checked with the events, which the database writes itself."""
    store = bench.store
    run = bench.queued()
    for call in calls:
        try:
            match call:
                case RunStatus():
                    store.runs.finish(run.id, Ending(status=call))
                case "admit":
                    bench.admit(ROOMY)
                case "ask":
                    store.messages.ask(run.id, "?")
                case "cancel":
                    store.runs.request_cancel(run.id)
                case "lend":
                    store.queue.release_slot(run.id)
                case "reply":
                    for message in store.messages.pending(run.id):
                        store.messages.reply(message.id, "!")
                case _:
                    for message in store.messages.of_run(run.id):
                        store.messages.acknowledge(message.id)
        except Conflict:
            pass
        now = store.runs.get(run.id)
        assert not now.holds_slot or now.status is RunStatus.RUNNING
        assert (now.timing.ended_at is not None) == now.status.ended
        if now.status.ended:
            assert not store.messages.pending(run.id)
    seen = [
        RunStatus(str(event.data["status"]))
        for event in store.events.of_run(run.id)
        if event.kind == "status"
    ]
    assert seen[0] is RunStatus.QUEUED
    assert all(after in STATUS_CHANGES[before] for before, after in pairwise(seen))


def test_exactly_one_of_many_concurrent_endings_wins(bench: Bench) -> None:
    """P5, P8: two threads with their own connections race like two processes."""
    stores = [Store.open(bench.store.folder.path) for _ in range(4)]
    try:
        for _ in range(15):
            run = bench.running()
            won: list[str] = []
            start = threading.Barrier(len(stores))

            def end(
                store: Store, name: str, run_id: RunId = run.id, start: threading.Barrier = start
            ) -> None:
                start.wait(5)
                if store.runs.finish(run_id, replace(DONE, summary=name)):
                    won.append(name)  # noqa: B023 - joined within the turn of the loop

            threads = [
                threading.Thread(target=end, args=(store, str(number))) for number, store in enumerate(stores)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(5)
            assert won == [bench.store.runs.get(run.id).summary]
    finally:
        for store in stores:
            store.close()


def test_data_folder_is_readable_only_by_its_user(tmp_path: Path) -> None:
    """P6"""
    with Store.open(tmp_path / "new" / "data") as store:
        assert store.folder.path.stat().st_mode & 0o077 == 0
