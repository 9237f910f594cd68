"""The record of every run. A run is written here before anything of it happens.

Changes of status are compare-and-set: of two processes that race, one wins and the other is told.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from typing import Any

from retinue.core import (
    ENDED_STATUSES,
    STATUS_CHANGES,
    Conflict,
    Ending,
    OwnerId,
    ProcessIdentity,
    Run,
    RunId,
    RunSpec,
    RunStatus,
    RunTiming,
    RunUnknown,
    Usage,
    check_status_change,
)
from retinue.store import ledgers, queue
from retinue.store.database import Database, Transaction
from retinue.store.queue import Capacity
from retinue.store.run_rows import columns, run_of, to_json
from retinue.store.text import storable

NOBODY = OwnerId("")
"""The owner of a run that is parked."""
CANCELED = Ending(
    status=RunStatus.CANCELED, error={"code": "canceled", "message": "the run was canceled while it waited"}
)


class RunTable:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.host = platform.node()

    def record(self, spec: RunSpec, owner: OwnerId, capacity: Capacity | None = None) -> Run:
        """Write down a new run, queued; `Saturated` and nothing written when there is no room for it."""
        run_id = RunId.new()
        with self._database.write() as tx:
            request = run_id if spec.parent is None else _request_of_active(tx, spec.parent)
            queue_s = spec.limits.queue_s
            timing = RunTiming(enqueued_at=tx.now, deadline_at=None if queue_s is None else tx.now + queue_s)
            values = columns(spec) | {
                "id": run_id,
                "request": request,
                "owner": owner,
                "host": self.host,
                "turn": queue.place(tx, request, capacity) if spec.needs_slot else None,
                "enqueued_at": timing.enqueued_at,
                "deadline_at": timing.deadline_at,
                "changed_at": tx.now,
            }
            tx.insert("runs", values)
            if spec.parent is None:
                ledgers.open_ledger(tx, run_id, spec.limits.budget)
            tx.touch(run_id)
        return Run(
            id=run_id,
            request=request,
            spec=spec,
            status=RunStatus.QUEUED,
            timing=timing,
            owner=owner,
            host=self.host,
        )

    def get(self, run_id: RunId) -> Run:
        row = self._database.row("SELECT * FROM runs WHERE id = ?", (run_id,))
        if row is None:
            raise _unknown(run_id)
        return run_of(row)

    def list(
        self,
        *,
        statuses: Iterable[RunStatus] | None = None,
        request: RunId | None = None,
        parent: RunId | None = None,
        owner: OwnerId | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """The newest first; all of them with a limit of -1."""
        conditions: dict[str, list[Any]] = {}
        if statuses is not None:
            wanted = set(statuses)
            conditions[f"status IN ({', '.join('?' * len(wanted))})"] = [status.value for status in wanted]
            if not wanted & ENDED_STATUSES:
                conditions["ended_at IS NULL"] = []  # the database has an index for these
        for column, value in (("request", request), ("parent", parent), ("owner", owner)):
            if value is not None:
                conditions[f"{column} = ?"] = [value]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self._database.rows(
            f"SELECT * FROM runs {where} ORDER BY seq DESC LIMIT ?",
            [*(value for values in conditions.values() for value in values), limit],
        )
        return [run_of(row) for row in rows]

    def start(self, run_id: RunId) -> None:
        """Begin a run that needs no slot; the others are begun by the queue."""
        with self._database.write() as tx:
            if not queue.start(tx, run_id, slot=False):
                check_status_change(run_id, _status(tx, run_id), RunStatus.RUNNING)
            tx.touch(run_id)

    def finish(self, run_id: RunId, outcome: Ending) -> bool:
        """End the run and free its slot. False when somebody else ended it first: that ending stands."""
        with self._database.write() as tx:
            if end(tx, run_id, outcome):
                return True
            before = _status(tx, run_id)
        if not before.ended:
            check_status_change(run_id, before, outcome.status)
        return False

    def request_cancel(self, run_id: RunId) -> Run:
        """Cancel the run and its descendants: at once those that nobody performs, the others by asking
        their owners."""
        with self._database.write() as tx:
            _status(tx, run_id)
            tree = tx.execute(
                "WITH RECURSIVE tree(id) AS (SELECT ? UNION"
                " SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.id)"
                " SELECT runs.id, status, owner FROM runs JOIN tree USING (id) WHERE ended_at IS NULL",
                (run_id,),
            ).fetchall()
            for row in tree:
                each = RunId(row["id"])
                if row["status"] == RunStatus.QUEUED or row["owner"] == NOBODY:
                    end(tx, each, CANCELED)
                else:
                    tx.execute(
                        "UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, :now),"
                        " changed_at = :now WHERE id = :id",
                        {"id": each, "now": tx.now},
                    )
                    tx.touch(each)
        return self.get(run_id)

    def park(self, run_id: RunId) -> bool:
        """Let go of a resumable run that waits for an answer; False when it does not wait any more."""
        with self._database.write() as tx:
            row = tx.execute(
                "SELECT status, cancel_requested_at FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
            if row["status"] == RunStatus.RUNNING:
                return False
            if row["status"] == RunStatus.WAITING:
                if row["cancel_requested_at"] is None:
                    park(tx, run_id)
                else:
                    end(tx, run_id, CANCELED)
        return True

    def adopt(self, run_id: RunId, owner: OwnerId) -> bool:
        """Take over a run that nobody performs and that could go on; False when somebody was quicker."""
        with self._database.write() as tx:
            taken = tx.execute(
                "UPDATE runs SET owner = ?, host = ?, changed_at = ?"
                " WHERE id = ? AND owner = ? AND status = 'queued'",
                (owner, self.host, tx.now, run_id, NOBODY),
            ).rowcount
        return bool(taken)

    def adoptable(self) -> list[RunId]:
        """Runs that nobody performs and that could go on, the oldest first."""
        rows = self._database.rows(
            "SELECT id FROM runs WHERE owner = '' AND ended_at IS NULL AND status = 'queued' ORDER BY seq"
        )
        return [RunId(row["id"]) for row in rows]

    def set_summary(self, run_id: RunId, summary: str) -> None:
        """What the run says of itself while it runs."""
        with self._database.write() as tx:
            _set(tx, run_id, summary=storable(summary))
            tx.touch(run_id)
            tx.insert("events", {"run_id": run_id, "at": tx.now, "kind": "summary", "data": "{}"})

    def set_usage(self, run_id: RunId, usage: Usage) -> None:
        with self._database.write() as tx:
            _set(tx, run_id, usage=json.dumps(usage.as_dict()))

    def set_process(self, run_id: RunId, process: ProcessIdentity) -> None:
        """Remember the run's child process, so that it can be ended even after our death."""
        with self._database.write() as tx:
            _set(tx, run_id, pid=process.pid, pid_started_at=process.started)


def _set(tx: Transaction, run_id: RunId, **values: Any) -> None:
    if _status(tx, run_id).ended:
        raise Conflict(f"run {run_id} has ended and changes no more", run_id=run_id)
    changes = ", ".join(f"{column} = ?" for column in values)
    tx.execute(
        f"UPDATE runs SET {changes}, changed_at = ? WHERE id = ?",
        (*values.values(), tx.now, run_id),
    )


def _may_become(status: RunStatus) -> str:
    """The condition for a run that may go to this status."""
    return " OR ".join(f"status = '{before}'" for before in RunStatus if status in STATUS_CHANGES[before])


_END = {
    ending: "UPDATE runs SET status = :status, ended_at = :now, changed_at = :now,"
    " slot = 0, turn = NULL, waiting_since = NULL, result = :result, error = :error, exit_code = :exit_code,"
    " summary = coalesce(:summary, summary), usage = coalesce(:usage, usage) WHERE id = :id"
    f" AND ({_may_become(ending)})"
    for ending in ENDED_STATUSES
}


def end(tx: Transaction, run_id: RunId, outcome: Ending) -> bool:
    """Write how a run ended, if it may end so; its slot, its turn and its open messages go with it."""
    usage = None if outcome.usage is None else json.dumps(outcome.usage.as_dict())
    summary = None if outcome.summary is None else storable(outcome.summary)
    values = {
        "id": run_id,
        "status": outcome.status.value,
        "now": tx.now,
        "result": to_json(outcome.result),
        "error": to_json(outcome.error),
        "exit_code": outcome.exit_code,
        "summary": summary,
        "usage": usage,
    }
    if not tx.execute(_END[outcome.status], values).rowcount:
        return False
    tx.touch(run_id)
    return True


def park(tx: Transaction, run_id: RunId) -> None:
    """Leave a resumable run to whoever adopts it: at once, or when what it asks has been answered."""
    tx.execute(
        "UPDATE runs SET owner = :nobody, slot = 0, turn = NULL, deadline_at = NULL, changed_at = :now,"
        " status = CASE status WHEN 'running' THEN 'queued' ELSE status END WHERE id = :id",
        {"id": run_id, "nobody": NOBODY, "now": tx.now},
    )
    tx.touch(run_id)


def _status(tx: Transaction, run_id: RunId) -> RunStatus:
    row = tx.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        raise _unknown(run_id)
    return RunStatus(row["status"])


def _request_of_active(tx: Transaction, parent: RunId) -> RunId:
    status = _status(tx, parent)
    if status.ended:
        raise Conflict(f"run {parent} has ended ({status}) and can start no more runs", run_id=parent)
    return RunId(tx.execute("SELECT request FROM runs WHERE id = ?", (parent,)).fetchone()[0])


def _unknown(run_id: RunId) -> RunUnknown:
    return RunUnknown(f"no such run: {run_id}", hint="list the runs to see their ids", run_id=run_id)
