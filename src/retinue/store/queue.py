"""Who gets the next slot, decided in the database, so that it holds over all processes.

A run queues while it has a `turn`. Turns make the queue fair: the runs of one request tree get turns one
after another, and a tree that comes later begins at the turn that is being served. Reading the queue by
turn, then by age, is therefore a round robin over trees, first in first out within each.

A server of models reads again what a run has in common with the one before it, unless it still has that
in its cache. So when a slot of an endpoint frees, a run of the agent that had it goes before the others that
wait there, a few times in a row at most.

Only its owner starts a run. A process that finds another's run at the head leaves that slot to it; it
passes over a dead owner only after recovery has ended that owner's runs.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Container
from dataclasses import dataclass

from retinue.core import OwnerId, QueueFull, RunId, RunStatus, RunUnknown, counted
from retinue.store.database import Database, Transaction

BACK_TO_BACK = 4
"""Runs of one agent that an endpoint serves in a row while others wait for it."""

_QUEUE = "FROM runs WHERE ended_at IS NULL AND slot = 0 AND turn IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Capacity:
    max_concurrent: int
    """Runs that may hold a slot at once, over all processes that share the data folder."""
    max_queued: int
    """Runs that may wait for a slot; more are refused."""


def place(tx: Transaction, request: RunId, capacity: Capacity | None) -> int:
    """The turn of one more run of the tree; `QueueFull` when it could neither start nor queue.

    Behind the other waiting runs of its tree; for a tree that has none, the turn now being served.
    """
    holding, queued, served, behind = tx.execute(
        "SELECT (SELECT count(*) FROM runs WHERE ended_at IS NULL AND slot = 1),"
        f" (SELECT count(*) {_QUEUE}), (SELECT min(turn) {_QUEUE}),"
        " (SELECT max(turn) FROM runs WHERE request = ? AND ended_at IS NULL)",
        (request,),
    ).fetchone()
    if capacity is not None and queued >= capacity.max_queued + max(0, capacity.max_concurrent - holding):
        raise QueueFull(
            f"the queue is full: {counted(holding, 'run')} at work, {queued} waiting",
            hint="wait for a run to end, or cancel one",
            running=holding,
            queued=queued,
            limit=capacity.max_queued,
        )
    return behind + 1 if behind is not None else served or 1


def served_turn(tx: Transaction) -> int:
    head: int | None = tx.execute(f"SELECT min(turn) {_QUEUE}").fetchone()[0]
    return 1 if head is None else head


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """What the owner of a run must know to let it start, go on, or stop."""

    status: RunStatus
    queueing: bool
    holds_slot: bool
    deadline_at: float | None
    cancel_requested: bool
    resumable: bool
    needs_slot: bool


class RunQueue:
    def __init__(self, database: Database) -> None:
        self._database = database

    def standing(self, run_id: RunId) -> QueueStanding:
        row = self._database.row(
            "SELECT status, turn, slot, deadline_at, cancel_requested_at, resumable, needs_slot"
            " FROM runs WHERE id = ?",
            (run_id,),
        )
        if row is None:
            raise RunUnknown(f"no such run: {run_id}", run_id=run_id)
        return QueueStanding(
            RunStatus(row["status"]),
            queueing=row["turn"] is not None,
            holds_slot=bool(row["slot"]),
            deadline_at=row["deadline_at"],
            cancel_requested=row["cancel_requested_at"] is not None,
            resumable=bool(row["resumable"]),
            needs_slot=bool(row["needs_slot"]),
        )

    def admit(self, owner: OwnerId, capacity: Capacity, ready: Container[RunId]) -> list[RunId]:
        """Give free slots to those runs of this owner that are ready, as far as it is their turn.

        They are running thereafter.
        """
        with self._database.write() as tx:
            admitted = self.next_in_line(owner, capacity, ready)
            for run_id, status in admitted:
                _give_slot(tx, run_id, status)
        return [run_id for run_id, _ in admitted]

    def next_in_line(
        self, owner: OwnerId, capacity: Capacity, ready: Container[RunId]
    ) -> list[tuple[RunId, RunStatus]]:
        """The owner's ready runs among those that the free slots are meant for."""
        waiting = self._database.rows(
            "SELECT id, owner, status, endpoint, endpoint_slots, (SELECT count(*) FROM runs AS held"
            "  WHERE held.ended_at IS NULL AND held.slot = 1 AND held.endpoint = runs.endpoint) AS busy"
            f" {_QUEUE} AND (endpoint IS NULL OR busy < endpoint_slots) ORDER BY turn, seq"
            " LIMIT max(0, ? - (SELECT count(*) FROM runs WHERE ended_at IS NULL AND slot = 1))",
            (capacity.max_concurrent,),
        )
        chosen: list[sqlite3.Row] = []
        at_endpoints: dict[str, list[sqlite3.Row]] = {}
        for row in waiting:
            if row["endpoint"] is None:
                chosen.append(row)
                continue
            there = at_endpoints.setdefault(row["endpoint"], [])
            if row["busy"] + len(there) < row["endpoint_slots"]:
                there.append(row)
        for endpoint, fitting in at_endpoints.items():
            chosen += self._back_to_back(endpoint, fitting)
        return [
            (RunId(row["id"]), RunStatus(row["status"]))
            for row in chosen
            if row["owner"] == owner and row["id"] in ready
        ]

    def _back_to_back(self, endpoint: str, fitting: list[sqlite3.Row]) -> list[sqlite3.Row]:
        """As many runs as fit the endpoint, those of the agent that left it last before the others."""
        served = self._database.rows(
            "SELECT agent FROM runs WHERE endpoint = ? AND started_at IS NOT NULL AND ended_at IS NOT NULL"
            " ORDER BY ended_at DESC LIMIT ?",
            (endpoint, BACK_TO_BACK),
        )
        agents = [row["agent"] for row in served]
        in_a_row = sum(1 for _ in itertools.takewhile(lambda agent: agent == agents[0], agents))
        if not fitting or not agents or in_a_row == BACK_TO_BACK:
            return fitting
        alike = self._database.rows(
            f"SELECT id, owner, status {_QUEUE} AND endpoint = ? AND agent = ? AND status = 'queued'"
            " ORDER BY turn, seq LIMIT ?",
            (endpoint, agents[0], min(len(fitting), BACK_TO_BACK - in_a_row)),
        )
        resuming = [row for row in fitting if row["status"] != RunStatus.QUEUED]
        first = {row["id"]: row for row in (*resuming, *alike, *fitting)}
        return list(first.values())[: len(fitting)]

    def lend(self, run_id: RunId) -> bool:
        """Free a run's slot, or its place in the queue, while it waits for something else."""
        return self._set_slot(
            "UPDATE runs SET slot = 0, turn = NULL, changed_at = :now"
            " WHERE id = :id AND status <> 'queued' AND (slot = 1 OR turn IS NOT NULL)",
            run_id,
        )

    def _set_slot(self, sql: str, run_id: RunId) -> bool:
        with self._database.write() as tx:
            values = {"id": run_id, "turn": served_turn(tx), "now": tx.now}
            changed = tx.execute(sql, values).rowcount == 1
            if changed:
                tx.touch(run_id)
        return changed


def _give_slot(tx: Transaction, run_id: RunId, status: RunStatus) -> None:
    if status is RunStatus.QUEUED:
        start(tx, run_id, slot=True)
    elif status is RunStatus.WAITING:
        resume(tx, run_id, slot=True)
    else:
        tx.execute("UPDATE runs SET slot = 1, turn = NULL, changed_at = ? WHERE id = ?", (tx.now, run_id))
    tx.touch(run_id)


def start(tx: Transaction, run_id: RunId, *, slot: bool) -> bool:
    """From queued to running; the deadline now counts from the start."""
    return bool(
        tx.execute(
            "UPDATE runs SET status = 'running', slot = :slot, turn = NULL,"
            " started_at = coalesce(started_at, :now),"
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
