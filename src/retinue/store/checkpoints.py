"""The steps of workflows: begun, performed by which run, finished with what. A finished one stays so."""

from __future__ import annotations

import json
from dataclasses import dataclass

from retinue.core import Json, RunId
from retinue.store.database import Database, Row

RESULT_STEP = ":result"
"""The key of a workflow's own outcome among its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    step: str
    began_at: float
    child: RunId | None = None
    ended_at: float | None = None
    output: Json = None


class CheckpointTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, run_id: RunId, step: str) -> Checkpoint | None:
        row = self._database.row("SELECT * FROM checkpoints WHERE run_id = ? AND step = ?", (run_id, step))
        return None if row is None else _checkpoint(row)

    def of_run(self, run_id: RunId) -> list[Checkpoint]:
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


def _checkpoint(row: Row) -> Checkpoint:
    return Checkpoint(
        step=row["step"],
        began_at=row["began_at"],
        child=None if row["child"] is None else RunId(row["child"]),
        ended_at=row["ended_at"],
        output=None if row["output"] is None else json.loads(row["output"]),
    )
