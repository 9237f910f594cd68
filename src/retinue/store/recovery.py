"""Runs whose server died: they end as interrupted, keep what they left, and their processes are named.

Any process may recover at any time. A dead owner's lock is held while its runs are ended, so two
processes that recover at once share the owners between them, and a living owner is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

from retinue.core.ids import OwnerId, RunId
from retinue.core.run import Outcome, ProcessIdentity, RunStatus
from retinue.store import owners
from retinue.store.runs import end
from retinue.store.store import Store

_INTERRUPTED = Outcome(
    status=RunStatus.INTERRUPTED,
    error={"code": "interrupted", "message": "the server that performed the run died"},
)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A run that recovery ended. Its process, if it lives, belongs to nobody any more."""

    run_id: RunId
    process: ProcessIdentity | None


def recover(store: Store) -> list[Interrupted]:
    """End the active runs of every dead owner; the caller ends the processes that are returned."""
    active = {
        OwnerId(row["owner"])
        for row in store.database.rows("SELECT DISTINCT owner FROM runs WHERE ended_at IS NULL")
    }
    found: list[Interrupted] = []
    for owner_id in sorted(active.union(owners.known(store.folder))):
        with owners.dead(store.folder, owner_id) as is_dead:
            if is_dead:
                found += interrupt(store, owner_id)
    return found


def interrupt(store: Store, owner_id: OwnerId, outcome: Outcome = _INTERRUPTED) -> list[Interrupted]:
    """End the active runs of one owner: a dead one, or oneself when the server stops."""
    with store.database.write() as tx:
        rows = tx.execute(
            "SELECT id, pid, pid_started_at, host FROM runs"
            " WHERE owner = ? AND ended_at IS NULL ORDER BY seq",
            (owner_id,),
        ).fetchall()
        for row in rows:
            end(tx, RunId(row["id"]), outcome)
    return [
        Interrupted(
            RunId(row["id"]),
            None if row["pid"] is None else ProcessIdentity(row["pid"], row["pid_started_at"], row["host"]),
        )
        for row in rows
    ]
