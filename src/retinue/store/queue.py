"""Decides which run gets the next slot. The database decides, so the order holds over all processes.

A run is queued while it has a `turn`. Turns make the queue fair: the runs of one request tree get
consecutive turns, and a new tree starts at the turn that is being served. Sorted by turn, then by age, the
queue is a round robin over trees, and first in, first out within each tree.

A model server caches the prompt of the run it served last. So when a slot of an endpoint becomes free, a
run of the agent that used it last goes before the others that wait there, at most a few times in a row.

A run that has started others lends them its slot until they have ended: otherwise runs that wait for their
children could hold all slots, and the children would never start.

Only its owner starts a run. A process that finds another process's run at the head of the queue leaves the
slot to that process. Runs of a dead owner leave the queue when recovery ends them.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Container
from dataclasses import dataclass

from retinue.core import OwnerId, QueueFull, RunId, RunStatus, RunUnknown, counted, utc_text
from retinue.store.database import Database, Transaction

MAX_CONSECUTIVE_RUNS = 4
"""Maximum number of runs of one agent that an endpoint serves in a row while others wait."""

_QUEUE = "FROM runs WHERE ended_at IS NULL AND slot = 0 AND turn IS NOT NULL"
_AT_WORK = (
    "FROM runs AS held WHERE held.ended_at IS NULL AND held.slot = 1 AND NOT EXISTS (SELECT 1"
    " FROM runs AS child WHERE child.parent = held.id AND child.ended_at IS NULL AND child.needs_slot = 1)"
)
"""The runs whose slots are taken. A run with active children lends them its own."""
_DUE = f"{_QUEUE} AND (not_before IS NULL OR not_before <= :now OR status <> 'queued')"
"""The queued runs that do not wait for their account."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many runs may work and wait at the same time."""

    max_concurrent: int
    """Maximum number of runs that hold a slot, over all processes that share the data folder."""
    max_queued: int
    """Maximum number of runs that wait for a slot. Further runs are refused with `QueueFull`."""


@dataclass(frozen=True, slots=True)
class SlotClaim:
    """The runs of one process that are ready to take a slot, and how many slots there are."""

    owner: OwnerId
    capacity: Capacity
    ready: frozenset[RunId]


def next_turn(tx: Transaction, request: RunId, capacity: Capacity | None) -> int:
    """Return the turn for a new run of the tree, or raise `QueueFull` if the queue is full.

    The new run comes after the waiting runs of its tree. In a tree without any, it gets the current turn.
    """
    working, queued, due, served, last, reset_at = tx.execute(
        f"SELECT (SELECT count(*) {_AT_WORK}),"
        f" (SELECT count(*) {_QUEUE}), (SELECT count(*) {_DUE}), (SELECT min(turn) {_DUE}),"
        " (SELECT max(turn) FROM runs WHERE request = :request AND ended_at IS NULL),"
        f" (SELECT min(not_before) {_QUEUE} AND not_before > :now)",
        {"request": request, "now": tx.now},
    ).fetchone()
    if capacity is not None and queued >= capacity.max_queued + max(0, capacity.max_concurrent - working):
        raise _queue_full(capacity, working, due, queued - due, reset_at)
    return last + 1 if last is not None else served or 1


def _queue_full(capacity: Capacity, working: int, due: int, held: int, reset_at: float | None) -> QueueFull:
    """The refusal of a new run: what is full, what is free, and when to try again."""
    free = max(0, capacity.max_concurrent - working)
    queued = due + held
    message = (
        f"the queue is full: {queued} of {capacity.max_queued} places are taken; "
        f"{counted(working, 'run')} at work, {free} of {counted(capacity.max_concurrent, 'slot')} free"
    )
    when = "try again when a run has ended (wait_for_runs), or cancel one"
    if held and reset_at is not None:
        message += f"; {held} of those that wait have no quota until {utc_text(reset_at)} at the earliest"
        if not due:
            when = f"try again after {utc_text(reset_at)}, or cancel a run that waits"
    return QueueFull(
        message,
        hint=f"{when}; `runtime.max_queued_tasks` sets the size of the queue",
        running=working,
        queued=queued,
        limit=capacity.max_queued,
        slots=capacity.max_concurrent,
        slots_free=free,
        waiting_for_quota=held,
        **({} if reset_at is None else {"next_reset_at": utc_text(reset_at)}),
    )


def current_turn(tx: Transaction) -> int:
    """The turn that is being served."""
    head: int | None = tx.execute(f"SELECT min(turn) {_DUE}", {"now": tx.now}).fetchone()[0]
    return 1 if head is None else head


@dataclass(frozen=True, slots=True)
class SchedulingState:
    """The state that the owner of a run needs to start, continue or stop it."""

    status: RunStatus
    queueing: bool
    holds_slot: bool
    deadline_at: float | None
    cancel_requested: bool
    resumable: bool
    needs_slot: bool
    not_before: float | None
    """When a queued run may start, if it waits for its account."""


class RunQueue:
    """Hands out slots to queued runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def scheduling_state(self, run_id: RunId) -> SchedulingState:
        """Read the state of a run. Raises `RunUnknown`."""
        row = self._database.row(
            "SELECT status, turn, slot, deadline_at, cancel_requested_at, resumable, needs_slot,"
            " not_before FROM runs WHERE id = ?",
            (run_id,),
        )
        if row is None:
            raise RunUnknown(f"no such run: {run_id}", run_id=run_id)
        return SchedulingState(
            RunStatus(row["status"]),
            queueing=row["turn"] is not None,
            holds_slot=bool(row["slot"]),
            deadline_at=row["deadline_at"],
            cancel_requested=row["cancel_requested_at"] is not None,
            resumable=bool(row["resumable"]),
            needs_slot=bool(row["needs_slot"]),
            not_before=row["not_before"],
        )

    def admit(self, owner: OwnerId, capacity: Capacity, ready: Container[RunId]) -> list[RunId]:
        """Give free slots to this owner's ready runs whose turn it is, set them running, and return them."""
        with self._database.write() as tx:
            admitted = self.next_admissible(owner, capacity, ready)
            for run_id, status in admitted:
                _give_slot(tx, run_id, status)
        return [run_id for run_id, _ in admitted]

    def next_admissible(
        self, owner: OwnerId, capacity: Capacity, ready: Container[RunId]
    ) -> list[tuple[RunId, RunStatus]]:
        """The ready runs of this owner that the free slots belong to. Changes nothing."""
        waiting = self._database.rows(
            "SELECT id, owner, status, endpoint, endpoint_slots,"
            f" (SELECT count(*) {_AT_WORK} AND held.endpoint = runs.endpoint) AS busy"
            f" {_DUE} AND (endpoint IS NULL OR busy < endpoint_slots) ORDER BY turn, seq"
            f" LIMIT max(0, :most - (SELECT count(*) {_AT_WORK}))",
            {"most": capacity.max_concurrent, "now": self._database.clock()},
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
            chosen += self._prefer_last_agent(endpoint, fitting)
        return [
            (RunId(row["id"]), RunStatus(row["status"]))
            for row in chosen
            if row["owner"] == owner and row["id"] in ready
        ]

    def _prefer_last_agent(self, endpoint: str, fitting: list[sqlite3.Row]) -> list[sqlite3.Row]:
        """Choose as many runs as fit the endpoint, with runs of the agent it served last first."""
        served = self._database.rows(
            "SELECT agent FROM runs WHERE endpoint = ? AND started_at IS NOT NULL AND ended_at IS NOT NULL"
            " ORDER BY ended_at DESC LIMIT ?",
            (endpoint, MAX_CONSECUTIVE_RUNS),
        )
        agents = [row["agent"] for row in served]
        in_a_row = sum(1 for _ in itertools.takewhile(lambda agent: agent == agents[0], agents))
        if not fitting or not agents or in_a_row == MAX_CONSECUTIVE_RUNS:
            return fitting
        same_agent = self._database.rows(
            f"SELECT id, owner, status {_DUE} AND endpoint = :endpoint AND agent = :agent"
            " AND status = 'queued' ORDER BY turn, seq LIMIT :most",
            {
                "endpoint": endpoint,
                "agent": agents[0],
                "most": min(len(fitting), MAX_CONSECUTIVE_RUNS - in_a_row),
                "now": self._database.clock(),
            },
        )
        resuming = [row for row in fitting if row["status"] != RunStatus.QUEUED]
        first = {row["id"]: row for row in (*resuming, *same_agent, *fitting)}
        return list(first.values())[: len(fitting)]

    def release_slot(self, run_id: RunId) -> bool:
        """Free the slot of a started run, or its place in the queue. False if it had neither."""
        with self._database.write() as tx:
            released = bool(
                tx.execute(
                    "UPDATE runs SET slot = 0, turn = NULL, changed_at = :now"
                    " WHERE id = :id AND status <> 'queued' AND (slot = 1 OR turn IS NOT NULL)",
                    {"id": run_id, "now": tx.now},
                ).rowcount
            )
            if released:
                tx.touch(run_id)
        return released


def _give_slot(tx: Transaction, run_id: RunId, status: RunStatus) -> None:
    if status is RunStatus.QUEUED:
        start_run(tx, run_id, slot=True)
    elif status is RunStatus.WAITING:
        resume_run(tx, run_id, slot=True)
    else:
        tx.execute("UPDATE runs SET slot = 1, turn = NULL, changed_at = ? WHERE id = ?", (tx.now, run_id))
    tx.touch(run_id)


def start_run(tx: Transaction, run_id: RunId, *, slot: bool) -> bool:
    """Change a queued run to running. Its deadline now counts from the start."""
    return bool(
        tx.execute(
            "UPDATE runs SET status = 'running', slot = :slot, turn = NULL, not_before = NULL,"
            " started_at = coalesce(started_at, :now),"
            " deadline_at = :now + run_s, changed_at = :now WHERE id = :id AND status = 'queued'",
            {"id": run_id, "slot": slot, "now": tx.now},
        ).rowcount
    )


def resume_run(tx: Transaction, run_id: RunId, *, slot: bool) -> bool:
    """Change a waiting run to running. The time it waited does not count against its deadline."""
    return bool(
        tx.execute(
            "UPDATE runs SET status = 'running', slot = :slot, turn = NULL, waiting_since = NULL,"
            " not_before = NULL,"
            " deadline_at = deadline_at + (:now - waiting_since), changed_at = :now"
            " WHERE id = :id AND status = 'waiting_parent_reply'",
            {"id": run_id, "slot": slot, "now": tx.now},
        ).rowcount
    )
