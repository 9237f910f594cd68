"""Who gets the next slot, decided in the database, so that it holds over all processes.

A run queues while it has a `turn`. Turns make the queue fair: the runs of one request tree get turns one
after another, and a tree that comes later begins at the turn that is being served. Reading the queue by
turn, then by age, is therefore a round robin over trees, first in first out within each.

Only its owner starts a run. A process that finds another's run at the head leaves that slot to it; it
passes over a dead owner only after recovery has ended that owner's runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from retinue.core.errors import Conflict, Saturated
from retinue.core.ids import OwnerId, RunId
from retinue.core.run import RunStatus
from retinue.store.database import Database, Row, Transaction


@dataclass(frozen=True, slots=True)
class Capacity:
    max_concurrent: int
    """Runs that may hold a slot at once, over all processes that share the data folder."""
    max_queued: int
    """Runs that may wait for a slot; more are refused."""


def check_room(tx: Transaction, capacity: Capacity) -> None:
    """Raise `Saturated` when one more run could neither start nor queue."""
    holding, queued = tx.execute(
        "SELECT (SELECT count(*) FROM runs WHERE slot = 1),"
        " (SELECT count(*) FROM runs WHERE turn IS NOT NULL)"
    ).fetchone()
    free = max(0, capacity.max_concurrent - holding)
    if queued >= capacity.max_queued + free:
        raise Saturated(
            f"{holding} runs are at work and {queued} wait: the queue is full",
            hint="wait for a run to end, or cancel one",
            running=holding,
            queued=queued,
            limit=capacity.max_queued,
        )


def last_turn(tx: Transaction, request: RunId) -> int:
    """Behind the other waiting runs of its tree; for a tree that has none, the turn now being served."""
    behind: int | None = tx.execute(
        "SELECT max(turn) FROM runs WHERE request = ? AND turn IS NOT NULL", (request,)
    ).fetchone()[0]
    return served_turn(tx) if behind is None else behind + 1


def served_turn(tx: Transaction) -> int:
    head: int | None = tx.execute("SELECT min(turn) FROM runs WHERE turn IS NOT NULL").fetchone()[0]
    return 1 if head is None else head


class Queue:
    def __init__(self, database: Database) -> None:
        self._database = database

    def admit(self, owner: OwnerId, capacity: Capacity) -> list[RunId]:
        """Give free slots to this owner's runs as far as it is their turn; they are running thereafter."""
        if not self._free(capacity):
            return []
        admitted: list[RunId] = []
        with self._database.write() as tx:
            for row in _next_in_line(tx, capacity):
                if row["owner"] == owner:
                    _give_slot(tx, row)
                    admitted.append(RunId(row["id"]))
        return admitted

    def _free(self, capacity: Capacity) -> bool:
        """A look without the lock: most wake-ups find no free slot or nobody waiting."""
        row = self._database.row(
            "SELECT (SELECT count(*) FROM runs WHERE slot = 1) < ?"
            " AND EXISTS (SELECT 1 FROM runs WHERE turn IS NOT NULL)",
            (capacity.max_concurrent,),
        )
        return row is not None and bool(row[0])

    def lend(self, run_id: RunId) -> None:
        """Free the slot of a run that waits for something else, a child run for example."""
        self._set_slot(run_id, "slot = 0", "slot = 1")

    def reclaim(self, run_id: RunId) -> None:
        """Queue again for a slot that was lent, before runs that have not started."""
        self._set_slot(run_id, "turn = :turn", "slot = 0 AND turn IS NULL AND status = 'running'")

    def _set_slot(self, run_id: RunId, change: str, condition: str) -> None:
        with self._database.write() as tx:
            changed = tx.execute(
                f"UPDATE runs SET {change}, changed_at = :now WHERE id = :id AND {condition}",  # noqa: S608 - literals above
                {"id": run_id, "turn": served_turn(tx), "now": tx.now},
            ).rowcount
            if not changed:
                raise Conflict(f"run {run_id} cannot lend or reclaim a slot now", run_id=run_id)
            tx.touch(run_id)


def _next_in_line(tx: Transaction, capacity: Capacity) -> list[Row]:
    """The waiting runs, of any owner, that the free slots are meant for."""
    held: dict[str | None, int] = dict(
        tx.execute("SELECT endpoint, count(*) FROM runs WHERE slot = 1 GROUP BY endpoint").fetchall()
    )
    free = capacity.max_concurrent - sum(held.values())
    chosen: list[Row] = []
    if free <= 0:
        return chosen
    for row in tx.execute(
        "SELECT id, owner, status, endpoint, endpoint_slots FROM runs"
        " WHERE turn IS NOT NULL ORDER BY turn, seq"
    ):
        endpoint = row["endpoint"]
        if endpoint is not None:
            if held.get(endpoint, 0) >= row["endpoint_slots"]:
                continue
            held[endpoint] = held.get(endpoint, 0) + 1
        chosen.append(row)
        if len(chosen) == free:
            break
    return chosen


def _give_slot(tx: Transaction, row: Row) -> None:
    run_id = RunId(row["id"])
    if row["status"] == RunStatus.QUEUED:
        start(tx, run_id, slot=True)
    elif row["status"] == RunStatus.WAITING:
        resume(tx, run_id, slot=True)
    else:
        tx.execute("UPDATE runs SET slot = 1, turn = NULL, changed_at = ? WHERE id = ?", (tx.now, run_id))
    tx.touch(run_id)


def start(tx: Transaction, run_id: RunId, *, slot: bool) -> bool:
    """From queued to running; the deadline now counts from the start."""
    return bool(
        tx.execute(
            "UPDATE runs SET status = 'running', slot = :slot, turn = NULL, started_at = :now,"
            " deadline_at = :now + run_s, changed_at = :now WHERE id = :id AND status = 'queued'",
            {"id": run_id, "slot": slot, "now": tx.now},
        ).rowcount
    )


def resume(tx: Transaction, run_id: RunId, *, slot: bool) -> bool:
    """From waiting back to running; the wait for the parent does not count against the deadline."""
    return bool(
        tx.execute(
            "UPDATE runs SET status = 'running', slot = :slot, turn = NULL, waiting_since = NULL,"
            " deadline_at = deadline_at + (:now - waiting_since), changed_at = :now"
            " WHERE id = :id AND status = 'waiting_parent_reply'",
            {"id": run_id, "slot": slot, "now": tx.now},
        ).rowcount
    )
