"""Deletes old runs with their logs, messages, events and budgets. Active and recent runs stay.

A request tree is deleted as a whole. Its files are deleted first, so that an interrupted pruning is
repeated by the next one.

The clock of a machine may jump, and with a clock that is a year ahead every run looks old. So pruning
remembers when it last looked. After a jump in either direction, which a long absence looks like too, it waits
until the clock has gone on plausibly for a day. Besides, runs are deleted only in the order in which they
were recorded: a run that looks older than one before it was recorded with a wrong clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from retinue.core import RunId, Stop
from retinue.store.files import replace_file
from retinue.store.store import Store

DAY_S = 86_400.0
CLOCK_FILE = "clock.json"
CLOCK_SLACK_S = 3_600.0
"""How far a clock may be set back without counting as a jump."""
LONGEST_PAUSE_S = 7 * DAY_S
"""A longer time between two looks counts as a jump of the clock."""
STEADY_S = DAY_S
"""How long pruning waits after a jump."""
TREES_PER_WRITE = 50
"""Trees that one write deletes. A small number keeps the wait of other writers short."""

# The tree with the newest event stays, because SQLite would reuse that event's number and watchers compare
# numbers.
_SELECT_OLD_TREES = (
    "SELECT request FROM runs GROUP BY request"
    " HAVING count(ended_at) = count(*) AND max(ended_at) < :before AND min(seq) <"
    "  coalesce((SELECT min(seq) FROM runs WHERE coalesce(ended_at, enqueued_at) >= :before), max(seq) + 1)"
    " AND request <> (SELECT request FROM runs JOIN events ON events.run_id = runs.id"
    " ORDER BY events.seq DESC LIMIT 1)"
)


def is_pruning_due(store: Store) -> bool:
    """Whether the last look for old runs was a day ago, or at a time that the clock has not reached."""
    now, file = store.database.clock(), store.folder.path / CLOCK_FILE
    seen, _ = _read_clock(file, now - DAY_S)
    return not 0 <= now - seen < DAY_S


def prune_expired_runs(store: Store, days: int, stop: Stop) -> int:
    """Delete the request trees that ended more than `days` ago, unless the clock may have jumped."""
    now = store.database.clock()
    file = store.folder.path / CLOCK_FILE
    seen, steady_since = _read_clock(file, _newest_change(store, now))
    if now < seen - CLOCK_SLACK_S or now > seen + LONGEST_PAUSE_S:
        steady_since = now
    replace_file(file, json.dumps({"seen": now, "steady_since": steady_since}) + "\n")
    if now - steady_since < STEADY_S:
        return 0
    return prune_runs(store, now - days * DAY_S, stop)


def _newest_change(store: Store, now: float) -> float:
    row = store.database.row("SELECT max(changed_at) AS at FROM runs")
    return now if row is None or row["at"] is None else row["at"]


def _read_clock(file: Path, newest: float) -> tuple[float, float]:
    """The time of the last look, and since when the clock has been plausible. The default is `newest`."""
    try:
        match json.loads(file.read_text(encoding="utf-8")):
            case {"seen": float(seen), "steady_since": float(since)}:
                return seen, since
            case _:
                return newest, newest
    except FileNotFoundError:
        return newest, float("-inf")
    except (OSError, ValueError):
        return newest, newest


def prune_runs(store: Store, before: float, stop: Stop) -> int:
    """Delete the request trees that ended before `before` (seconds since 1970), and return their number."""
    requests = [row["request"] for row in store.database.rows(_SELECT_OLD_TREES, {"before": before})]
    for first in range(0, len(requests), TREES_PER_WRITE):
        stop.check()
        _remove_trees(store, requests[first : first + TREES_PER_WRITE])
    return len(requests)


def delete_requests(store: Store, requests: Sequence[RunId]) -> int:
    """Delete whole requests that have ended, for a person who asks for it. Return the number of runs."""
    places = ", ".join("?" * len(requests))
    active = store.database.rows(
        f"SELECT DISTINCT request FROM runs WHERE ended_at IS NULL AND request IN ({places})", requests
    )
    ended = [each for each in requests if each not in {row["request"] for row in active}]
    number = sum(below + 1 for below in store.runs.count_children(ended).values())
    _keep_numbers_growing(store, ended)
    for first in range(0, len(ended), TREES_PER_WRITE):
        _remove_trees(store, ended[first : first + TREES_PER_WRITE])
    return number


def _keep_numbers_growing(store: Store, requests: Sequence[RunId]) -> None:
    """Add an event to a run that stays, because SQLite would reuse the numbers of the newest events.

    If no run stays, numbers start again. Watchers notice that: see `EventTable.changed_since`.
    """
    places = ", ".join("?" * len(requests))
    staying = store.database.row(
        f"SELECT id FROM runs WHERE request NOT IN ({places}) ORDER BY seq DESC LIMIT 1", requests
    )
    if requests and staying is not None:
        store.events.add(RunId(staying["id"]), "runs_deleted", {"requests": len(requests)})


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
