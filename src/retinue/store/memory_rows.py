"""The tables that memories are stored in, and a memory as a row of them.

Knows nothing of what changes memories.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from typing import Any, cast

from retinue.core import CitedPlace, Memory, MemoryId, MemoryKind, MemoryState, MemoryTier, Unavailable
from retinue.store.database import Row


def m001_memories(db: sqlite3.Connection) -> None:
    """Memories, the index of their terms, and the changes that can be undone."""
    db.execute("""
        CREATE TABLE memories (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            text TEXT NOT NULL,
            digest TEXT NOT NULL,
            kind TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('tentative', 'confirmed')),
            tier TEXT CHECK (tier IN ('hot', 'archive')),
            created_at REAL NOT NULL,
            last_used_at REAL,
            uses INTEGER NOT NULL DEFAULT 0,
            author TEXT NOT NULL,
            source TEXT,
            cites TEXT NOT NULL DEFAULT '[]',
            supersedes TEXT NOT NULL DEFAULT '[]',
            superseded_by TEXT,
            forgotten_at REAL
        )""")
    db.execute("""
        CREATE UNIQUE INDEX memories_by_text ON memories (digest)
        WHERE forgotten_at IS NULL AND superseded_by IS NULL""")
    db.execute("CREATE INDEX memories_by_use ON memories (tier, last_used_at) WHERE forgotten_at IS NULL")
    db.execute("""
        CREATE INDEX memories_to_backfill ON memories (seq)
        WHERE forgotten_at IS NULL AND (tier IS NULL OR last_used_at IS NULL)""")
    db.execute("CREATE INDEX memories_by_run ON memories (source) WHERE source IS NOT NULL")
    db.execute("CREATE INDEX memories_forgotten ON memories (forgotten_at) WHERE forgotten_at IS NOT NULL")
    try:
        db.execute(
            "CREATE VIRTUAL TABLE memory_terms USING fts5(terms, tokenize = 'unicode61 remove_diacritics 0')"
        )
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        hint = "use another build of Python; those of python.org and of uv have it"
        raise Unavailable(
            "the SQLite of this Python has no FTS5, which the memory needs", hint=hint
        ) from error
    db.execute("CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab('memory_terms', 'row')")
    db.execute("""
        CREATE TABLE changes (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            batch INTEGER NOT NULL,
            at REAL NOT NULL,
            action TEXT NOT NULL,
            id TEXT NOT NULL,
            before TEXT,
            undone INTEGER NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
        )""")
    db.execute("CREATE INDEX changes_by_memory ON changes (id)")
    db.execute("CREATE INDEX changes_by_batch ON changes (batch)")
    db.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")


MIGRATIONS = (m001_memories,)


def text_digest(text: str) -> str:
    """The same for texts that differ only in case, blanks and the full stop at the end."""
    plain = " ".join(text.casefold().split()).rstrip(".")
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def memory_as_json(memory: Memory) -> dict[str, Any]:
    return {name: value for name, value in memory_as_row(memory).items() if name != "digest"}


def memory_as_row(memory: Memory) -> dict[str, Any]:
    cites = [[place.path, place.first, place.last, place.digest] for place in memory.cites]
    return {
        "id": memory.id,
        "text": memory.text,
        "digest": text_digest(memory.text),
        "kind": memory.kind,
        "state": memory.state,
        "tier": memory.tier,
        "created_at": memory.created_at,
        "last_used_at": memory.last_used_at,
        "uses": memory.uses,
        "author": memory.author,
        "source": memory.source,
        "cites": json.dumps(cites, ensure_ascii=False),
        "supersedes": json.dumps(memory.supersedes),
        "superseded_by": memory.superseded_by,
        "forgotten_at": memory.forgotten_at,
    }


def memory_from_row(row: Row) -> Memory:
    return memory_from_json({name: row[name] for name in row.keys()})  # noqa: SIM118 (a row is no mapping)


def memory_from_json(values: Mapping[str, Any]) -> Memory:
    superseded_by = values["superseded_by"]
    return Memory(
        id=MemoryId(values["id"]),
        text=values["text"],
        kind=cast("MemoryKind", values["kind"]),
        state=cast("MemoryState", values["state"]),
        tier=cast("MemoryTier | None", values["tier"]),
        created_at=values["created_at"],
        last_used_at=values["last_used_at"],
        uses=values["uses"],
        author=values["author"],
        source=values["source"],
        cites=tuple(CitedPlace(*place) for place in json.loads(values["cites"])),
        supersedes=tuple(map(MemoryId, json.loads(values["supersedes"]))),
        superseded_by=None if superseded_by is None else MemoryId(superseded_by),
        forgotten_at=values["forgotten_at"],
    )
