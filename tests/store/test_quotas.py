"""Spent accounts hold back their runs, in the database, for all processes (P5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from retinue.core import Conflict, OwnerId, QueueFull, RunStatus
from retinue.store import Capacity, Orphan, recover_dead_owners
from tests.store.store_support import ROOMY, SPEC, Bench

ACCOUNT = "claude, login"
LIMITED = replace(SPEC, account=ACCOUNT, cwd="/project")


def nothing(_: Sequence[Orphan]) -> None:
    """Do nothing, because there are no processes to end."""


def spend(bench: Bench, seconds: float = 100) -> float:
    reset_at = bench.clock.now + seconds
    bench.store.quotas.spend(ACCOUNT, reset_at, "it said so", stated=True)
    return reset_at


def test_queued_runs_of_a_spent_account_get_no_slot_before_the_reset_and_others_do(bench: Bench) -> None:
    early = bench.queued(LIMITED)
    reset_at = spend(bench)
    late, other = bench.queued(LIMITED), bench.queued()
    assert bench.admit() == [other.id]
    (spent,) = bench.store.quotas.list()
    assert (spent.account, spent.reset_at, spent.waiting) == (ACCOUNT, reset_at, 2)
    bench.clock.now = reset_at
    assert bench.store.quotas.list() == []
    assert bench.admit() == [early.id, late.id]
    assert bench.store.runs.get(early.id).not_before is None


def test_cleared_account_lets_its_runs_start(bench: Bench) -> None:
    run = bench.queued(LIMITED)
    spend(bench)
    assert bench.admit() == []
    assert bench.store.quotas.clear(ACCOUNT)
    assert not bench.store.quotas.clear(ACCOUNT)
    assert bench.admit() == [run.id]


def test_started_run_goes_back_to_the_queue_and_frees_its_slot(bench: Bench) -> None:
    one = Capacity(max_concurrent=1, max_queued=10)
    run, other = bench.queued(LIMITED), bench.queued()
    bench.admit(one)
    reset_at = spend(bench)
    assert bench.store.runs.hold_back(run.id, reset_at, ACCOUNT, None)
    assert bench.status(run.id) is RunStatus.QUEUED
    assert bench.admit(one) == [other.id]
    assert not bench.store.runs.hold_back(run.id, reset_at, ACCOUNT, None)


def test_run_without_a_wait_cannot_go_back_to_the_queue(bench: Bench) -> None:
    run = bench.running()
    with (
        pytest.raises(Conflict, match="illegal change"),
        bench.store.database.write() as tx,
    ):
        tx.execute("UPDATE runs SET status = 'queued', slot = 0 WHERE id = ?", (run.id,))


def test_runs_of_a_killed_server_that_wait_for_an_account_are_adopted_once(bench: Bench) -> None:
    dead = OwnerId.new()
    bench.store.folder.owner_lock(dead).touch()
    spend(bench)
    waiting = bench.store.runs.record(LIMITED, dead)
    plain = bench.store.runs.record(SPEC, dead)
    recover_dead_owners(bench.store, nothing)
    assert bench.status(plain.id) is RunStatus.INTERRUPTED
    assert bench.store.runs.list_adoptable() == []
    assert bench.store.runs.list_adoptable(resumable=False) == [waiting.id]
    assert [bench.store.runs.adopt(waiting.id, bench.owner_id) for _ in range(2)] == [True, False]
    assert bench.admit() == []
    bench.clock.now += 100
    assert bench.admit() == [waiting.id]


def test_canceled_run_of_no_process_ends_at_once(bench: Bench) -> None:
    dead = OwnerId.new()
    bench.store.folder.owner_lock(dead).touch()
    spend(bench)
    waiting = bench.store.runs.record(LIMITED, dead)
    recover_dead_owners(bench.store, nothing)
    bench.store.runs.request_cancel(waiting.id)
    assert bench.status(waiting.id) is RunStatus.CANCELED


def test_full_queue_says_that_its_runs_wait_for_a_quota_and_until_when(bench: Bench) -> None:
    """P8"""
    bench.clock.now = 1_790_000_000.0
    spend(bench)
    small = Capacity(max_concurrent=1, max_queued=1)
    for _ in range(2):
        bench.store.runs.record(LIMITED, bench.owner_id, small)
    with pytest.raises(QueueFull) as refused:
        bench.store.runs.record(SPEC, bench.owner_id, small)
    assert refused.value.data["waiting_for_quota"] == 2
    assert refused.value.data["slots_free"] == 1
    assert "2026-09-21T14:15:00Z" in str(refused.value.data["next_reset_at"])
    assert "try again after 2026-09-21T14:15:00Z" in (refused.value.hint or "")


def test_new_trees_do_not_queue_behind_runs_that_wait_for_a_quota(bench: Bench) -> None:
    spend(bench)
    for _ in range(3):
        bench.queued(LIMITED)
    assert bench.admit(ROOMY) == []
    assert bench.admit(ROOMY) == [] and bench.queued() and len(bench.admit(ROOMY)) == 1
