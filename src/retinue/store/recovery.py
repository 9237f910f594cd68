"""Runs whose server died: they end as interrupted, keep what they left, and their processes are named.

Those that another process can go on with are parked instead: in the queue, or waiting for an answer.

Any process may recover at any time. A dead owner's lock is held while its runs are ended, so two
processes that recover at once share the owners between them, and a living owner is never touched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from retinue.core import ACTIVE_STATUSES, Ending, OwnerId, ProcessIdentity, RunId, RunStatus
from retinue.store.data_folder import DataFolder
from retinue.store.file_lock import FileLock
from retinue.store.logs import end_torn_line, last_words
from retinue.store.runs import CANCELED, end, park
from retinue.store.store import Store

# MERGED owners: Which server processes live. Each holds a lock on a file of its own for as long as it lives.
#
# No leases and no heartbeats: a busy process looks dead to a clock, never to a lock, and a dead one's lock
# is free at once.


class Owner:
    """This process's claim on the runs it records."""

    def __init__(self, owner_id: OwnerId, lock: FileLock) -> None:
        self.id = owner_id
        self._lock = lock

    @classmethod
    def register(cls, folder: DataFolder) -> Owner:
        while True:
            owner_id = OwnerId.new()
            path = folder.owner_lock(owner_id)
            lock = FileLock(path)
            # A peer that clears away dead owners may have taken, even removed, the file before we locked it.
            if lock.try_acquire() and lock.is_at(path):
                return cls(owner_id, lock)
            lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Only when no run of ours is active: peers take us for dead from now on."""
        _remove(self._lock)


@contextlib.contextmanager
def dead(folder: DataFolder, owner_id: OwnerId) -> Generator[bool]:
    """Whether that owner is dead. While the block runs nobody else can find it so: its lock is ours."""
    path = folder.owner_lock(owner_id)
    lock = FileLock(path)
    # Without its file the lock says nothing: a peer has just cleared this owner away.
    if not (lock.try_acquire() and lock.is_at(path)):
        lock.close()
        yield False
        return
    try:
        yield True
    finally:
        _remove(lock)


def known(folder: DataFolder) -> list[OwnerId]:
    """Every owner that has a lock file, living or dead."""
    names = sorted(path.stem for path in folder.owners.glob("*.lock"))
    return [OwnerId(name) for name in names if OwnerId.is_valid(name)]


def _remove(lock: FileLock) -> None:
    """Windows does not remove an open file: then it stays, empty and unlocked, for the next to clear."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        lock.path.unlink()
    lock.close()


_DIED = Ending(
    status=RunStatus.INTERRUPTED,
    error={"code": "interrupted", "message": "the server that performed the run died"},
)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A run whose owner died. Its process, if it lives, belongs to nobody any more."""

    run_id: RunId
    process: ProcessIdentity | None


EndProcesses = Callable[[Sequence[Orphan]], None]


def recover_dead_owners(store: Store, end_processes: EndProcesses) -> list[Orphan]:
    """End what dead owners left: first the processes, then the runs.

    In that order, so that a recovery that dies half-way is done again by the next.
    """
    active = store.database.rows("SELECT DISTINCT owner FROM runs WHERE ended_at IS NULL AND owner <> ''")
    ended: list[Orphan] = []
    for owner_id in sorted({OwnerId(row["owner"]) for row in active}.union(known(store.folder))):
        with dead(store.folder, owner_id) as is_dead:
            if is_dead:
                end_processes(_orphans(store, owner_id))
                ended += interrupt_owner(store, owner_id, _DIED)
                _mend_files(store, owner_id)
    return ended


def _orphans(store: Store, owner_id: OwnerId) -> list[Orphan]:
    return [
        Orphan(run.id, run.process)
        for run in store.runs.list(statuses=ACTIVE_STATUSES, owner=owner_id, limit=-1)
    ]


def interrupt_owner(store: Store, owner_id: OwnerId, outcome: Ending) -> list[Orphan]:
    """End or park the active runs of one owner: a dead one, or oneself when the server stops."""
    ended: list[Orphan] = []
    with store.database.write() as tx:
        for run in store.runs.list(statuses=ACTIVE_STATUSES, owner=owner_id, limit=-1):
            if run.spec.resumable and not run.cancel_requested:
                park(tx, run.id)
                continue
            ending = CANCELED if run.spec.resumable else outcome
            if run.summary is None:
                ending = replace(ending, summary=last_words(store.folder.log(run.id)) or None)
            end(tx, run.id, ending)
            ended.append(Orphan(run.id, run.process))
    return ended


def _mend_files(store: Store, owner_id: OwnerId) -> None:
    """The files that the owner was writing, or had yet to write, when it died."""
    rows = store.database.rows("SELECT id, changed_at FROM runs WHERE owner = ?", (owner_id,))
    behind = [
        run_id for row in rows if store.meta_files.is_behind(run_id := RunId(row["id"]), row["changed_at"])
    ]
    store.meta_files.remove_drafts(behind)
    for run_id in behind:
        end_torn_line(store.folder.log(run_id))
        store.meta_files.write(run_id)
