"""What happened to runs, in order, append-only. Changes of status and of messages write themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from retinue.core import Json, RunId
from retinue.store.database import Database, Row


@dataclass(frozen=True, slots=True)
class RunEvent:
    seq: int
    run_id: RunId
    at: float
    kind: str
    data: Mapping[str, Json]


class EventTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run_id: RunId, kind: str, data: Mapping[str, Json]) -> None:
        """Small facts only: output belongs into the log."""
        with self._database.write() as tx:
            tx.insert("events", {"run_id": run_id, "at": tx.now, "kind": kind, "data": json.dumps(data)})
            tx.touch(run_id)

    def of_run(
        self, run_id: RunId, *, after: int = 0, limit: int = 1000, kind: str | None = None
    ) -> list[RunEvent]:
        rows = self._database.rows(
            "SELECT * FROM events WHERE run_id = ? AND seq > ? AND kind = coalesce(?, kind)"
            " ORDER BY seq LIMIT ?",
            (run_id, after, kind, limit),
        )
        return [_event(row) for row in rows]

    def latest(self, run_id: RunId, limit: int) -> list[RunEvent]:
        """The last ones, the oldest of them first."""
        rows = self._database.rows(
            "SELECT * FROM events WHERE run_id = ? ORDER BY seq DESC LIMIT ?", (run_id, limit)
        )
        return [_event(row) for row in reversed(rows)]

    def last_of_kind(self, run_id: RunId, kind: str) -> RunEvent | None:
        row = self._database.row(
            "SELECT * FROM events WHERE run_id = ? AND kind = ? ORDER BY seq DESC LIMIT 1", (run_id, kind)
        )
        return None if row is None else _event(row)

    def last(self, run_id: RunId | None = None) -> int:
        """The number of the newest event, of one run or of all; 0 when there is none."""
        condition, values = ("", ()) if run_id is None else ("WHERE run_id = ?", (run_id,))
        row = self._database.row(f"SELECT max(seq) FROM events {condition}", values)
        return cast("int | None", row[0]) or 0 if row is not None else 0

    def changed_since(self, seq: int) -> tuple[int, set[RunId]]:
        """The newest event's number, and the runs that have had one since the given number."""
        rows = self._database.rows("SELECT seq, run_id FROM events WHERE seq > ? ORDER BY seq", (seq,))
        return (rows[-1]["seq"] if rows else seq), {RunId(row["run_id"]) for row in rows}


def _event(row: Row) -> RunEvent:
    return RunEvent(row["seq"], RunId(row["run_id"]), row["at"], row["kind"], json.loads(row["data"]))
