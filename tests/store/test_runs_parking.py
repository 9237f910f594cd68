"""Runs that outlive their server: parked, adopted, canceled (P5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from retinue.core import MessageStatus, OwnerId, Run, RunStatus
from retinue.store import Orphan, recover_dead_owners
from retinue.store.meta_files import MetaFiles
from tests.store.store_support import SPEC, Bench

RESUMABLE = replace(SPEC, resumable=True, needs_slot=False)


def nothing(_: Sequence[Orphan]) -> None:
    """Do nothing, because there are no processes to end."""


def of_a_dead_server(bench: Bench) -> Run:
    owner = OwnerId.new()
    bench.store.folder.owner_lock(owner).touch()
    return bench.store.runs.record(RESUMABLE, owner)


def test_resumable_run_of_a_dead_server_is_adopted_once(bench: Bench) -> None:
    run = of_a_dead_server(bench)
    assert recover_dead_owners(bench.store, nothing) == []
    assert bench.status(run.id) is RunStatus.QUEUED
    assert bench.store.runs.list_adoptable() == [run.id]
    assert recover_dead_owners(bench.store, nothing) == []  # a second recovery finds nothing
    assert [bench.store.runs.adopt(run.id, OwnerId.new()) for _ in range(2)] == [True, False]
    assert bench.store.runs.list_adoptable() == []
    assert bench.status(run.id) is RunStatus.RUNNING


def test_adopted_run_keeps_its_first_start_time(bench: Bench) -> None:
    run = of_a_dead_server(bench)
    began = bench.store.runs.get(run.id).timing.started_at
    recover_dead_owners(bench.store, nothing)
    bench.clock.now += 100
    bench.store.runs.adopt(run.id, bench.owner_id)
    assert bench.store.runs.get(run.id).timing.started_at == began


def test_answer_after_the_servers_death_makes_the_run_adoptable(bench: Bench) -> None:
    run = of_a_dead_server(bench)
    message = bench.store.messages.ask(run.id, "which?")
    recover_dead_owners(bench.store, nothing)
    assert bench.status(run.id) is RunStatus.WAITING
    assert bench.store.messages.get(message.id).status is MessageStatus.PENDING
    assert bench.store.runs.list_adoptable() == []
    bench.store.messages.reply(message.id, "this")
    assert bench.status(run.id) is RunStatus.QUEUED
    assert bench.store.runs.list_adoptable() == [run.id]


def test_only_a_waiting_run_is_parked(bench: Bench) -> None:
    run = bench.store.runs.record(RESUMABLE, bench.owner_id)
    assert not bench.store.runs.park(run.id)
    bench.store.messages.ask(run.id, "which?")
    assert bench.store.runs.park(run.id)
    assert bench.store.runs.get(run.id).owner == ""


def test_cancel_request_during_parking_is_not_lost(bench: Bench) -> None:
    run = bench.store.runs.record(RESUMABLE, bench.owner_id)
    bench.store.messages.ask(run.id, "which?")
    bench.store.runs.request_cancel(run.id)
    assert bench.status(run.id) is RunStatus.WAITING
    assert bench.store.runs.park(run.id)
    assert bench.status(run.id) is RunStatus.CANCELED


@pytest.mark.parametrize("waits", [False, True])
def test_parked_run_is_canceled_at_once(bench: Bench, waits: bool) -> None:
    run = of_a_dead_server(bench)
    if waits:
        bench.store.messages.ask(run.id, "which?")
    recover_dead_owners(bench.store, nothing)
    assert bench.store.runs.request_cancel(run.id).status is RunStatus.CANCELED


def test_meta_file_of_a_parked_run_does_not_say_running(bench: Bench) -> None:
    """P8"""
    run = of_a_dead_server(bench)
    recover_dead_owners(bench.store, nothing)
    MetaFiles(bench.store.database, bench.store.messages).write(run.id)
    assert '"status": "queued"' in bench.store.folder.meta(run.id).read_text()
