"""The steps of workflows: begun, performed by which run, finished with what. A finished one stays so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from retinue.core import Json, RunId, RunUnknown
from retinue.store.database import Database, Row
from retinue.store.files import storable

RESULT_STEP = ":result"
"""The key of a workflow's own outcome among its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCheckpoint:
    step: str
    began_at: float
    child: RunId | None = None
    ended_at: float | None = None
    output: Json = None


class CheckpointTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, run_id: RunId, step: str) -> StepCheckpoint | None:
        row = self._database.row("SELECT * FROM checkpoints WHERE run_id = ? AND step = ?", (run_id, step))
        return None if row is None else _checkpoint(row)

    def of_run(self, run_id: RunId) -> list[StepCheckpoint]:
        """In the order they began."""
        rows = self._database.rows(
            "SELECT * FROM checkpoints WHERE run_id = ? ORDER BY began_at, step", (run_id,)
        )
        return [_checkpoint(row) for row in rows]

    def begin(self, run_id: RunId, step: str, child: RunId | None = None) -> None:
        """Note that the step is under way; one that is tried again keeps its beginning."""
        with self._database.write() as tx:
            tx.execute(
                "INSERT INTO checkpoints (run_id, step, began_at, child)"
                " VALUES (:run_id, :step, :now, :child)"
                " ON CONFLICT (run_id, step) DO UPDATE SET child = excluded.child",
                {"run_id": run_id, "step": step, "now": tx.now, "child": child},
            )

    def finish(self, run_id: RunId, step: str, output: Json) -> None:
        """Keep what the step gave; `Conflict` when it has finished before."""
        with self._database.write() as tx:
            tx.execute(
                "INSERT INTO checkpoints (run_id, step, began_at, ended_at, output)"
                " VALUES (:run_id, :step, :now, :now, :output)"
                " ON CONFLICT (run_id, step) DO UPDATE SET ended_at = :now, output = excluded.output",
                {"run_id": run_id, "step": step, "now": tx.now, "output": json.dumps(output)},
            )


def _checkpoint(row: Row) -> StepCheckpoint:
    return StepCheckpoint(
        step=row["step"],
        began_at=row["began_at"],
        child=None if row["child"] is None else RunId(row["child"]),
        ended_at=row["ended_at"],
        output=None if row["output"] is None else json.loads(row["output"]),
    )


# MERGED workflows: What a run of a workflow was asked to do, as it stood when it began. Knows nothing of what it means.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRecord:
    kind: str
    text: str
    source: str
    assignment: Mapping[str, Json]
    cwd: str


class WorkflowTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, run_id: RunId, record: WorkflowRecord) -> None:
        with self._database.write() as tx:
            values: dict[str, Any] = {
                "run_id": run_id,
                "kind": record.kind,
                "text": storable(record.text),
                "source": record.source,
                "assignment": json.dumps(record.assignment),
                "cwd": record.cwd,
            }
            tx.insert("workflows", values)

    def get(self, run_id: RunId) -> WorkflowRecord:
        row = self._database.row("SELECT * FROM workflows WHERE run_id = ?", (run_id,))
        if row is None:
            raise RunUnknown(
                f"run {run_id} is not a workflow", hint="`retinue runs` names workflows too", run_id=run_id
            )
        return WorkflowRecord(
            kind=row["kind"],
            text=row["text"],
            source=row["source"],
            assignment=cast("Mapping[str, Json]", json.loads(row["assignment"])),
            cwd=row["cwd"],
        )

    def newest(self, limit: int) -> list[RunId]:
        rows = self._database.rows(
            "SELECT run_id FROM workflows ORDER BY run_id DESC LIMIT ?", (limit,)
        )  # ids sort by the time they were made
        return [RunId(row["run_id"]) for row in rows]
