"""Decides which memories of a scope are archived, forgotten and removed, by when they were used last.

Changes nothing: `MemoryStore.hygiene` does what is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retinue.core import MemoryId
from retinue.store.database import Database

DAY_S = 86_400.0
HOT_DAYS = 60
"""A hot memory that was not used for longer is archived."""
ARCHIVE_DAYS = 90
"""An archived memory that was not used for longer is forgotten."""
MAX_HOT = 20
"""If there are more hot memories, the oldest `EXCESS` of them are archived."""
EXCESS = 5
UNDO_DAYS = 30
"""How long a change can be undone. After that, a forgotten memory is removed from the disk."""


@dataclass(frozen=True, slots=True)
class HygieneResult:
    """The changes that a hygiene run makes, or would make."""

    backfilled: tuple[MemoryId, ...] = ()
    """Memories without a tier or a time of use, which get one."""
    archived: tuple[MemoryId, ...] = ()
    forgotten: tuple[MemoryId, ...] = ()
    removed: int = 0
    """Memories forgotten longer ago than `UNDO_DAYS`, which are removed from the disk."""


def plan_hygiene(database: Database, now: float) -> HygieneResult:
    """Decide what a hygiene run changes. What has no tier counts as hot since it was created."""
    incomplete = database.rows(
        "SELECT id, seq, tier, superseded_by, coalesce(last_used_at, created_at) AS used FROM memories"
        " WHERE forgotten_at IS NULL AND (tier IS NULL OR last_used_at IS NULL)"
    )
    complete = database.rows(
        "SELECT id, seq, last_used_at AS used FROM memories WHERE forgotten_at IS NULL AND tier = 'hot'"
        " AND superseded_by IS NULL AND last_used_at IS NOT NULL"
    )
    others = [row for row in incomplete if row["tier"] != "archive" and row["superseded_by"] is None]
    hot = sorted([*complete, *others], key=lambda row: (row["used"], row["seq"]))
    stale = [row["id"] for row in hot if row["used"] < now - HOT_DAYS * DAY_S]
    rest = [row["id"] for row in hot[len(stale) :]]
    excess = rest[:EXCESS] if len(rest) > MAX_HOT else []
    forgotten = database.rows(
        "SELECT id FROM memories WHERE forgotten_at IS NULL AND tier = 'archive' AND last_used_at < ?"
        " ORDER BY last_used_at, seq",
        (now - ARCHIVE_DAYS * DAY_S,),
    )
    return HygieneResult(
        backfilled=tuple(MemoryId(row["id"]) for row in incomplete),
        archived=tuple(map(MemoryId, (*stale, *excess))),
        forgotten=tuple(MemoryId(row["id"]) for row in forgotten),
        removed=len(expired_memories(database, now)),
    )


def expired_memories(database: Database, now: float) -> Sequence[str]:
    """The memories that were forgotten too long ago to be restored."""
    before = now - UNDO_DAYS * DAY_S
    rows = database.rows("SELECT id FROM memories WHERE forgotten_at < ?", (before,))
    return [row["id"] for row in rows]
