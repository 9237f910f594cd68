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

from retinue.codebase.access import FileEntry, Opener
from retinue.codebase.codebase import Codebase
from retinue.codebase.index import commit_index, file_records, manifest, postings
from retinue.codebase.index.commit_index import CommitIndex
from retinue.codebase.index.evidence import searchable_text
from retinue.codebase.index.history import GitHistory
from retinue.codebase.index.index_evidence import IndexEvidence
from retinue.codebase.index.manifest import (
    MISSING_STAMP,
    ManifestCheck,
    RootManifest,
    check_manifest,
    stable_stamp,
)
from retinue.codebase.index.postings import SegmentBuilder
from retinue.codebase.parse import Vocabulary
from retinue.core import Root, Stop

VERSION = 4
"""Of the tables and of everything that is stored in them; another version is another file."""
MAX_UNINDEXED_FILES, MAX_UNINDEXED_BYTES = 16, 64_000
"""Up to so much is read anew at every question rather than taken in."""
UNUSED_DAYS = 30
BATCH_FILES, BATCH_BYTES = 100, 1_000_000
"""Up to so much is taken in together, step by step rather than file by file. Done for many in a row, a step
finds its code and tables near the processor, which saves a sixth of a build. The texts are in memory."""
MAX_VOCABULARY_WORDS = 200_000
"""Whose terms are remembered while files are taken in: what bounds the memory of a large build."""
_BUSY_SECONDS = 5.0
_PAGE_BYTES = 16_384
"""A row holds a file's words, so small pages would part almost every one."""
_TABLES = manifest.TABLES + file_records.TABLES + postings.SEGMENT_TABLES + commit_index.TABLES


def _index_file(folder: Path, codebase: Codebase) -> Path:
    """Another root, another policy or another version is another file."""
    key = repr((VERSION, [str(root.path) for root in codebase.roots], codebase.policy))
    return folder / f"{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}.sqlite3"


def index_exists(folder: Path, codebase: Codebase) -> bool:
    """Whether one was made; it may be behind, or damaged."""
    return _index_file(folder, codebase).exists()


def discard_if_damaged(folder: Path, codebase: Codebase, *, certainly: bool = False) -> bool:
    """Whether it was; one that is merely busy is left alone. `certainly` it is if a row made no sense."""
    if not index_exists(folder, codebase):
        return False
    file = _index_file(folder, codebase)
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
        _remove_index(file)
    return not sound


def remove_unused_indexes(folder: Path) -> None:
    """Remove the indexes that no question has used for long: roots come and go, worktrees above all."""
    before = time.time() - UNUSED_DAYS * 86_400
    for file in folder.glob("*.sqlite3"):
        with suppress(OSError):  # gone by now, or in use where files in use stay
            if file.stat().st_mtime < before:
                _remove_index(file)


def _remove_index(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


class Index:
    """One open index. Not shared between threads."""

    def __init__(self, folder: Path, codebase: Codebase) -> None:
        """Raises sqlite3.Error or OSError if the folder cannot hold one."""
        self._codebase = codebase
        self._roots = codebase.roots
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _index_file(folder, codebase)
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

    def chronicles(self, stop: Stop) -> list[CommitIndex]:
        """One for each root."""
        return [
            CommitIndex(self._db, number, GitHistory(root.path, stop))
            for number, root in enumerate(self._roots)
        ]

    def currents(self, stop: Stop) -> list[ManifestCheck] | None:
        """What it holds of each root, and what is new since; None if it holds nothing yet."""
        if not (rows := self._rows()):
            return None
        return [
            check_manifest(one, self._codebase, stop)
            for one in manifest.load_manifests_cached(self._roots, rows)
        ]

    def _rows(self) -> tuple[manifest.ManifestRow, ...]:
        query = f"SELECT {manifest.COLUMNS} FROM holdings ORDER BY root"  # noqa: S608 - constants
        return tuple(self._db.execute(query).fetchall())

    def evidence(
        self, currents: Sequence[ManifestCheck], terms: Collection[str], stop: Stop
    ) -> IndexEvidence:
        """Only while `reading`."""
        return IndexEvidence(self._file, self._db, self._codebase, currents, terms, stop)

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

    def is_behind(self, currents: Sequence[ManifestCheck], chronicles: Sequence[CommitIndex]) -> bool:
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
            known = (
                manifest.load_manifests(self._roots, rows) if rows else map(RootManifest.none, self._roots)
            )
            currents = [check_manifest(one, self._codebase, stop) for one in known]
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

    def _is_much(self, currents: Sequence[ManifestCheck]) -> bool:
        loose = [(root, place) for root, one in enumerate(currents) for place in one.loose]
        sizes = (
            _size_on_disk(self._roots[root].path / currents[root].holdings.paths[place])
            for root, place in loose
        )
        return len(loose) > MAX_UNINDEXED_FILES or sum(sizes) > MAX_UNINDEXED_BYTES

    def _take_in(self, currents: Sequence[ManifestCheck], stop: Stop) -> None:
        segment, vocabulary = SegmentBuilder(), file_records.new_vocabulary()
        with self._codebase.opener(stop) as opener:
            for root, one in zip(self._roots, currents, strict=True):
                for texts in _read_batches(opener, root, one, stop):
                    self._store(one.holdings, texts, segment, vocabulary)
                    if segment.is_full:
                        segment.write(self._db)
                        segment = SegmentBuilder()
                    if len(vocabulary) > MAX_VOCABULARY_WORDS:
                        vocabulary = file_records.new_vocabulary()
        segment.write(self._db)
        live = {file for one in currents for file in one.holdings.ids}
        gone = {file for (file,) in self._db.execute("SELECT id FROM files")} - live
        self._db.executemany("DELETE FROM files WHERE id = ?", [(file,) for file in gone])
        postings.compact_segments(self._db, live)
        self._keep([one.holdings for one in currents])

    def _store(
        self, held: RootManifest, texts: Mapping[int, bytes], segment: SegmentBuilder, vocabulary: Vocabulary
    ) -> None:
        packed = file_records.pack_files(
            [(held.paths[place], data) for place, data in texts.items()], vocabulary
        )
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

    def _keep(self, held: Sequence[RootManifest]) -> None:
        self._db.executemany(
            "REPLACE INTO holdings VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(number, *one.packed()) for number, one in enumerate(held)],
        )


def _read_batches(opener: Opener, root: Root, one: ManifestCheck, stop: Stop) -> Iterator[dict[int, bytes]]:
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
            held.ids[place], held.sizes[place], held.stamps[place] = 0, 0, MISSING_STAMP
            continue
        held.sizes[place], held.stamps[place] = status.st_size, stable_stamp(status, as_of_ns)
        texts[place] = searchable_text(opener, FileEntry(root, path)) or b""
        size += len(texts[place])
        if len(texts) >= BATCH_FILES or size >= BATCH_BYTES:
            yield texts
            texts, size = {}, 0
    yield texts


def _size_on_disk(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
