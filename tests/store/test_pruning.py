"""Pruning deletes old runs with all their data, and no active or recent ones (P5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retinue.core import Budget, Canceled, Run, RunId, RunLimits, RunUnknown, Stop
from retinue.store import LogStream, LogWriter
from retinue.store.pruning import TREES_PER_WRITE, is_pruning_due, prune_expired_runs, prune_runs
from tests.store.store_support import DONE, SPEC, Bench

DAY = 86_400.0


def ended(bench: Bench, run: Run, *, days_ago: float) -> RunId:
    """End the run the given number of days ago, with a log."""
    now = bench.clock.now
    bench.clock.now = now - days_ago * DAY
    with LogWriter(bench.store.folder.log(run.id)) as log:
        log.append(LogStream.STDOUT, "words\n")
    assert bench.store.runs.finish(run.id, DONE)
    bench.store.meta_files.write(run.id)
    bench.clock.now = now
    return run.id


def newest(bench: Bench) -> RunId:
    """Record a run today, as every data folder has one when a server starts."""
    return ended(bench, bench.running(), days_ago=0)


def known(bench: Bench) -> set[RunId]:
    return {run.id for run in bench.store.runs.list(limit=-1)}


def prune_30_days(bench: Bench) -> int:
    return prune_runs(bench.store, bench.clock.now - 30 * DAY, Stop())


def test_old_run_is_deleted_with_its_log_messages_events_budget_and_token(bench: Bench) -> None:
    spec = replace(SPEC, limits=RunLimits(budget=Budget(files=5)))
    run = bench.running(spec)
    bench.store.child_tokens.issue(run.id)
    bench.store.messages.ask(run.id, "why?")
    old = ended(bench, run, days_ago=31)
    recent = newest(bench)
    assert prune_30_days(bench) == 1
    assert known(bench) == {recent}
    with pytest.raises(RunUnknown):
        bench.store.runs.get(old)
    files = {path.name.partition(".")[0] for path in bench.store.folder.logs.iterdir()}
    assert files == {recent}
    assert bench.store.messages.of_run(old) == []
    assert bench.store.database.rows("SELECT 1 FROM events WHERE run_id = ?", (old,)) == []
    assert bench.store.database.rows("SELECT 1 FROM child_tokens WHERE run_id = ?", (old,)) == []
    assert bench.store.ledgers.accounts(old) == {}


def test_recent_and_active_runs_stay(bench: Bench) -> None:
    kept = {
        ended(bench, bench.running(), days_ago=29),
        bench.queued().id,
        bench.running().id,
        newest(bench),
    }
    assert prune_30_days(bench) == 0
    assert known(bench) == kept


def test_tree_is_deleted_as_a_whole_or_not_at_all(bench: Bench) -> None:
    """An active or recent child keeps its parent; an old tree is deleted with its children."""

    def tree(child_days_ago: float | None) -> set[RunId]:
        parent = bench.running()
        child = bench.running(bench.child_of(parent.id))
        if child_days_ago is not None:
            ended(bench, child, days_ago=child_days_ago)
        ended(bench, parent, days_ago=40)
        return {parent.id, child.id}

    gone = tree(41)
    kept = tree(3) | tree(None) | {newest(bench)}
    assert prune_30_days(bench) == 1
    assert known(bench) == kept
    assert not gone & kept


def test_pruning_uses_several_writes_and_stops_between_them(bench: Bench) -> None:
    for _ in range(TREES_PER_WRITE + 3):
        ended(bench, bench.running(), days_ago=31)
    recent = newest(bench)
    stopped = Stop()
    stopped.cancel()
    with pytest.raises(Canceled):
        prune_runs(bench.store, bench.clock.now - 30 * DAY, stopped)
    assert len(known(bench)) == TREES_PER_WRITE + 4
    assert prune_30_days(bench) == TREES_PER_WRITE + 3
    assert known(bench) == {recent}


def test_newest_event_stays_so_that_no_event_number_is_reused(bench: Bench) -> None:
    """Watchers in other processes compare event numbers."""
    ended(bench, bench.running(), days_ago=60)
    last = ended(bench, bench.running(), days_ago=50)
    seen = bench.store.events.last_seq()
    assert prune_30_days(bench) == 1
    assert known(bench) == {last}
    bench.running()
    _, changed = bench.store.events.changed_since(seen)
    assert changed


def test_pruning_is_due_once_a_day_and_after_the_clock_was_set_back(bench: Bench) -> None:
    assert is_pruning_due(bench.store)
    prune_expired_runs(bench.store, 30, Stop())
    assert not is_pruning_due(bench.store)
    bench.clock.now += DAY - 1
    assert not is_pruning_due(bench.store)
    bench.clock.now += 1
    assert is_pruning_due(bench.store)
    bench.clock.now -= 2 * DAY
    assert is_pruning_due(bench.store)
