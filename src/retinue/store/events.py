"""The event log of runs: append-only and ordered.

Triggers in the database add an event for every change of a run's or a message's status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from retinue.core import Json, RunId
from retinue.store.database import Database, Row, insert_into


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One entry of the event log. `seq` grows over all runs."""

    seq: int
    run_id: RunId
    at: float
    kind: str
    data: Mapping[str, Json]


class EventTable:
    """Appends and reads events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run_id: RunId, kind: str, data: Mapping[str, Json]) -> None:
        """Append an event. Keep `data` small: output belongs into the log file."""
        with self._database.write() as tx:
            event = {"run_id": run_id, "at": tx.now, "kind": kind, "data": json.dumps(data)}
            tx.execute(insert_into("events", event), event)
            tx.touch(run_id)

    def of_run(
        self, run_id: RunId, *, after: int = 0, limit: int = 1000, kind: str | None = None
    ) -> list[RunEvent]:
        """The events of a run after `after`, in order; only those of one kind if it is given."""
        rows = self._database.rows(
            "SELECT * FROM events WHERE run_id = ? AND seq > ? AND kind = coalesce(?, kind)"
            " ORDER BY seq LIMIT ?",
            (run_id, after, kind, limit),
        )
        return [_event_from_row(row) for row in rows]

    def latest(self, run_id: RunId, limit: int) -> list[RunEvent]:
        """The newest events of a run, the oldest of them first."""
        rows = self._database.rows(
            "SELECT * FROM events WHERE run_id = ? ORDER BY seq DESC LIMIT ?", (run_id, limit)
        )
        return [_event_from_row(row) for row in reversed(rows)]

    def last_of_kind(self, run_id: RunId, kind: str) -> RunEvent | None:
        row = self._database.row(
            "SELECT * FROM events WHERE run_id = ? AND kind = ? ORDER BY seq DESC LIMIT 1", (run_id, kind)
        )
        return None if row is None else _event_from_row(row)

    def last_seq(self, run_id: RunId | None = None) -> int:
        """The number of the newest event of one run, or of all runs; 0 if there is none."""
        condition, values = ("", ()) if run_id is None else ("WHERE run_id = ?", (run_id,))
        row = self._database.row(f"SELECT max(seq) FROM events {condition}", values)
        return cast("int | None", row[0]) or 0 if row is not None else 0

    def changed_since(self, seq: int) -> tuple[int, set[RunId]]:
        """The number of the newest event, and the runs with events after `seq`."""
        rows = self._database.rows("SELECT seq, run_id FROM events WHERE seq > ? ORDER BY seq", (seq,))
        if not rows and self.last_seq() < seq:  # runs were deleted, so numbers are used again
            rows = self._database.rows("SELECT seq, run_id FROM events ORDER BY seq")
            seq = 0
        return (rows[-1]["seq"] if rows else seq), {RunId(row["run_id"]) for row in rows}


def _event_from_row(row: Row) -> RunEvent:
    return RunEvent(row["seq"], RunId(row["run_id"]), row["at"], row["kind"], json.loads(row["data"]))
