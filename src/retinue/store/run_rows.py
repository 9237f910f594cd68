"""A run as a row of the table, and back. Asks the database nothing."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from retinue.core import (
    Budget,
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
    Usage,
)
from retinue.store.database import Row
from retinue.store.text import storable


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
