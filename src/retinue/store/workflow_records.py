"""The definition of each workflow run as it was when it began, and the checkpoints of its steps.

A checkpoint records when a step began, which run performs it and what it returned. A finished step never
changes. Knows nothing of what a workflow means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from retinue.core import Json, RunId, RunUnknown
from retinue.store.database import Database, Row, insert_into
from retinue.store.files import replace_surrogates


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRecord:
    """The workflow that a run performs: its definition, its input and its working folder."""

    kind: str
    text: str
    source: str
    assignment: Mapping[str, Json]
    cwd: str


class WorkflowTable:
    """The workflow that each workflow run performs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, run_id: RunId, record: WorkflowRecord) -> None:
        with self._database.write() as tx:
            values: dict[str, Any] = {
                "run_id": run_id,
                "kind": record.kind,
                "text": replace_surrogates(record.text),
                "source": record.source,
                "assignment": json.dumps(record.assignment),
                "cwd": record.cwd,
            }
            tx.execute(insert_into("workflows", values), values)

    def get(self, run_id: RunId) -> WorkflowRecord:
        row = self._database.row("SELECT * FROM workflows WHERE run_id = ?", (run_id,))
        if row is None:
            raise RunUnknown(
                f"run {run_id} is not a workflow",
                hint="`retinue runs` lists workflows, too",
                run_id=run_id,
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
        )  # ids sort by creation time
        return [RunId(row["run_id"]) for row in rows]


ALLOWED_CHECKS_STEP = ":checks:allowed"
"""The key of the check commands that somebody allowed for one run of a workflow, by name."""
RESULT_STEP = ":result"
"""The step under which the outcome of the workflow itself is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCheckpoint:
    """The state of one step. It has finished if `ended_at` is set."""

    step: str
    began_at: float
    child: RunId | None = None
    ended_at: float | None = None
    output: Json = None


class CheckpointTable:
    """The checkpoints of the steps of workflow runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, run_id: RunId, step: str) -> StepCheckpoint | None:
        row = self._database.row("SELECT * FROM checkpoints WHERE run_id = ? AND step = ?", (run_id, step))
        return None if row is None else _checkpoint_from_row(row)

    def result(self, run_id: RunId) -> dict[str, Json] | None:
        """The recorded result of a workflow; None if it has none yet, or the run is not a workflow."""
        found = self.get(run_id, RESULT_STEP)
        return None if found is None else cast("dict[str, Json]", found.output)

    def of_run(self, run_id: RunId) -> list[StepCheckpoint]:
        """The checkpoints of a run, in the order the steps began."""
        rows = self._database.rows(
            "SELECT * FROM checkpoints WHERE run_id = ? ORDER BY began_at, step", (run_id,)
        )
        return [_checkpoint_from_row(row) for row in rows]

    def begin(self, run_id: RunId, step: str, child: RunId | None = None) -> None:
        """Record that the step has begun. A step that is tried again keeps its first time."""
        with self._database.write() as tx:
            tx.execute(
                "INSERT INTO checkpoints (run_id, step, began_at, child)"
                " VALUES (:run_id, :step, :now, :child)"
                " ON CONFLICT (run_id, step) DO UPDATE SET child = excluded.child",
                {"run_id": run_id, "step": step, "now": tx.now, "child": child},
            )

    def finish(self, run_id: RunId, step: str, output: Json) -> None:
        """Record what the step returned. Raises `Conflict` if it has finished before."""
        with self._database.write() as tx:
            tx.execute(
                "INSERT INTO checkpoints (run_id, step, began_at, ended_at, output)"
                " VALUES (:run_id, :step, :now, :now, :output)"
                " ON CONFLICT (run_id, step) DO UPDATE SET ended_at = :now, output = excluded.output",
                {"run_id": run_id, "step": step, "now": tx.now, "output": json.dumps(output)},
            )


def _checkpoint_from_row(row: Row) -> StepCheckpoint:
    return StepCheckpoint(
        step=row["step"],
        began_at=row["began_at"],
        child=None if row["child"] is None else RunId(row["child"]),
        ended_at=row["ended_at"],
        output=None if row["output"] is None else json.loads(row["output"]),
    )
