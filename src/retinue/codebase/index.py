"""An index of some roots in one SQLite file of the data folder. It saves work; it never changes an answer.

Words are kept by SQLite's full-text engine, one row for each definition-sized chunk, split and stemmed
beforehand. A changed file gets a new number; its old rows stay behind and are not looked at, until they are
too many and the index is made anew. Several processes may use it at once: writers take turns, readers see
one state from beginning to end. Whatever goes wrong with it, the answer comes from a scan instead.
"""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.chronicle import Chronicle
from retinue.codebase.chronicle import tables as history_tables
from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.codebase.evidence import Detail
from retinue.codebase.freshness import Stamped, changed, stamp_at
from retinue.codebase.history import History
from retinue.codebase.ignore import IGNORE_FILES
from retinue.codebase.opener import Opener
from retinue.codebase.outline import MOST_CHUNKS, Chunk, outline
from retinue.codebase.scan import size_of, text_of
from retinue.codebase.sources import worth_reading
from retinue.codebase.terms import Vocabulary, words
from retinue.core.stop import Stop

VERSION = 1
"""Of the tables and of everything that is stored in them; another version is another file."""
_BITS = 13
"""A row's number is its file's number and, in the lowest bits, the chunk's."""
_FIRST_MASK = (1 << _BITS) - 1
_BATCH = 200
_BUSY_SECONDS = 5.0
assert MOST_CHUNKS < _FIRST_MASK  # noqa: S101 - a wrong constant must not reach a user

_TABLES = """
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT, root INTEGER, path TEXT, size INTEGER, modified INTEGER,
    changed INTEGER, inode INTEGER, bytes INTEGER, hash BLOB, places BLOB, names TEXT, imports TEXT);
CREATE UNIQUE INDEX IF NOT EXISTS file_paths ON files (root, path);
CREATE TABLE IF NOT EXISTS folders (
    root INTEGER, path TEXT, size INTEGER, modified INTEGER, changed INTEGER, inode INTEGER,
    PRIMARY KEY (root, path)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS chunk_words USING fts5(
    terms, content='', detail=full, columnsize=0, tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS chunk_places USING fts5vocab(chunk_words, instance);
"""


class Changes(NamedTuple):
    """What an update has to do."""

    whole: bool
    """The roots must be walked again."""
    files: list[tuple[int, str]]


def _file(folder: Path, codebase: Codebase) -> Path:
    """Another root, another policy or another version is another file."""
    key = repr((VERSION, [str(root.path) for root in codebase.roots], codebase.policy))
    return folder / f"{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}.sqlite3"


def discard_if_damaged(folder: Path, codebase: Codebase) -> bool:
    file = _file(folder, codebase)
    if not file.exists():
        return False
    database = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    try:
        sound = database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        sound = False
    finally:
        database.close()
    if not sound:
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)
    return not sound


class Index:
    """One open index. Not shared between threads."""

    def __init__(self, folder: Path, codebase: Codebase) -> None:
        """Raises sqlite3.Error or OSError if the folder cannot hold one."""
        self._codebase = codebase
        self._roots = [root.path for root in codebase.roots]
        folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(_file(folder, codebase), timeout=_BUSY_SECONDS, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name='chunk_places'").fetchone():
            self._db.executescript(_TABLES + "".join(map(history_tables, range(len(self._roots)))))

    def close(self) -> None:
        self._db.close()

    def chronicles(self, stop: Stop) -> list[Chronicle]:
        """One for each root."""
        return [Chronicle(self._db, root, History(path, stop)) for root, path in enumerate(self._roots)]

    def changes(self) -> Changes | None:
        """What changed since the last update; None if there was none yet. Looks at stamps, reads nothing."""
        folders = self._stamps("folders")
        if not folders:
            return None
        if changed(self._roots, folders):
            return Changes(True, [])
        files = changed(self._roots, self._stamps("files"))
        whole = any(path.rpartition("/")[2] in IGNORE_FILES for _, path in files)
        return Changes(whole, files)

    def _stamps(self, table: str) -> list[tuple[int, str, Stamped]]:
        rows = self._db.execute(f"SELECT root, path, size, modified, changed, inode FROM {table}")  # noqa: S608
        return [(row[0], row[1], row[2:]) for row in rows]

    def update(self, stop: Stop) -> None:
        """Make it true again: only files that changed are read. Others may have done so in the meantime."""
        with self._writing():
            if self._is_worn():
                self._empty()
            found = self.changes()
            if found is None or found.whole:
                self._walk(stop)
            elif found.files:
                self._renew(found.files, stop)
            for chronicle in self.chronicles(stop):
                if not chronicle.is_current():
                    chronicle.renew()

    def _is_worn(self) -> bool:
        """More rows of files that are gone than of files that are there."""
        given = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'files'").fetchone()
        live = self._db.execute("SELECT count(*) FROM files").fetchone()[0]
        return given is not None and given[0] > 2 * live + _BATCH

    def _empty(self) -> None:
        self._db.execute("DELETE FROM folders")
        self._db.execute("DELETE FROM files")
        self._db.execute("DELETE FROM sqlite_sequence WHERE name = 'files'")
        self._db.execute("INSERT INTO chunk_words (chunk_words) VALUES ('delete-all')")

    @contextmanager
    def _writing(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def reading(self) -> Generator[None]:
        """One state of the index from beginning to end."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def _walk(self, stop: Stop) -> None:
        numbers = {root: number for number, root in enumerate(self._codebase.roots)}
        # Stamped before it is looked into: what changes in between is seen again next time.
        excludes = [(number, ".git/info/exclude") for number in range(len(self._roots))]
        before = {place: stamp_at(self._roots[place[0]] / place[1]) for place in excludes}
        walked = self._codebase.files(stop)
        folders = {(numbers[one.root], one.path) for one in walked.folders}
        self._db.execute("DELETE FROM folders")
        stamps = {place: stamp_at(self._roots[place[0]] / place[1]) for place in folders} | before
        self._db.executemany(
            "INSERT INTO folders VALUES (?, ?, ?, ?, ?, ?)",
            [(*place, *stamp) for place, stamp in stamps.items()],
        )
        found = {(numbers[one.root], one.path) for one in walked.entries if worth_reading(one.path)}
        known = {(root, path): stamp for root, path, stamp in self._stamps("files")}
        self._db.executemany("DELETE FROM files WHERE root=? AND path=?", sorted(known.keys() - found))
        stale = changed(self._roots, [(*place, stamp) for place, stamp in known.items() if place in found])
        self._renew(sorted({*(found - known.keys()), *stale}), stop)

    def _renew(self, places: Sequence[tuple[int, str]], stop: Stop) -> None:
        vocabulary = Vocabulary()
        with self._codebase.opener(stop) as opener:
            for first in range(0, len(places), _BATCH):
                stop.check()
                rows: list[tuple[int, str]] = []
                for root, path in places[first : first + _BATCH]:
                    rows += self._rows_of(opener, root, path, vocabulary)
                self._db.executemany("INSERT INTO chunk_words (rowid, terms) VALUES (?, ?)", rows)

    def _rows_of(self, opener: Opener, root: int, path: str, vocabulary: Vocabulary) -> list[tuple[int, str]]:
        """Store what is known of one file, and give the rows of its words."""
        stamp = stamp_at(self._roots[root] / path)
        entry = Entry(self._codebase.roots[root], path)
        data = text_of(opener, entry) or b""
        digest = hashlib.blake2b(data, digest_size=16).digest()
        same = self._db.execute(
            "UPDATE files SET size=?, modified=?, changed=?, inode=? WHERE root=? AND path=? AND hash=?",
            (*stamp, root, path, digest),
        )
        if same.rowcount:
            return []
        self._db.execute("DELETE FROM files WHERE root=? AND path=?", (root, path))
        cut, imports = outline(path, data)
        places = array("I", [number for chunk in cut for number in (chunk.start, chunk.line)])
        places.append(len(data))
        names = "\n".join([chunk.name for chunk in cut])
        stored = self._db.execute(
            "INSERT INTO files"
            " (root, path, size, modified, changed, inode, bytes, hash, places, names, imports)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (root, path, *stamp, size_of(opener, entry), digest, places.tobytes(), names, "\n".join(imports)),
        )
        file = (stored.lastrowid or 0) << _BITS
        spaced, terms_of = words(data), vocabulary.__getitem__
        return [
            (file + number, " ".join(filter(None, map(terms_of, spaced[chunk.start : chunk.end].split()))))
            for number, chunk in enumerate(cut)
        ]

    def evidence(self, terms: Sequence[str]) -> Indexed:
        """Only while `reading`."""
        return Indexed(self._db.execute, self._codebase, terms)


class Indexed:
    """The evidence that an index holds for some terms."""

    def __init__(
        self, execute: Callable[..., sqlite3.Cursor], codebase: Codebase, terms: Sequence[str]
    ) -> None:
        self._execute = execute
        rows = execute("SELECT root, path, id, bytes FROM files ORDER BY root, path").fetchall()
        roots = codebase.roots
        self.entries = [Entry(roots[row[0]], row[1]) for row in rows]
        self.paths = [row[1] for row in rows]
        self.sizes = [row[3] for row in rows]
        self._ids = [row[2] for row in rows]
        self._numbers = {row[2]: number for number, row in enumerate(rows)}
        self._postings = {term: self._posting(term) for term in terms}
        self.counts = {term: self._count(rows) for term, rows in self._postings.items()}

    def _posting(self, term: str) -> list[tuple[int, int]]:
        """(row, how often), of files that are current and of those that are not."""
        return self._execute(
            "SELECT doc, count(*) FROM chunk_places WHERE term = ? GROUP BY doc", (term,)
        ).fetchall()

    def _count(self, posting: list[tuple[int, int]]) -> dict[int, int]:
        counts: dict[int, int] = {}
        numbers = self._numbers
        for row, count in posting:
            if (number := numbers.get(row >> _BITS)) is not None:
                counts[number] = counts.get(number, 0) + count
        return counts

    def details(self, files: Sequence[int]) -> dict[int, Detail]:
        hits: dict[int, dict[str, dict[int, int]]] = {self._ids[file]: {} for file in files}
        for term, posting in self._postings.items():
            for row, count in posting:
                if (of_file := hits.get(row >> _BITS)) is not None:
                    of_file.setdefault(term, {})[row & _FIRST_MASK] = count
        return {file: self._detail(self._ids[file], hits[self._ids[file]]) for file in files}

    def _detail(self, file: int, hits: dict[str, dict[int, int]]) -> Detail:
        query = "SELECT places, names, imports FROM files WHERE id = ?"
        places, names, imports = self._execute(query, (file,)).fetchone()
        numbers = array("I")
        numbers.frombytes(places)
        starts, lines = numbers[0::2], numbers[1::2]
        cut = list(map(Chunk, starts, starts[1:], lines, names.split("\n")))
        return Detail(cut, imports.split("\n") if imports else [], hits)
