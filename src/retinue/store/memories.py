"""The memories of one scope (a project, or the user) in an SQLite file of their own, `memories/NAME.db`.

Every method that writes is one transaction, and may wait for other processes: call it in a thread. What a
change replaces is kept for `UNDO_DAYS` days, so that it can be undone. Terms are searched with FTS5; the
caller says how a text becomes terms. Knows nothing of secrets, of projects and of how memories are ranked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.core import (
    Conflict,
    InvalidInput,
    LimitExceeded,
    Memory,
    MemoryId,
)
from retinue.store.data_folder import DataFolder
from retinue.store.database import Clock, Database, DatabaseFile, Transaction, insert_into
from retinue.store.memory_hygiene import DAY_S, UNDO_DAYS, HygieneResult, expired_memories, plan_hygiene
from retinue.store.memory_rows import (
    MIGRATIONS,
    memory_as_json,
    memory_as_row,
    memory_from_json,
    memory_from_row,
    text_digest,
)

MAX_MEMORIES = 200_000
"""Maximum number of memories of one scope, with the forgotten ones."""
TOUCH_WAIT_S = 0.2
"""How long the note that a memory was used waits for other processes."""
FOLDER = "memories"
HYGIENE = "hygiene"

POSTINGS = 3_000
"""Matches that one search ranks. FTS5 needs some microseconds for each, and common words match everything."""

TermsOf = Callable[[str], str]
"""Turns a text into its terms, separated by spaces."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A change that can be undone, or that was undone."""

    action: str
    at: float
    ids: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory that has some of the searched terms."""

    memory: Memory
    terms: Sequence[str]
    """The terms of its text, in order."""


class MemoryStore:
    """The memories of one scope. Safe to share between threads."""

    def __init__(self, database: Database, terms_of: TermsOf, terms_version: str = "1") -> None:
        """`terms_version` identifies the version of `terms_of`. A new one computes all terms again."""
        self._database = database
        self._terms_of = terms_of
        self._use_terms_version(terms_version)

    @classmethod
    def open(
        cls,
        data_dir: Path,
        name: str,
        terms_of: TermsOf,
        *,
        terms_version: str = "1",
        clock: Clock = time.time,
        lock_timeout_s: float = 10.0,
    ) -> MemoryStore:
        folder = DataFolder.prepare(data_dir)
        (folder.path / FOLDER).mkdir(mode=0o700, exist_ok=True)
        path = memory_file(folder.path, name)
        file = DatabaseFile(path, path.with_suffix(".lock"), MIGRATIONS, erase=True)
        return cls(Database(folder, clock, lock_timeout_s, file), terms_of, terms_version)

    def close(self) -> None:
        self._database.close()

    @property
    def now(self) -> float:
        return self._database.clock()

    # Reading

    def get(self, memory_id: str) -> Memory | None:
        """The memory with this id, also if it is superseded or forgotten."""
        row = self._database.row("SELECT * FROM memories WHERE id = ?", (memory_id,))
        return None if row is None else memory_from_row(row)

    def with_part(self, part: str, limit: int = 5) -> list[Memory]:
        """The memories whose ids begin or end with a text."""
        rows = self._database.rows(
            "SELECT * FROM memories WHERE ? IN (substr(id, 1, ?), substr(id, ?)) ORDER BY seq DESC LIMIT ?",
            (part, len(part), -len(part), limit),
        )
        return [memory_from_row(row) for row in rows]

    def all(self, *, gone: bool = False, limit: int = -1) -> list[Memory]:
        """The memories that can be recalled, the last used first. With `gone`, the others instead."""
        where = "forgotten_at IS NULL AND superseded_by IS NULL"
        rows = self._database.rows(
            f"SELECT * FROM memories WHERE {'NOT ' if gone else ''}({where})"
            " ORDER BY tier = 'hot' DESC, coalesce(last_used_at, created_at) DESC, seq DESC LIMIT ?",
            (limit,),
        )
        return [memory_from_row(row) for row in rows]

    def for_page(self, archived: int) -> tuple[list[Memory], list[Memory], int]:
        """The hot memories, the newest archived ones, and how many further ones are archived."""
        live = "forgotten_at IS NULL AND superseded_by IS NULL"
        hot = self._database.rows(f"SELECT * FROM memories WHERE {live} AND tier IS NOT 'archive'")
        newest = self._database.rows(
            f"SELECT * FROM memories WHERE {live} AND tier = 'archive' ORDER BY seq DESC LIMIT ?", (archived,)
        )
        left_out = self._number(f"SELECT count(*) FROM memories WHERE {live} AND tier = 'archive'") - len(
            newest
        )
        return [memory_from_row(each) for each in hot], [memory_from_row(each) for each in newest], left_out

    def estimate_count(self) -> int:
        """About how many memories there are. Counting them takes longer than all the rest of a search."""
        return self._number("SELECT max(id) FROM memory_terms_docsize")

    def count_of_run(self, source: str) -> int:
        """How many memories a run has written."""
        return self._number("SELECT count(*) FROM memories WHERE source = ?", source)

    def document_counts(self, terms: Iterable[str]) -> dict[str, int]:
        """How many memories have each term. A term that none has is missing."""
        wanted = list(terms)
        places = ", ".join("?" * len(wanted))
        rows = self._database.rows(
            f"SELECT term, doc FROM memory_vocabulary WHERE term IN ({places})", wanted
        )
        return {row["term"]: row["doc"] for row in rows}

    def search(self, counts: Mapping[str, int], limit: int) -> list[FoundMemory]:
        """The memories that match best by BM25. `counts` is what `document_counts` returned.

        Searches for the rarest terms, as many as have `POSTINGS` matches together. If even the rarest term
        has more, the newest memories with the two rarest terms, or with the rarest one, are returned.
        """
        rarest = sorted(counts, key=lambda term: (counts[term], term))
        chosen: list[str] = []
        matches = 0
        for term in rarest:
            matches += counts[term]
            if matches > POSTINGS:
                break
            chosen.append(term)
        select = (
            "SELECT memories.*, terms FROM memory_terms JOIN memories ON memories.seq = memory_terms.rowid"
            " WHERE memory_terms MATCH ? ORDER BY"
        )
        if chosen:
            match = " OR ".join(map(_quoted, chosen))
            rows = self._database.rows(f"{select} rank LIMIT ?", (match, limit))
        elif rarest:
            both = " AND ".join(map(_quoted, rarest[:2]))
            rows = self._database.rows(f"{select} memory_terms.rowid DESC LIMIT ?", (both, limit))
            if len(rows) < limit:
                rows += self._database.rows(
                    f"{select} memory_terms.rowid DESC LIMIT ?", (_quoted(rarest[0]), limit - len(rows))
                )
        else:
            rows = []
        found = {row["id"]: FoundMemory(memory_from_row(row), row["terms"].split()) for row in rows}
        return list(found.values())

    def last_change(self, memory_id: str | None = None) -> MemoryChange | None:
        """The last change that is not undone, of one memory or of any. Without an id, hygiene is left out."""
        batch = self._last_batch(memory_id)
        return None if batch is None else self._change(batch)

    @property
    def keeps_page(self) -> bool:
        """Whether somebody asked for a page of the memories, which is to be kept up to date."""
        return self._database.row("SELECT 1 FROM facts WHERE name = 'page'") is not None

    # Writing

    def keep_page(self) -> None:
        """Note that a page of the memories is to be kept up to date."""
        with self._database.write() as tx:
            tx.execute("INSERT OR REPLACE INTO facts VALUES ('page', 'kept')")

    def add(self, memory: Memory, *, action: str = "remember") -> Memory:
        """Store a memory. Those that it supersedes are never recalled from now on.

        If the same text is stored already, that memory is returned instead, with what the new one adds: it is
        confirmed if the new one is, and gets its places. A tentative one adds nothing to a confirmed one.
        """
        with self._database.write() as tx:
            batch = self._new_batch()
            return self._add(tx, batch, memory, action)

    def import_all(self, memories: Sequence[Memory]) -> int:
        """Store memories as one change, and return how many are new. Known ids and texts are left out."""
        added = 0
        with self._database.write() as tx:
            batch = self._new_batch()
            self._check_room(len(memories))
            for memory in memories:
                if self.get(memory.id) is None and (
                    not memory.is_live or self._find_same(memory.text) is None
                ):
                    self._put(tx, batch, None, memory, "import")
                    added += 1
        return added

    def replace(self, memory: Memory, *, action: str = "edit") -> Memory:
        """Replace a stored memory by a changed one with the same id."""
        with self._database.write() as tx:
            before = self._require(memory.id)
            same = self._find_same(memory.text)
            if memory.is_live and same is not None and same.id != memory.id:
                raise Conflict(
                    f"memory {same.id} says the same", hint="delete one of them: retinue memory delete ID"
                )
            self._put(tx, self._new_batch(), before, memory, action)
        return memory

    def forget(self, memory_ids: Sequence[MemoryId], *, action: str = "forget") -> list[Memory]:
        """Delete memories. `undo` restores them."""
        with self._database.write() as tx:
            batch = self._new_batch()
            found = [self._require(each) for each in memory_ids]
            for memory in found:
                if memory.forgotten_at is not None:
                    raise Conflict(f"memory {memory.id} is deleted already")
                self._put(tx, batch, memory, replace(memory, forgotten_at=tx.now), action)
        return found

    def remove(self, memory_ids: Sequence[MemoryId]) -> None:
        """Remove memories and what is known of their changes from the disk. This cannot be undone."""
        with self._database.write() as tx:
            for memory_id in memory_ids:
                self._require(memory_id)
                self._remove(tx, memory_id)
            tx.execute("INSERT INTO memory_terms (memory_terms) VALUES ('optimize')")  # drops their terms
        self._database.empty_log()

    def touch(self, memory_ids: Iterable[MemoryId]) -> None:
        """Note that memories were used now. Gives up soon if another process writes."""
        with self._database.write(TOUCH_WAIT_S) as tx:
            for memory_id in memory_ids:
                tx.execute(
                    "UPDATE memories SET last_used_at = ?, uses = uses + 1 WHERE id = ?", (tx.now, memory_id)
                )

    def undo(self, memory_id: str | None = None) -> MemoryChange | None:
        """Undo the last change of one memory, or of any; None if there is none to undo.

        Raises `Conflict` if another memory of that change was changed again later. What hygiene did since
        then is undone, too.
        """
        with self._database.write() as tx:
            batch = self._last_batch(memory_id)
            if batch is None:
                return None
            undone = self._change(batch)
            rows = self._database.rows("SELECT * FROM changes WHERE batch = ? ORDER BY seq DESC", (batch,))
            later = self._database.row(
                "SELECT id FROM changes WHERE undone = 0 AND batch > ? AND action <> ? AND id IN"
                " (SELECT id FROM changes WHERE batch = ?) LIMIT 1",
                (batch, HYGIENE, batch),
            )
            if later is not None:
                raise Conflict(
                    f"memory {later['id']} was changed later", hint=f"undo that first: undo {later['id']}"
                )
            for row in rows:  # first out of the index of texts, so that none is there twice meanwhile
                tx.execute(
                    "DELETE FROM memory_terms WHERE rowid = (SELECT seq FROM memories WHERE id = ?)",
                    (row["id"],),
                )
                tx.execute(
                    "UPDATE memories SET forgotten_at = coalesce(forgotten_at, 0) WHERE id = ?", (row["id"],)
                )
            for row in rows:
                if row["before"] is None:
                    tx.execute("DELETE FROM memories WHERE id = ?", (row["id"],))
                else:
                    before = memory_from_json(json.loads(row["before"]))
                    # Restoring counts as using, or the next hygiene run would forget it again.
                    self._write(tx, replace(before, last_used_at=tx.now))
            tx.execute(
                "UPDATE changes SET undone = 1 WHERE batch >= ? AND id IN"
                " (SELECT id FROM changes WHERE batch = ?)",
                (batch, batch),
            )
        return undone

    def hygiene(self, *, dry_run: bool = False) -> HygieneResult:
        """Archive what is unused for long, forget what is unused for longer, and archive what is too much.

        A dry run changes nothing.
        """
        if dry_run:
            return plan_hygiene(self._database, self.now)
        with self._database.write() as tx:
            plan = plan_hygiene(self._database, tx.now)
            for memory_id in plan.backfilled:
                tx.execute(
                    "UPDATE memories SET tier = coalesce(tier, 'hot'),"
                    " last_used_at = coalesce(last_used_at, created_at) WHERE id = ?",
                    (memory_id,),
                )
            batch = self._new_batch()
            for memory_id in plan.archived:
                memory = self._require(memory_id)
                self._put(tx, batch, memory, replace(memory, tier="archive"), HYGIENE)
            for memory_id in plan.forgotten:
                memory = self._require(memory_id)
                self._put(tx, batch, memory, replace(memory, forgotten_at=tx.now), HYGIENE)
            for memory_id in expired_memories(self._database, tx.now):
                self._remove(tx, memory_id)
            tx.execute("DELETE FROM changes WHERE at < ?", (tx.now - UNDO_DAYS * DAY_S,))
        return plan

    def _add(self, tx: Transaction, batch: int, memory: Memory, action: str) -> Memory:
        same = self._find_same(memory.text)
        for each in memory.supersedes:
            old = self._require(each)
            if old.superseded_by is not None or old.forgotten_at is not None:
                raise Conflict(
                    f"memory {each} is gone already", hint="recall again: it was deleted or corrected"
                )
            if same is not None and same.id == each:
                raise InvalidInput(f"memory {each} says the same", hint="write what the correction changes")
            gone = replace(old, superseded_by=memory.id, tier="archive", last_used_at=tx.now)
            self._put(tx, batch, old, gone, action)
        if same is not None:
            supersedes = (*same.supersedes, *memory.supersedes)
            knows_less = (same.state, memory.state) == ("confirmed", "tentative")
            merged = replace(
                same,
                state=same.state if knows_less else memory.state,
                tier="hot",
                last_used_at=tx.now,
                cites=same.cites if knows_less else memory.cites or same.cites,
                supersedes=tuple(dict.fromkeys(supersedes)),
            )
            for each in memory.supersedes:
                tx.execute("UPDATE memories SET superseded_by = ? WHERE id = ?", (same.id, each))
            self._put(tx, batch, same, merged, action)
            return merged
        self._check_room()
        self._put(tx, batch, None, memory, action)
        return memory

    def _check_room(self, adding: int = 1) -> None:
        if self._number("SELECT max(seq) FROM memories") + adding <= MAX_MEMORIES:
            return  # counting all of them takes long
        wanted = self._number("SELECT count(*) FROM memories") + adding
        if wanted > MAX_MEMORIES:
            raise LimitExceeded(
                "memories", wanted, MAX_MEMORIES, hint="delete some: retinue memory delete ID"
            )

    def _find_same(self, text: str) -> Memory | None:
        row = self._database.row(
            "SELECT * FROM memories WHERE digest = ? AND forgotten_at IS NULL AND superseded_by IS NULL",
            (text_digest(text),),
        )
        return None if row is None else memory_from_row(row)

    def _require(self, memory_id: str) -> Memory:
        memory = self.get(memory_id)
        if memory is None:
            raise InvalidInput(f"no memory has the id {memory_id}", hint="recall or list shows the ids")
        return memory

    def _new_batch(self) -> int:
        """A number higher than that of any change so far, including removed ones."""
        return self._number("SELECT seq FROM sqlite_sequence WHERE name = 'changes'") + 1

    def _number(self, sql: str, *values: object) -> int:
        """The only value of a query; 0 if there is none."""
        row = self._database.row(sql, values)
        return 0 if row is None else row[0] or 0

    def _put(self, tx: Transaction, batch: int, before: Memory | None, after: Memory, action: str) -> None:
        """Write a memory, its terms, and the change."""
        kept = None if before is None else json.dumps(memory_as_json(before), ensure_ascii=False)
        change = {"batch": batch, "at": tx.now, "action": action, "id": after.id, "before": kept}
        tx.execute(insert_into("changes", change), change)
        self._write(tx, after)

    def _write(self, tx: Transaction, memory: Memory) -> None:
        values = memory_as_row(memory)
        names = list(values)
        tx.execute(
            f"INSERT INTO memories ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"
            f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names[1:])}",
            values,
        )
        seq: int = tx.execute("SELECT seq FROM memories WHERE id = ?", (memory.id,)).fetchone()[0]
        tx.execute("DELETE FROM memory_terms WHERE rowid = ?", (seq,))
        if memory.is_live:
            terms = self._terms_of(memory.text)
            tx.execute("INSERT INTO memory_terms (rowid, terms) VALUES (?, ?)", (seq, terms))

    def _remove(self, tx: Transaction, memory_id: str) -> None:
        tx.execute(
            "DELETE FROM memory_terms WHERE rowid = (SELECT seq FROM memories WHERE id = ?)", (memory_id,)
        )
        tx.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
        tx.execute("DELETE FROM changes WHERE id = ?", (memory_id,))

    def _last_batch(self, memory_id: str | None) -> int | None:
        oldest = self.now - UNDO_DAYS * DAY_S
        if memory_id is None:
            row = self._database.row(
                "SELECT max(batch) AS n FROM changes WHERE undone = 0 AND action <> ? AND at >= ?",
                (HYGIENE, oldest),
            )
        else:
            row = self._database.row(
                "SELECT max(batch) AS n FROM changes WHERE undone = 0 AND id = ? AND at >= ?",
                (memory_id, oldest),
            )
        return None if row is None else row["n"]

    def _change(self, batch: int) -> MemoryChange:
        rows = self._database.rows("SELECT * FROM changes WHERE batch = ? ORDER BY seq", (batch,))
        ids = tuple(dict.fromkeys(MemoryId(row["id"]) for row in rows))
        return MemoryChange(rows[0]["action"], rows[0]["at"], ids)

    def _use_terms_version(self, version: str) -> None:
        """Compute all terms again if another version of `terms_of` made them."""
        row = self._database.row("SELECT value FROM facts WHERE name = 'terms'")
        if row is not None and row["value"] == version:
            return
        with self._database.write() as tx:
            tx.execute("DELETE FROM memory_terms")
            for memory in self.all():
                self._write(tx, memory)
            tx.execute("INSERT OR REPLACE INTO facts VALUES ('terms', ?)", (version,))


def memory_file(data_dir: Path, name: str) -> Path:
    """The SQLite file of a scope. `name` is `user` or the key of a project."""
    return data_dir / FOLDER / f"{name}.db"


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
