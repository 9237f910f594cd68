"""The record of every run. A run is written here before anything of it happens.

Changes of status are compare-and-set: of two processes that race, one wins and the other is told."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from retinue.core import (
    ENDED_STATUSES,
    STATUS_CHANGES,
    Budget,
    Conflict,
    Ending,
    Endpoint,
    Json,
    OwnerId,
    ProcessIdentity,
    Run,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    RunTiming,
    RunUnknown,
    Usage,
    check_status_change,
)
from retinue.store import ledgers, queue
from retinue.store.database import Database, Row, Transaction
from retinue.store.files import storable
from retinue.store.queue import Capacity

# MERGED run_rows: A run as a row of the table, and back. Asks the database nothing.


def to_json(value: Json) -> str | None:
    return None if value is None else json.dumps(value)


def _from_json(text: str | None) -> Json:
    return None if text is None else json.loads(text)


# One agent's runs share their tools and their budget, so these are mostly asked the same again.
@lru_cache(maxsize=64)
def _tools_to_json(tools: tuple[str, ...]) -> str:
    return json.dumps(tools)


@lru_cache(maxsize=64)
def _budget_to_json(budget: Budget) -> str:
    return json.dumps(budget.as_dict())


def columns(spec: RunSpec) -> dict[str, Any]:
    return {
        "parent": spec.parent,
        "agent": storable(spec.agent),
        "caller": storable(spec.caller),
        "task": storable(spec.task),
        "executor": spec.executor,
        "command": None if spec.command is None else storable(spec.command),
        "model": spec.model,
        "tools": _tools_to_json(spec.tools),
        "queue_s": spec.limits.queue_s,
        "run_s": spec.limits.run_s,
        "budget": _budget_to_json(spec.limits.budget),
        "endpoint": None if spec.endpoint is None else spec.endpoint.key,
        "endpoint_slots": None if spec.endpoint is None else spec.endpoint.slots,
        "needs_slot": spec.needs_slot,
        "resumable": spec.resumable,
    }


def _spec(row: Row) -> RunSpec:
    return RunSpec(
        agent=row["agent"],
        task=row["task"],
        executor=row["executor"],
        caller=row["caller"],
        parent=None if row["parent"] is None else RunId(row["parent"]),
        model=row["model"],
        tools=tuple(json.loads(row["tools"])),
        limits=RunLimits(row["queue_s"], row["run_s"], Budget(**json.loads(row["budget"]))),
        endpoint=None if row["endpoint"] is None else Endpoint(row["endpoint"], row["endpoint_slots"]),
        needs_slot=bool(row["needs_slot"]),
        command=row["command"],
        resumable=bool(row["resumable"]),
    )


def run_of(row: Row) -> Run:
    pid = row["pid"]
    return Run(
        id=RunId(row["id"]),
        request=RunId(row["request"]),
        spec=_spec(row),
        status=RunStatus(row["status"]),
        timing=RunTiming(
            enqueued_at=row["enqueued_at"],
            started_at=row["started_at"],
            ended_at=row["ended_at"],
            deadline_at=row["deadline_at"],
        ),
        owner=OwnerId(row["owner"]),
        host=row["host"],
        holds_slot=bool(row["slot"]),
        cancel_requested=row["cancel_requested_at"] is not None,
        process=None if pid is None else ProcessIdentity(pid, row["pid_started_at"]),
        usage=Usage.of(**json.loads(row["usage"])),
        result=_from_json(row["result"]),
        error=_from_json(row["error"]),
        summary=row["summary"],
        exit_code=row["exit_code"],
    )


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
        """Record a new run. It is queued, or running if it needs no slot.

        Raises `QueueFull`, and records nothing, if there is no room for it.
        """
        run_id = RunId.new()
        with self._database.write() as tx:
            request = run_id if spec.parent is None else _request_of_active(tx, spec.parent)
            queue_s = spec.limits.queue_s
            timing = RunTiming(enqueued_at=tx.now, deadline_at=_after(tx.now, queue_s))
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
            if not spec.needs_slot:
                queue.start(tx, run_id, slot=False)
                timing = replace(timing, started_at=tx.now, deadline_at=_after(tx.now, spec.limits.run_s))
            tx.touch(run_id)
        return Run(
            id=run_id,
            request=request,
            spec=spec,
            status=RunStatus.QUEUED if spec.needs_slot else RunStatus.RUNNING,
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
        """Take over a parked run that can go on, and start it. False if another process was quicker."""
        with self._database.write() as tx:
            taken = tx.execute(
                "UPDATE runs SET owner = ?, host = ?, changed_at = ?"
                " WHERE id = ? AND owner = ? AND status = 'queued'",
                (owner, self.host, tx.now, run_id, NOBODY),
            ).rowcount
            if taken:
                queue.start(tx, run_id, slot=False)
                tx.touch(run_id)
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


def _after(now: float, seconds: float | None) -> float | None:
    return None if seconds is None else now + seconds


def _unknown(run_id: RunId) -> RunUnknown:
    return RunUnknown(f"no such run: {run_id}", hint="list the runs to see their ids", run_id=run_id)
