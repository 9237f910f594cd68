"""Recovery of the runs of a server that died at any instant (P5)."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from retinue.core import (
    ACTIVE_STATUSES,
    MessageId,
    MessageStatus,
    OwnerId,
    ProcessIdentity,
    Run,
    RunId,
    RunStatus,
)
from retinue.store import LogStream, LogWriter, Orphan, Owner, Store, logs, recover_dead_owners, recovery
from tests.store.store_support import ANYTHING, DONE, ROOMY, SPEC, Bench

WORKER = Path(__file__).with_name("store_worker.py")


def nothing(_: Sequence[Orphan]) -> None:
    """Do nothing, because there are no processes to end."""


def dead_owners_run(bench: Bench, process: ProcessIdentity | None = None) -> Run:
    """A run that was running when its server died: no process holds its owner's lock."""
    owner = OwnerId.new()
    bench.store.folder.owner_lock(owner).touch()
    run = bench.store.runs.record(SPEC, owner)
    bench.store.queue.admit(owner, ROOMY, ANYTHING)
    if process:
        bench.store.runs.set_process(run.id, process)
    return run


def test_run_of_a_dead_owner_is_interrupted_and_keeps_its_output(bench: Bench) -> None:
    run = dead_owners_run(bench)
    bench.store.runs.set_summary(run.id, "half done")
    message = bench.store.messages.ask(run.id, "?")
    with LogWriter(bench.store.folder.log(run.id)) as log:
        log.append(LogStream.STDOUT, "whole line\n")
    with bench.store.folder.log(run.id).open("ab") as raw:
        raw.write(b"2026-01-01T00:00:00.000Z stdout torn in the mid")

    assert [orphan.run_id for orphan in recover_dead_owners(bench.store, nothing)] == [run.id]

    ended = bench.store.runs.get(run.id)
    assert (ended.status, ended.summary) == (RunStatus.INTERRUPTED, "half done")
    assert isinstance(ended.error, dict) and ended.error["code"] == "interrupted"
    assert bench.store.messages.get(message.id).status is MessageStatus.CLOSED
    kept = [line.text for line in logs.tail_log(bench.store.folder.log(run.id), 10).lines]
    assert kept == ["whole line", "torn in the mid"]
    meta = json.loads(bench.store.folder.meta(run.id).read_text())
    assert (meta["status"], meta["messages"][0]["messageStatus"]) == ("interrupted", "closed")


@pytest.mark.parametrize("state", ["queued", "running", "waiting", "lent"])
def test_no_run_stays_active_whatever_state_its_owner_died_in(bench: Bench, state: str) -> None:
    run = dead_owners_run(bench) if state != "queued" else None
    if run is None:
        owner = OwnerId.new()
        run = bench.store.runs.record(SPEC, owner)
    elif state == "waiting":
        bench.store.messages.ask(run.id, "?")
    elif state == "lent":
        bench.store.queue.release_slot(run.id)
    recover_dead_owners(bench.store, nothing)
    assert bench.status(run.id) is RunStatus.INTERRUPTED
    assert bench.store.runs.list(statuses=ACTIVE_STATUSES) == []


def test_processes_are_ended_before_their_runs(bench: Bench) -> None:
    """So that the next recovery repeats one that was interrupted."""
    process = ProcessIdentity(4321, "12.5")
    run = dead_owners_run(bench, process)
    seen: list[tuple[Orphan, RunStatus]] = []

    def die_half_way(orphans: Sequence[Orphan]) -> None:
        seen.extend((orphan, bench.status(orphan.run_id)) for orphan in orphans)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recover_dead_owners(bench.store, die_half_way)
    [(orphan, status)] = seen
    assert status is RunStatus.RUNNING
    assert orphan.process and (orphan.process.pid, orphan.process.started) == (4321, "12.5")
    assert [again.run_id for again in recover_dead_owners(bench.store, nothing)] == [run.id]


def test_runs_of_a_living_owner_are_never_touched(bench: Bench) -> None:
    ours, theirs = bench.running(), dead_owners_run(bench)
    peer = Owner.register(bench.store.folder)
    peers_run = bench.store.runs.record(SPEC, peer.id)
    recovered = recover_dead_owners(bench.store, nothing)
    assert [orphan.run_id for orphan in recovered] == [theirs.id]
    assert bench.status(ours.id) is RunStatus.RUNNING
    assert bench.status(peers_run.id) is RunStatus.QUEUED
    assert recover_dead_owners(bench.store, nothing) == []
    peer.close()
    assert [orphan.run_id for orphan in recover_dead_owners(bench.store, nothing)] == [peers_run.id]


def test_a_dead_owners_slots_are_free_after_recovery(bench: Bench) -> None:
    dead_owners_run(bench)
    ours = bench.queued()
    one = type(ROOMY)(1, 10)
    assert bench.admit(one) == []
    recover_dead_owners(bench.store, nothing)
    assert bench.admit(one) == [ours.id]


def test_recovery_does_not_change_ended_runs(bench: Bench) -> None:
    run = dead_owners_run(bench)
    bench.store.runs.finish(run.id, DONE)
    assert recover_dead_owners(bench.store, nothing) == []
    assert bench.status(run.id) is RunStatus.SUCCESS


def test_concurrent_recoveries_handle_each_run_once(bench: Bench) -> None:
    """P5: two servers never recover the same run."""
    expected = {dead_owners_run(bench, ProcessIdentity(n, "1.0")).id for n in range(1, 25)}
    stores = [Store.open(bench.store.folder.path) for _ in range(4)]
    handled: list[list[RunId]] = [[] for _ in stores]
    swept: list[RunId] = []
    start = threading.Barrier(len(stores))

    def work(number: int) -> None:
        start.wait(5)
        found = recover_dead_owners(
            stores[number], lambda orphans: swept.extend(orphan.run_id for orphan in orphans)
        )
        handled[number] = [orphan.run_id for orphan in found]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for store in stores:
        store.close()
    together = [run_id for each in handled for run_id in each]
    assert sorted(together) == sorted(expected)
    assert sorted(swept) == sorted(expected)


def test_lock_files_of_dead_owners_are_removed(bench: Bench) -> None:
    dead_owners_run(bench)
    bench.store.folder.owner_lock(OwnerId.new()).touch()
    (bench.store.folder.owners / "not an owner.lock").touch()
    recover_dead_owners(bench.store, nothing)
    assert recovery.registered_owners(bench.store.folder) == [bench.owner_id]
    assert bench.store.folder.owner_lock(bench.owner_id).exists()


def test_owner_that_loses_its_lock_file_registers_again(bench: Bench) -> None:
    """Other processes remove dead owners while new ones register."""
    stop = threading.Event()

    def clear() -> None:
        while not stop.is_set():
            for owner_id in recovery.registered_owners(bench.store.folder):
                with recovery.claim_dead_owner(bench.store.folder, owner_id):
                    pass

    clearing = threading.Thread(target=clear)
    clearing.start()
    registered = [Owner.register(bench.store.folder) for _ in range(200)]
    stop.set()
    clearing.join(5)
    for owner in registered:
        with recovery.claim_dead_owner(bench.store.folder, owner.id) as is_dead:
            assert not is_dead
        owner.close()


def kill_at_random(folder: Path, chance: random.Random) -> list[list[str]]:
    """Start a server that works in a loop, kill it after it has printed some facts, and return them."""
    worker = subprocess.Popen(
        [sys.executable, WORKER, "live", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert worker.stdout and worker.stderr
    facts = [worker.stdout.readline().split() for _ in range(chance.randint(0, 40))]
    worker.kill()
    rest, trouble = worker.communicate(timeout=10)
    assert "Traceback" not in trouble, trouble
    # The last line may have been cut by the kill.
    return facts + [line.split() for line in rest.splitlines(keepends=True) if line.endswith("\n")]


def check_facts(store: Store, facts: list[list[str]]) -> None:
    """Assert that everything the store confirmed before the kill is still true."""
    for kind, *ids in facts:
        if kind == "owner":
            continue
        run = store.runs.get(RunId.parse(ids[0]))
        if kind == "ended":
            assert run.status is RunStatus.SUCCESS
            assert run.result == {"text": "r" * 3000}
        elif kind == "started":
            assert run.process and run.process.started == "1.5"
        elif kind == "logged":
            assert "some output" in store.folder.log(run.id).read_text()
        elif kind == "asked":
            assert store.messages.get(MessageId.parse(ids[1])).question == "?"
        elif kind == "taken":
            assert store.messages.get(MessageId.parse(ids[1])).status is MessageStatus.ACKNOWLEDGED


def crash(bench: Bench, times: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a repeatable test
    ours = bench.running()
    recorded: list[str] = []
    for _ in range(times):
        facts = kill_at_random(bench.store.folder.path, chance)
        swept: list[Orphan] = []
        recovered = recover_dead_owners(bench.store, swept.extend)
        check_facts(bench.store, facts)
        assert swept == recovered
        assert all(bench.status(orphan.run_id) is RunStatus.INTERRUPTED for orphan in recovered)
        assert [run.id for run in bench.store.runs.list(statuses=ACTIVE_STATUSES)] == [ours.id]
        assert recover_dead_owners(bench.store, nothing) == []
        recorded += [fact[1] for fact in facts if fact[0] == "recorded"]
    everything = [run.id for run in bench.store.runs.list(limit=-1)]
    assert len(everything) == len(set(everything))
    assert set(recorded) <= set(everything)
    open_questions = bench.store.database.rows(
        "SELECT id FROM messages WHERE status IN ('pending_parent_reply', 'parent_replied')"
    )
    assert open_questions == []
    for run_id in everything:
        if run_id != ours.id:
            shown = json.loads(bench.store.folder.meta(run_id).read_text())
            assert shown["status"] == bench.status(run_id)
    assert not list(bench.store.folder.logs.glob("*.tmp"))
    database = sqlite3.connect(bench.store.folder.database)
    assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    database.close()


def test_kill_9_at_any_instant_loses_nothing_and_leaves_nothing_running(bench: Bench) -> None:
    """P5"""
    crash(bench, times=8, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_200_kills_at_any_instant_lose_nothing_and_leave_nothing_running(bench: Bench) -> None:
    """P5"""
    crash(bench, times=200, seed=2)
