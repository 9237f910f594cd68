"""Registers this process as an owner of runs, and recovers the runs of owners that died.

An owner holds a lock on its own file while it lives. There are no leases or heartbeats: a busy process
looks dead to a clock but never to a lock, and the lock of a dead process is free at once.

Runs of a dead owner end as interrupted and keep their output. Resumable runs are parked instead: in the
queue, or waiting for an answer. So are queued runs that wait for their account's usage limit. Any process may
recover at any time. It holds a dead owner's lock while it ends that owner's runs, so two processes never
recover the same owner, and a living owner is never touched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from retinue.core import ACTIVE_STATUSES, Ending, FileLock, OwnerId, ProcessIdentity, Run, RunId, RunStatus
from retinue.store.data_folder import DataFolder
from retinue.store.logs import summarize_log, terminate_last_line
from retinue.store.runs import CANCELED_WITHOUT_OWNER, end_run, park_run
from retinue.store.store import Store


class Owner:
    """This process as the owner of the runs it performs."""

    def __init__(self, owner_id: OwnerId, lock: FileLock) -> None:
        self.id = owner_id
        self._lock = lock

    @classmethod
    def register(cls, folder: DataFolder) -> Owner:
        """Create and lock a file for a new owner."""
        while True:
            owner_id = OwnerId.new()
            path = folder.owner_lock(owner_id)
            lock = FileLock(path)
            # Another process that recovers may have locked or removed the file before we locked it.
            if lock.try_acquire() and lock.is_at(path):
                return cls(owner_id, lock)
            lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unregister. Other processes then take this one for dead, so no run of it may be active."""
        _remove_lock_file(self._lock)


_OWNER_DIED = Ending(
    status=RunStatus.INTERRUPTED,
    error={"code": "interrupted", "message": "the server that performed the run died"},
)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A run whose owner died. Its process may still be alive."""

    run_id: RunId
    process: ProcessIdentity | None


EndProcesses = Callable[[Sequence[Orphan]], None]


def recover_dead_owners(store: Store, end_processes: EndProcesses) -> list[Orphan]:
    """End the processes of dead owners, then end or park their runs, and return the ended ones.

    In this order, so that an interrupted recovery is repeated by the next one.
    """
    active = store.database.rows("SELECT DISTINCT owner FROM runs WHERE ended_at IS NULL AND owner <> ''")
    ended: list[Orphan] = []
    for owner_id in sorted({OwnerId(row["owner"]) for row in active}.union(registered_owners(store.folder))):
        with claim_dead_owner(store.folder, owner_id) as is_dead:
            if is_dead:
                end_processes(_orphans(store, owner_id))
                ended += interrupt_owner(store, owner_id, _OWNER_DIED)
                _repair_files(store, owner_id)
    return ended


def _orphans(store: Store, owner_id: OwnerId) -> list[Orphan]:
    return [
        Orphan(run.id, run.process)
        for run in store.runs.list(statuses=ACTIVE_STATUSES, owner=owner_id, limit=-1)
    ]


def interrupt_owner(store: Store, owner_id: OwnerId, outcome: Ending) -> list[Orphan]:
    """End or park the active runs of one owner, which has died or is about to stop."""
    ended: list[Orphan] = []
    with store.database.write() as tx:
        active = store.runs.list(statuses=ACTIVE_STATUSES, owner=owner_id, limit=-1)
        kept = _runs_to_park(active)
        for run in active:
            if run.id in kept:
                park_run(tx, run.id)
                continue
            ending = CANCELED_WITHOUT_OWNER if run.spec.resumable else outcome
            if run.summary is None:
                ending = replace(ending, summary=summarize_log(store.folder.log(run.id)) or None)
            end_run(tx, run.id, ending)
            ended.append(Orphan(run.id, run.process))
    return ended


def _runs_to_park(active: Sequence[Run]) -> set[RunId]:
    """The runs of an owner that go on without it: resumable ones, and those that wait for their account.

    A run whose parent ends is not among them, because nobody wants its result any more.
    """
    kept: set[RunId] = set()
    here = {run.id for run in active}
    for run in sorted(active, key=lambda each: each.id):  # parents first: ids sort by time
        waits = run.status is not RunStatus.RUNNING and run.not_before is not None
        orphaned = run.spec.parent in here and run.spec.parent not in kept
        if (run.spec.resumable or (waits and not orphaned)) and not run.cancel_requested:
            kept.add(run.id)
    return kept


def _repair_files(store: Store, owner_id: OwnerId) -> None:
    """Complete the logs and meta files that the owner did not finish writing."""
    rows = store.database.rows("SELECT id, changed_at FROM runs WHERE owner = ?", (owner_id,))
    outdated = [
        run_id for row in rows if store.meta_files.is_outdated(run_id := RunId(row["id"]), row["changed_at"])
    ]
    store.meta_files.remove_drafts(outdated)
    for run_id in outdated:
        terminate_last_line(store.folder.log(run_id))
        store.meta_files.write(run_id)


@contextlib.contextmanager
def claim_dead_owner(folder: DataFolder, owner_id: OwnerId) -> Generator[bool]:
    """Yield whether the owner is dead. If so, hold its lock during the block and remove its file after."""
    path = folder.owner_lock(owner_id)
    lock = FileLock(path)
    # A lock on a removed file says nothing: another process has just recovered this owner.
    if not (lock.try_acquire() and lock.is_at(path)):
        lock.close()
        yield False
        return
    try:
        yield True
    finally:
        _remove_lock_file(lock)


def registered_owners(folder: DataFolder) -> list[OwnerId]:
    """All owners that have a lock file, living or dead."""
    names = sorted(path.stem for path in folder.owners.glob("*.lock"))
    return [OwnerId(name) for name in names if OwnerId.is_valid(name)]


def _remove_lock_file(lock: FileLock) -> None:
    """Remove the file and release the lock. Windows keeps an open file; the next recovery removes it."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        lock.path.unlink()
    lock.close()
