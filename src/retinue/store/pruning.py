"""Old runs go, with their logs and all that hangs on them. What is active or recent stays.

A request's tree goes as a whole or not at all; its files first, so that a pruning that dies is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from retinue.core import RunId, Stop
from retinue.store.store import Store

BATCH = 50
"""Trees in one write: others wait for it only for a moment."""

# Numbers of events are never given twice as long as the newest stays: watchers go by them.
_OLD = (
    "SELECT request FROM runs GROUP BY request HAVING count(ended_at) = count(*) AND max(ended_at) < ?"
    " AND request <> (SELECT request FROM runs JOIN events ON events.run_id = runs.id"
    " ORDER BY events.seq DESC LIMIT 1)"
)


def prune_runs(store: Store, before: float, stop: Stop) -> int:
    """Remove the trees of runs that had all ended by then (seconds since 1970); how many trees that were."""
    requests = [row["request"] for row in store.database.rows(_OLD, (before,))]
    for first in range(0, len(requests), BATCH):
        stop.check()
        _remove(store, requests[first : first + BATCH])
    return len(requests)


def _remove(store: Store, requests: Sequence[str]) -> None:
    places = ", ".join("?" * len(requests))
    of_trees = f"SELECT id FROM runs WHERE request IN ({places})"
    for row in store.database.rows(of_trees, requests):
        for file in (store.folder.log(RunId(row["id"])), store.folder.meta(RunId(row["id"]))):
            with suppress(OSError):
                file.unlink(missing_ok=True)
    with store.database.write() as tx:
        for table in ("messages", "events", "child_tokens"):
            tx.execute(f"DELETE FROM {table} WHERE run_id IN ({of_trees})", requests)
        tx.execute(f"DELETE FROM ledgers WHERE request IN ({places})", requests)
        tx.execute(f"DELETE FROM runs WHERE request IN ({places})", requests)
