"""Runs that outlive their server, and the steps they leave (P5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from retinue.core import Conflict, MessageStatus, OwnerId, Run, RunStatus, RunUnknown
from retinue.store import Orphan, WorkflowRecord, recover_dead_owners
from retinue.store.meta_files import MetaFiles
from tests.store.store_support import SPEC, Bench

RESUMABLE = replace(SPEC, resumable=True, needs_slot=False)


def nothing(_: Sequence[Orphan]) -> None:
    """There are no processes to end."""


def of_a_dead_server(bench: Bench) -> Run:
    owner = OwnerId.new()
    bench.store.folder.owner_lock(owner).touch()
    return bench.store.runs.record(RESUMABLE, owner)


def test_dead_servers_resumable_run_queues_for_whoever_adopts_it_first(bench: Bench) -> None:
    run = of_a_dead_server(bench)
    assert recover_dead_owners(bench.store, nothing) == []
    assert bench.status(run.id) is RunStatus.QUEUED
    assert bench.store.runs.list_adoptable() == [run.id]
    assert recover_dead_owners(bench.store, nothing) == []  # and nobody looks after it again and again
    assert [bench.store.runs.adopt(run.id, OwnerId.new()) for _ in range(2)] == [True, False]
    assert bench.store.runs.list_adoptable() == []
    assert bench.status(run.id) is RunStatus.RUNNING


def test_time_of_its_first_start_stays(bench: Bench) -> None:
    run = of_a_dead_server(bench)
    began = bench.store.runs.get(run.id).timing.started_at
    recover_dead_owners(bench.store, nothing)
    bench.clock.now += 100
    bench.store.runs.adopt(run.id, bench.owner_id)
    assert bench.store.runs.get(run.id).timing.started_at == began


def test_question_outlives_the_server_and_its_answer_makes_the_run_adoptable(bench: Bench) -> None:
    run = of_a_dead_server(bench)
    message = bench.store.messages.ask(run.id, "which?")
    recover_dead_owners(bench.store, nothing)
    assert bench.status(run.id) is RunStatus.WAITING
    assert bench.store.messages.get(message.id).status is MessageStatus.PENDING
    assert bench.store.runs.list_adoptable() == []
    bench.store.messages.reply(message.id, "this")
    assert bench.status(run.id) is RunStatus.QUEUED
    assert bench.store.runs.list_adoptable() == [run.id]


def test_run_is_let_go_of_only_while_it_waits(bench: Bench) -> None:
    run = bench.store.runs.record(RESUMABLE, bench.owner_id)
    assert not bench.store.runs.park(run.id)
    bench.store.messages.ask(run.id, "which?")
    assert bench.store.runs.park(run.id)
    assert bench.store.runs.get(run.id).owner == ""


def test_cancel_that_comes_while_a_run_is_let_go_of_is_not_lost(bench: Bench) -> None:
    run = bench.store.runs.record(RESUMABLE, bench.owner_id)
    bench.store.messages.ask(run.id, "which?")
    bench.store.runs.request_cancel(run.id)
    assert bench.status(run.id) is RunStatus.WAITING
    assert bench.store.runs.park(run.id)
    assert bench.status(run.id) is RunStatus.CANCELED


@pytest.mark.parametrize("waits", [False, True])
def test_run_that_nobody_performs_is_canceled_at_once(bench: Bench, waits: bool) -> None:
    run = of_a_dead_server(bench)
    if waits:
        bench.store.messages.ask(run.id, "which?")
    recover_dead_owners(bench.store, nothing)
    assert bench.store.runs.request_cancel(run.id).status is RunStatus.CANCELED


def test_meta_file_does_not_say_running_of_a_run_that_nobody_performs(bench: Bench) -> None:
    """P8"""
    run = of_a_dead_server(bench)
    recover_dead_owners(bench.store, nothing)
    MetaFiles(bench.store.database, bench.store.messages).write(run.id)
    assert '"status": "queued"' in bench.store.folder.meta(run.id).read_text()


def test_step_that_has_finished_stays_so(bench: Bench) -> None:
    run = bench.queued(RESUMABLE)
    child = bench.queued(bench.child_of(run.id))
    steps = bench.store.checkpoints
    steps.begin(run.id, "a", child.id)
    steps.begin(run.id, "a", child.id)  # tried again
    steps.finish(run.id, "a", {"x": 1})
    with pytest.raises(Conflict, match="stays so"):
        steps.finish(run.id, "a", {"x": 2})
    with pytest.raises(Conflict, match="stays so"):
        steps.begin(run.id, "a", child.id)
    kept = steps.get(run.id, "a")
    assert kept is not None
    assert (kept.output, kept.child) == ({"x": 1}, child.id)
    assert steps.get(run.id, "b") is None
    assert [each.step for each in steps.of_run(run.id)] == ["a"]


def test_workflow_is_kept_as_it_was_asked_for(bench: Bench) -> None:
    run = bench.queued(RESUMABLE)
    record = WorkflowRecord(
        kind="workflow", text="steps: [\ud800]", source="x", assignment={"feature": "f"}, cwd="/p"
    )
    bench.store.workflows.record(run.id, record)
    assert bench.store.workflows.get(run.id).assignment == {"feature": "f"}
    assert bench.store.workflows.newest(5) == [run.id]
    with pytest.raises(RunUnknown, match="not a workflow"):
        bench.store.workflows.get(bench.queued().id)
