"""What a run of a workflow was asked to do, as it stood when it began. Knows nothing of what it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from retinue.core import Json, RunId, RunUnknown
from retinue.store.database import Database
from retinue.store.text import storable


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
