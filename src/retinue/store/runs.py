"""The table of runs. A run is recorded here before anything else happens.

Status changes are compare-and-set: if two processes race, one wins and the other gets False or `Conflict`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from retinue.core import (
    ENDED_STATUSES,
    STATUS_CHANGES,
    Budget,
    Conflict,
    Ending,
    Endpoint,
    InvalidInput,
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
from retinue.store.database import Database, Row, Transaction, insert_into
from retinue.store.files import replace_surrogates
from retinue.store.queue import Capacity, RunQueue, SlotClaim

T = TypeVar("T")

SUMMARY_EVENT = "summary"
"""The kind of the event that somebody has reported a summary."""
LIST_RUNS = "list_runs and `retinue runs` list all runs"
MAX_NAMED = 5
"""Ids that an error names."""
NO_OWNER = OwnerId("")
"""The owner of a parked run."""
CANCELED_WITHOUT_OWNER = Ending(
    status=RunStatus.CANCELED, error={"code": "canceled", "message": "the run was canceled while it waited"}
)


class RunTable:
    """Records, reads, ends and parks runs."""

    def __init__(self, database: Database, queue: RunQueue) -> None:
        self._database = database
        self._queue = queue
        self.host = platform.node()

    def record(self, spec: RunSpec, owner: OwnerId, capacity: Capacity | None = None) -> Run:
        """Record a new run. It is queued, or running if it needs no slot.

        Raises `QueueFull`, and records nothing, if there is no room for it.
        """
        run_id = RunId.new()
        with self._database.write() as tx:
            request = run_id if spec.parent is None else _request_of_active(tx, spec.parent)
            queue_s = spec.limits.queue_s
            timing = RunTiming(enqueued_at=tx.now, deadline_at=_add_seconds(tx.now, queue_s))
            not_before = _quota_reset(tx, spec.account)
            values = _spec_columns(spec) | {
                "id": run_id,
                "request": request,
                "owner": owner,
                "host": self.host,
                "turn": queue.next_turn(tx, request, capacity) if spec.needs_slot else None,
                "not_before": not_before,
                "enqueued_at": timing.enqueued_at,
                "deadline_at": timing.deadline_at,
                "changed_at": tx.now,
            }
            tx.execute(insert_into("runs", values), values)
            if spec.parent is None:
                ledgers.open_ledger(tx, run_id, spec.limits.budget)
            if not spec.needs_slot:
                queue.start_run(tx, run_id, slot=False)
                timing = replace(
                    timing, started_at=tx.now, deadline_at=_add_seconds(tx.now, spec.limits.run_s)
                )
            tx.touch(run_id)
        return Run(
            id=run_id,
            request=request,
            spec=spec,
            status=RunStatus.QUEUED if spec.needs_slot else RunStatus.RUNNING,
            timing=timing,
            owner=owner,
            host=self.host,
            not_before=not_before,
        )

    def record_and_admit(
        self, spec: RunSpec, claim: SlotClaim, also: Callable[[Run], T]
    ) -> tuple[Run, T, list[RunId]]:
        """Record a run together with what `also` writes for it, and give it a slot if one is free.

        Returns the run, the result of `also`, and the runs that got a slot.
        """
        with self._database.write():
            run = self.record(spec, claim.owner, claim.capacity)
            written = also(run)
            admitted: list[RunId] = []
            if spec.needs_slot:
                admitted = self._queue.admit(claim.owner, claim.capacity, claim.ready | {run.id})
        return run, written, admitted

    def finish_and_admit(
        self, run_id: RunId, outcome: Ending, claim: SlotClaim, also: Callable[[], object]
    ) -> tuple[bool, list[RunId]]:
        """End a run together with what `also` writes, and give its slot to the next one.

        Returns whether the run had not ended before, and the runs that got a slot.
        """
        with self._database.write():
            also()
            finished = self.finish(run_id, outcome)
            return finished, self._queue.admit(claim.owner, claim.capacity, claim.ready)

    def get(self, run_id: RunId) -> Run:
        row = self._database.row("SELECT * FROM runs WHERE id = ?", (run_id,))
        if row is None:
            raise _unknown_run(run_id)
        return _run_from_row(row)

    def is_known(self, run_id: str) -> bool:
        """Whether a run with this id is recorded."""
        return self._database.row("SELECT 1 FROM runs WHERE id = ?", (run_id,)) is not None

    def find_id(self, text: str) -> RunId:
        """The id that this text is, or the only one that begins or ends with it.

        If a request and runs below it match, it is the request. Raises `InvalidInput` if several match.
        """
        if not RunId.is_part(text):
            return RunId.parse(text)
        rows = self._database.rows(
            "SELECT id, request FROM runs WHERE id GLOB ? OR id GLOB ? ORDER BY seq", (f"{text}*", f"*{text}")
        )
        found = [row["id"] for row in rows]
        if len(found) == 1 or (found and {row["request"] for row in rows} == {found[0]}):
            return RunId(found[0])
        if not found:
            raise RunUnknown(f"no run has an id that begins or ends with {text!r}", hint=LIST_RUNS)
        more = ", ..." if len(found) > MAX_NAMED else ""
        raise InvalidInput(
            f"{text!r} may be several runs", hint=f"use more letters: {', '.join(found[-MAX_NAMED:])}{more}"
        )

    def list(
        self,
        *,
        statuses: Iterable[RunStatus] | None = None,
        request: RunId | None = None,
        parent: RunId | None = None,
        owner: OwnerId | None = None,
        agent: str | None = None,
        since: float | None = None,
        requests_only: bool = False,
        limit: int = 100,
    ) -> list[Run]:
        """The runs that match every given filter, the newest first. A limit of -1 returns all of them.

        `since` is the earliest time of recording. With `requests_only`, runs that other runs started are left
        out.
        """
        conditions: dict[str, list[Any]] = {}
        if statuses is not None:
            wanted = set(statuses)
            conditions[f"status IN ({', '.join('?' * len(wanted))})"] = [status.value for status in wanted]
            if not wanted & ENDED_STATUSES:
                conditions["ended_at IS NULL"] = []  # uses the index of active runs
        equal = (("request", request), ("parent", parent), ("owner", owner), ("agent", agent))
        for column, value in equal:
            if value is not None:
                conditions[f"{column} = ?"] = [value]
        if since is not None:
            conditions["enqueued_at >= ?"] = [since]
        if requests_only:
            conditions["parent IS NULL"] = []
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self._database.rows(
            f"SELECT * FROM runs {where} ORDER BY seq DESC LIMIT ?",
            [*(value for values in conditions.values() for value in values), limit],
        )
        return [_run_from_row(row) for row in rows]

    def count_children(self, requests: Sequence[RunId]) -> dict[RunId, int]:
        """How many runs each request has started, directly and indirectly."""
        places = ", ".join("?" * len(requests))
        rows = self._database.rows(
            f"SELECT request, count(*) - 1 AS below FROM runs WHERE request IN ({places}) GROUP BY request",
            requests,
        )
        return {RunId(row["request"]): row["below"] for row in rows}

    def finish(self, run_id: RunId, outcome: Ending) -> bool:
        """End the run and free its slot. False if it had ended before; then that ending stays."""
        with self._database.write() as tx:
            if end_run(tx, run_id, outcome):
                return True
            before = _read_status(tx, run_id)
        if not before.ended:
            check_status_change(run_id, before, outcome.status)
        return False

    def request_cancel(self, run_id: RunId) -> Run:
        """Cancel the run and its descendants.

        Runs that no process performs end at once. For the others, their owners see the request.
        """
        with self._database.write() as tx:
            _read_status(tx, run_id)
            tree = tx.execute(
                "WITH RECURSIVE tree(id) AS (SELECT ? UNION"
                " SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.id)"
                " SELECT runs.id, status, owner FROM runs JOIN tree USING (id) WHERE ended_at IS NULL",
                (run_id,),
            ).fetchall()
            for row in tree:
                each = RunId(row["id"])
                if row["status"] == RunStatus.QUEUED or row["owner"] == NO_OWNER:
                    end_run(tx, each, CANCELED_WITHOUT_OWNER)
                else:
                    tx.execute(
                        "UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, :now),"
                        " changed_at = :now WHERE id = :id",
                        {"id": each, "now": tx.now},
                    )
                    tx.touch(each)
        return self.get(run_id)

    def hold_back(
        self, run_id: RunId, not_before: float, account: str | None, endpoint: Endpoint | None
    ) -> bool:
        """Put a started run back into the queue until a time, because of its account. Frees its slot.

        False if it has ended or must end.
        """
        with self._database.write() as tx:
            held = tx.execute(
                "UPDATE runs SET status = 'queued', slot = 0, turn = :turn, deadline_at = NULL,"
                " not_before = :not_before, account = :account, endpoint = :endpoint,"
                " endpoint_slots = :slots, pid = NULL, pid_started_at = NULL, changed_at = :now"
                " WHERE id = :id AND status = 'running' AND cancel_requested_at IS NULL",
                {
                    "id": run_id,
                    "turn": queue.current_turn(tx),
                    "not_before": not_before,
                    "account": account,
                    "endpoint": None if endpoint is None else endpoint.key,
                    "slots": None if endpoint is None else endpoint.slots,
                    "now": tx.now,
                },
            ).rowcount
            if held:
                tx.touch(run_id)
        return bool(held)

    def mark_waiting_for_quota(self, run_id: RunId, not_before: float, account: str) -> None:
        """Note that a running run asks what to do about its account, so that it outlives its server."""
        with self._database.write() as tx:
            tx.execute(
                "UPDATE runs SET not_before = ?, account = ?, changed_at = ? WHERE id = ?"
                " AND status = 'running'",
                (not_before, account, tx.now, run_id),
            )

    def park(self, run_id: RunId) -> bool:
        """Give up ownership of a resumable run that waits for an answer. False if it is running again."""
        with self._database.write() as tx:
            row = tx.execute(
                "SELECT status, cancel_requested_at FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
            if row["status"] == RunStatus.RUNNING:
                return False
            if row["status"] == RunStatus.WAITING:
                if row["cancel_requested_at"] is None:
                    park_run(tx, run_id)
                else:
                    end_run(tx, run_id, CANCELED_WITHOUT_OWNER)
        return True

    def adopt(self, run_id: RunId, owner: OwnerId) -> bool:
        """Become the owner of a parked run that can continue. False if another process did.

        A run that needs no slot starts; another one queues.
        """
        with self._database.write() as tx:
            taken = tx.execute(
                "UPDATE runs SET owner = ?, host = ?, changed_at = ?,"
                " turn = CASE WHEN needs_slot THEN ? ELSE NULL END"
                " WHERE id = ? AND owner = ? AND status = 'queued'",
                (owner, self.host, tx.now, queue.current_turn(tx), run_id, NO_OWNER),
            ).rowcount
            if taken:
                row = tx.execute("SELECT needs_slot FROM runs WHERE id = ?", (run_id,)).fetchone()
                if not row["needs_slot"]:
                    queue.start_run(tx, run_id, slot=False)
                tx.touch(run_id)
        return bool(taken)

    def list_adoptable(self, *, resumable: bool = True) -> list[RunId]:
        """The parked runs that can continue, the oldest first: resumable ones, or those of spent accounts."""
        rows = self._database.rows(
            "SELECT id FROM runs WHERE owner = '' AND ended_at IS NULL AND status = 'queued'"
            " AND resumable = ? ORDER BY seq",
            (resumable,),
        )
        return [RunId(row["id"]) for row in rows]

    def set_summary(self, run_id: RunId, summary: str) -> None:
        """Store a summary that is reported about a run, also after its end."""
        with self._database.write() as tx:
            _read_status(tx, run_id)
            tx.execute(
                "UPDATE runs SET summary = ?, changed_at = ? WHERE id = ?",
                (replace_surrogates(summary), tx.now, run_id),
            )
            tx.touch(run_id)
            event = {"run_id": run_id, "at": tx.now, "kind": SUMMARY_EVENT, "data": "{}"}
            tx.execute(insert_into("events", event), event)

    def set_usage(self, run_id: RunId, usage: Usage) -> None:
        with self._database.write() as tx:
            _update_active(tx, run_id, usage=json.dumps(usage.as_dict()))

    def set_process(self, run_id: RunId, process: ProcessIdentity, command: str | None = None) -> None:
        """Store the identity of the run's process, so that recovery can end it if this server dies.

        `command` is the command line that was started.
        """
        started = {} if command is None else {"command": replace_surrogates(command)}
        with self._database.write() as tx:
            _update_active(tx, run_id, pid=process.pid, pid_started_at=process.started, **started)
            if started:
                tx.touch(run_id)


def _update_active(tx: Transaction, run_id: RunId, **values: Any) -> None:
    if _read_status(tx, run_id).ended:
        raise Conflict(f"run {run_id} has ended and cannot change", run_id=run_id)
    changes = ", ".join(f"{column} = ?" for column in values)
    tx.execute(
        f"UPDATE runs SET {changes}, changed_at = ? WHERE id = ?",
        (*values.values(), tx.now, run_id),
    )


def _status_condition(status: RunStatus) -> str:
    """The SQL condition for a run that may change to this status."""
    return " OR ".join(f"status = '{before}'" for before in RunStatus if status in STATUS_CHANGES[before])


_END_STATEMENTS = {
    ending: "UPDATE runs SET status = :status, ended_at = :now, changed_at = :now,"
    " slot = 0, turn = NULL, waiting_since = NULL, result = :result, error = :error, exit_code = :exit_code,"
    " summary = coalesce(:summary, summary), usage = coalesce(:usage, usage) WHERE id = :id"
    f" AND ({_status_condition(ending)})"
    for ending in ENDED_STATUSES
}


def end_run(tx: Transaction, run_id: RunId, outcome: Ending) -> bool:
    """Record how a run ended, and free its slot. False if it may not change to that status."""
    usage = None if outcome.usage is None else json.dumps(outcome.usage.as_dict())
    summary = None if outcome.summary is None else replace_surrogates(outcome.summary)
    values = {
        "id": run_id,
        "status": outcome.status.value,
        "now": tx.now,
        "result": _to_json(outcome.result),
        "error": _to_json(outcome.error),
        "exit_code": outcome.exit_code,
        "summary": summary,
        "usage": usage,
    }
    if not tx.execute(_END_STATEMENTS[outcome.status], values).rowcount:
        return False
    tx.touch(run_id)
    return True


def park_run(tx: Transaction, run_id: RunId) -> None:
    """Give a run up for adoption: at once, or, if it is resumable, after its open question is answered."""
    tx.execute(
        "UPDATE messages SET status = 'closed', closed_at = :now, changed_at = :now WHERE run_id = :id"
        " AND status = 'pending_parent_reply' AND NOT (SELECT resumable FROM runs WHERE id = :id)",
        {"id": run_id, "now": tx.now},
    )
    tx.execute(
        "UPDATE runs SET owner = :nobody, slot = 0, turn = NULL, deadline_at = NULL, changed_at = :now,"
        " status = CASE WHEN status = 'running' OR NOT resumable THEN 'queued' ELSE status END,"
        " waiting_since = CASE WHEN resumable THEN waiting_since ELSE NULL END WHERE id = :id",
        {"id": run_id, "nobody": NO_OWNER, "now": tx.now},
    )
    tx.touch(run_id)


def _read_status(tx: Transaction, run_id: RunId) -> RunStatus:
    row = tx.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        raise _unknown_run(run_id)
    return RunStatus(row["status"])


def _request_of_active(tx: Transaction, parent: RunId) -> RunId:
    """The request tree of a run that may still start child runs."""
    status = _read_status(tx, parent)
    if status.ended:
        raise Conflict(f"run {parent} has ended ({status}) and cannot start runs", run_id=parent)
    return RunId(tx.execute("SELECT request FROM runs WHERE id = ?", (parent,)).fetchone()[0])


def _quota_reset(tx: Transaction, account: str | None) -> float | None:
    """When an account can be used again; None if it can be used now."""
    row = (
        account
        and tx.execute(
            "SELECT reset_at FROM quotas WHERE account = ? AND reset_at > ?", (account, tx.now)
        ).fetchone()
    )
    return row["reset_at"] if row else None


def _add_seconds(now: float, seconds: float | None) -> float | None:
    return None if seconds is None else now + seconds


def _unknown_run(run_id: RunId) -> RunUnknown:
    return RunUnknown(f"no such run: {run_id}", hint=LIST_RUNS, run_id=run_id)


# Conversion between runs and rows


def _to_json(value: Json) -> str | None:
    return None if value is None else json.dumps(value)


def _from_json(text: str | None) -> Json:
    return None if text is None else json.loads(text)


# Cached, because the runs of one agent share their tools and their budget.
@lru_cache(maxsize=64)
def _tools_to_json(tools: tuple[str, ...]) -> str:
    return json.dumps(tools)


@lru_cache(maxsize=64)
def _budget_to_json(budget: Budget) -> str:
    return json.dumps(budget.as_dict())


def _spec_columns(spec: RunSpec) -> dict[str, Any]:
    return {
        "parent": spec.parent,
        "agent": replace_surrogates(spec.agent),
        "caller": replace_surrogates(spec.caller),
        "task": replace_surrogates(spec.task),
        "executor": spec.executor,
        "command": None if spec.command is None else replace_surrogates(spec.command),
        "model": spec.model,
        "tools": _tools_to_json(spec.tools),
        "queue_s": spec.limits.queue_s,
        "run_s": spec.limits.run_s,
        "budget": _budget_to_json(spec.limits.budget),
        "endpoint": None if spec.endpoint is None else spec.endpoint.key,
        "endpoint_slots": None if spec.endpoint is None else spec.endpoint.slots,
        "needs_slot": spec.needs_slot,
        "resumable": spec.resumable,
        "account": spec.account,
        "cwd": spec.cwd,
    }


def _spec_from_row(row: Row) -> RunSpec:
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
        account=row["account"],
        cwd=row["cwd"],
    )


def _run_from_row(row: Row) -> Run:
    pid = row["pid"]
    return Run(
        id=RunId(row["id"]),
        request=RunId(row["request"]),
        spec=_spec_from_row(row),
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
        not_before=row["not_before"],
        cancel_requested=row["cancel_requested_at"] is not None,
        process=None if pid is None else ProcessIdentity(pid, row["pid_started_at"]),
        usage=Usage.of(**json.loads(row["usage"])),
        result=_from_json(row["result"]),
        error=_from_json(row["error"]),
        summary=row["summary"],
        exit_code=row["exit_code"],
    )
