"""An index of some roots in one SQLite file of the data folder. It saves work; it never changes an answer.

A question only reads it: what changed since is read from the files themselves, and an update takes it in
later, when it is enough to be worth it. Several processes may use it at once: writers take turns, readers
see one state from beginning to end. Whatever goes wrong with it, the answer comes from a scan instead.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from retinue.codebase import commit_index, file_records, manifest, segments
from retinue.codebase.codebase import Codebase
from retinue.codebase.commit_index import Chronicle
from retinue.codebase.entry import FileEntry
from retinue.codebase.freshness import GONE, settled
from retinue.codebase.history import History
from retinue.codebase.indexed import Indexed
from retinue.codebase.manifest import Current, Holdings, current
from retinue.codebase.opener import Opener
from retinue.codebase.scan import text_of
from retinue.codebase.segments import Segment
from retinue.codebase.terms import Vocabulary
from retinue.core import Root, Stop

VERSION = 4
"""Of the tables and of everything that is stored in them; another version is another file."""
LOOSE_FILES, LOOSE_BYTES = 16, 64_000
"""Up to so much is read anew at every question rather than taken in."""
UNUSED_DAYS = 30
BATCH_FILES, BATCH_BYTES = 100, 1_000_000
"""Up to so much is taken in together, step by step rather than file by file. Done for many in a row, a step
finds its code and tables near the processor, which saves a sixth of a build. The texts are in memory."""
MOST_WORDS = 200_000
"""Whose terms are remembered while files are taken in: what bounds the memory of a large build."""
_BUSY_SECONDS = 5.0
_PAGE_BYTES = 16_384
"""A row holds a file's words, so small pages would part almost every one."""
_TABLES = manifest.TABLES + file_records.TABLES + segments.TABLES + commit_index.TABLES


def _file(folder: Path, codebase: Codebase) -> Path:
    """Another root, another policy or another version is another file."""
    key = repr((VERSION, [str(root.path) for root in codebase.roots], codebase.policy))
    return folder / f"{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}.sqlite3"


def is_kept(folder: Path, codebase: Codebase) -> bool:
    """Whether one was made; it may be behind, or damaged."""
    return _file(folder, codebase).exists()


def discard_if_damaged(folder: Path, codebase: Codebase, *, certainly: bool = False) -> bool:
    """Whether it was; one that is merely busy is left alone. `certainly` it is if a row made no sense."""
    if not is_kept(folder, codebase):
        return False
    file = _file(folder, codebase)
    database = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    try:
        sound = not certainly and database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        sound = False
    finally:
        database.close()
    if not sound:
        _remove(file)
    return not sound


def forget_unused(folder: Path) -> None:
    """Remove the indexes that no question has used for long: roots come and go, worktrees above all."""
    before = time.time() - UNUSED_DAYS * 86_400
    for file in folder.glob("*.sqlite3"):
        with suppress(OSError):  # gone by now, or in use where files in use stay
            if file.stat().st_mtime < before:
                _remove(file)


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


class Index:
    """One open index. Not shared between threads."""

    def __init__(self, folder: Path, codebase: Codebase) -> None:
        """Raises sqlite3.Error or OSError if the folder cannot hold one."""
        self._codebase = codebase
        self._roots = codebase.roots
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _file(folder, codebase)
        self._db = sqlite3.connect(self._file, timeout=_BUSY_SECONDS, isolation_level=None)
        self._db.execute("PRAGMA synchronous=NORMAL")
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name='holdings'").fetchone():
            self._db.execute(f"PRAGMA page_size={_PAGE_BYTES}")
            self._db.execute("PRAGMA journal_mode=WAL")
            # At once: some tables without the others would look like an index for ever.
            self._db.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")

    def close(self) -> None:
        self._db.close()

    def mark_as_used(self) -> None:
        """It is kept for a while more."""
        with suppress(OSError):
            os.utime(self._file)

    def chronicles(self, stop: Stop) -> list[Chronicle]:
        """One for each root."""
        return [
            Chronicle(self._db, number, History(root.path, stop)) for number, root in enumerate(self._roots)
        ]

    def currents(self, stop: Stop) -> list[Current] | None:
        """What it holds of each root, and what is new since; None if it holds nothing yet."""
        if not (rows := self._rows()):
            return None
        return [current(one, self._codebase, stop) for one in manifest.kept(self._roots, rows)]

    def _rows(self) -> tuple[manifest.ManifestRow, ...]:
        query = f"SELECT {manifest.COLUMNS} FROM holdings ORDER BY root"  # noqa: S608 - constants
        return tuple(self._db.execute(query).fetchall())

    def evidence(self, currents: Sequence[Current], terms: Collection[str], stop: Stop) -> Indexed:
        """Only while `reading`."""
        return Indexed(self._file, self._db, self._codebase, currents, terms, stop)

    @contextmanager
    def reading(self) -> Generator[None]:
        """One state of the index from beginning to end."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def is_behind(self, currents: Sequence[Current], chronicles: Sequence[Chronicle]) -> bool:
        """Whether an update would find something to do."""
        return (
            self._is_much(currents)
            or any(one.moved for one in currents)
            or not all(one.is_whole() for one in chronicles)
        )

    def update_files(self, stop: Stop) -> None:
        """Take in what changed. Others may have done so in the meantime."""
        with self._writing():
            rows = self._rows()
            known = manifest.unpacked(self._roots, rows) if rows else map(Holdings.none, self._roots)
            currents = [current(one, self._codebase, stop) for one in known]
            if not rows or self._is_much(currents):
                self._take_in(currents, stop)
            elif any(one.moved for one in currents):
                self._keep([one.holdings for one in currents])

    def update_history(self, stop: Stop) -> None:
        """The messages before the commits' files, which cost git more, and a question needs few of them."""
        with self._writing():
            for one in self.chronicles(stop):
                one.renew_messages()
        with self._writing():
            for one in self.chronicles(stop):
                one.add_files()
        stop.check()

    def _is_much(self, currents: Sequence[Current]) -> bool:
        loose = [(root, place) for root, one in enumerate(currents) for place in one.loose]
        sizes = (
            _size(self._roots[root].path / currents[root].holdings.paths[place]) for root, place in loose
        )
        return len(loose) > LOOSE_FILES or sum(sizes) > LOOSE_BYTES

    def _take_in(self, currents: Sequence[Current], stop: Stop) -> None:
        segment, vocabulary = Segment(), file_records.vocabulary()
        with self._codebase.opener(stop) as opener:
            for root, one in zip(self._roots, currents, strict=True):
                for texts in _batches(opener, root, one, stop):
                    self._store(one.holdings, texts, segment, vocabulary)
                    if segment.is_full:
                        segment.write(self._db)
                        segment = Segment()
                    if len(vocabulary) > MOST_WORDS:
                        vocabulary = file_records.vocabulary()
        segment.write(self._db)
        live = {file for one in currents for file in one.holdings.ids}
        gone = {file for (file,) in self._db.execute("SELECT id FROM files")} - live
        self._db.executemany("DELETE FROM files WHERE id = ?", [(file,) for file in gone])
        segments.tidy(self._db, live)
        self._keep([one.holdings for one in currents])

    def _store(
        self, held: Holdings, texts: Mapping[int, bytes], segment: Segment, vocabulary: Vocabulary
    ) -> None:
        packed = file_records.pack([(held.paths[place], data) for place, data in texts.items()], vocabulary)
        last = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'files'").fetchone()
        first = last[0] + 1 if last else 1
        files = range(first, first + len(packed))
        self._db.executemany(
            f"INSERT INTO files (id, {file_records.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - constants
            [(file, *one.row) for file, one in zip(files, packed, strict=True)],
        )
        segment.add((file, one.said) for file, one in zip(files, packed, strict=True))
        for place, file in zip(texts, files, strict=True):
            held.ids[place] = file

    def _keep(self, held: Sequence[Holdings]) -> None:
        self._db.executemany(
            "REPLACE INTO holdings VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(number, *one.packed()) for number, one in enumerate(held)],
        )


def _batches(opener: Opener, root: Root, one: Current, stop: Stop) -> Iterator[dict[int, bytes]]:
    """The texts of the loose files by place; what was seen of each is noted before it is read."""
    held = one.holdings
    texts: dict[int, bytes] = {}
    size = 0
    for place in one.loose:
        stop.check()
        path = held.paths[place]
        as_of_ns = time.time_ns()
        try:
            status = os.lstat(f"{root.path}{os.sep}{path}")
        except OSError:
            held.ids[place], held.sizes[place], held.stamps[place] = 0, 0, GONE
            continue
        held.sizes[place], held.stamps[place] = status.st_size, settled(status, as_of_ns)
        texts[place] = text_of(opener, FileEntry(root, path)) or b""
        size += len(texts[place])
        if len(texts) >= BATCH_FILES or size >= BATCH_BYTES:
            yield texts
            texts, size = {}, 0
    yield texts


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
