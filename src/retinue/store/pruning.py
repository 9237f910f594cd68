"""Deletes old runs with their logs, messages, events and budgets. Active and recent runs stay.

A request tree is deleted as a whole. Its files are deleted first, so that an interrupted pruning is
repeated by the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from retinue.core import RunId, Stop
from retinue.store.store import Store

TREES_PER_WRITE = 50
"""Trees that one write deletes. A small number keeps the wait of other writers short."""

# The tree with the newest event stays, because SQLite would reuse that event's number and watchers compare
# numbers.
_SELECT_OLD_TREES = (
    "SELECT request FROM runs GROUP BY request HAVING count(ended_at) = count(*) AND max(ended_at) < ?"
    " AND request <> (SELECT request FROM runs JOIN events ON events.run_id = runs.id"
    " ORDER BY events.seq DESC LIMIT 1)"
)


def prune_runs(store: Store, before: float, stop: Stop) -> int:
    """Delete the request trees that ended before `before` (seconds since 1970), and return their number."""
    requests = [row["request"] for row in store.database.rows(_SELECT_OLD_TREES, (before,))]
    for first in range(0, len(requests), TREES_PER_WRITE):
        stop.check()
        _remove_trees(store, requests[first : first + TREES_PER_WRITE])
    return len(requests)


def _remove_trees(store: Store, requests: Sequence[str]) -> None:
    """Delete the files of these request trees, then their rows."""
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
