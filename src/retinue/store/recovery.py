"""Runs whose server died: they end as interrupted, keep what they left, and their processes are named.

Those that another process can go on with are parked instead: in the queue, or waiting for an answer.

Any process may recover at any time. A dead owner's lock is held while its runs are ended, so two
processes that recover at once share the owners between them, and a living owner is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from retinue.core import ACTIVE_STATUSES, Ending, OwnerId, ProcessIdentity, RunId, RunStatus
from retinue.store import owners
from retinue.store.logs import end_torn_line, last_words
from retinue.store.runs import CANCELED, end, park
from retinue.store.store import Store

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
    for owner_id in sorted({OwnerId(row["owner"]) for row in active}.union(owners.known(store.folder))):
        with owners.dead(store.folder, owner_id) as is_dead:
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
