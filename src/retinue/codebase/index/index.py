"""Builds, updates and reads the index of some roots: one SQLite file in the data folder.

The index makes answers faster but never different. A question only reads it. Files that changed since the
last update are read from disk; once there are enough of them, an update indexes them. Several processes may
use the index at once: writers take turns, and each reader sees one state from beginning to end. If anything
is wrong with the index, a scan of the files answers instead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from retinue.codebase.access import FileEntry, Opener
from retinue.codebase.codebase import Codebase
from retinue.codebase.index import file_records, manifest, postings
from retinue.codebase.index.database import index_file, open_database
from retinue.codebase.index.evidence import searchable_text
from retinue.codebase.index.index_evidence import IndexEvidence
from retinue.codebase.index.manifest import MISSING_STAMP, ManifestCheck, RootManifest, stable_stamp
from retinue.codebase.index.postings import SegmentBuilder
from retinue.codebase.parse import Vocabulary
from retinue.core import Root, Stop

MAX_UNINDEXED_FILES, MAX_UNINDEXED_BYTES = 16, 64_000
"""Up to this size, changed files are read again for every question. Beyond it, an update pays off."""
BATCH_FILES, BATCH_BYTES = 100, 1_000_000
"""Limits of one batch of files. The whole batch goes through each step of indexing before the next step
starts: the step's code and tables stay in the processor's cache, which saves a sixth of a build. The texts of
a batch are in memory."""
MAX_VOCABULARY_WORDS = 200_000
"""Words whose terms are cached during an update. Limits the memory that a large build needs."""
_TABLES = manifest.TABLES + file_records.TABLES + postings.TABLES


class Index:
    """One open index. Not shared between threads."""

    def __init__(self, folder: Path, codebase: Codebase) -> None:
        """Open the index in `folder`, or create an empty one. Raises sqlite3.Error or OSError."""
        self._codebase = codebase
        self._roots = codebase.roots
        self._file = index_file(folder, codebase)
        self._db = open_database(self._file, _TABLES)

    def close(self) -> None:
        self._db.close()

    def mark_as_used(self) -> None:
        """Keep `remove_unused_indexes` from removing the index."""
        with suppress(OSError):
            os.utime(self._file)

    @contextmanager
    def reading(self) -> Generator[None]:
        """Open a read transaction: everything in the block reads the same state of the index."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def check_manifests(self, stop: Stop) -> list[ManifestCheck] | None:
        """Compare each root's manifest with the files on disk. Returns None if nothing is indexed yet."""
        if not (rows := self._manifest_rows()):
            return None
        manifests = manifest.load_manifests_cached(self._roots, rows)
        return [manifest.check_manifest(one, self._codebase, stop) for one in manifests]

    def evidence(self, checks: Sequence[ManifestCheck], terms: Collection[str], stop: Stop) -> IndexEvidence:
        """Return the evidence for some terms. Valid only inside `reading`."""
        return IndexEvidence(self._file, self._db, self._codebase, checks, terms, stop)

    def is_out_of_date(self, checks: Sequence[ManifestCheck]) -> bool:
        """Return whether an update would change anything."""
        return self._is_worth_update(checks) or any(check.files_may_differ for check in checks)

    def update_files(self, stop: Stop) -> None:
        """Index new and changed files, unless another process has just done so."""
        with self._writing():
            rows = self._manifest_rows()
            known = (
                manifest.load_manifests(self._roots, rows) if rows else map(RootManifest.empty, self._roots)
            )
            checks = [manifest.check_manifest(one, self._codebase, stop) for one in known]
            if not rows or self._is_worth_update(checks):
                self._index_changed_files(checks, stop)
            elif any(check.files_may_differ for check in checks):
                self._save_manifests(checks)

    @contextmanager
    def _writing(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _manifest_rows(self) -> tuple[manifest.ManifestRow, ...]:
        query = f"SELECT {manifest.COLUMNS} FROM holdings ORDER BY root"  # noqa: S608 - constants
        return tuple(self._db.execute(query).fetchall())

    def _is_worth_update(self, checks: Sequence[ManifestCheck]) -> bool:
        """Return whether so much changed that an update costs less than reading it for every question."""
        changed = [(root, position) for root, check in enumerate(checks) for position in check.changed]
        sizes = (
            _size_on_disk(self._roots[root].path / checks[root].manifest.paths[position])
            for root, position in changed
        )
        return len(changed) > MAX_UNINDEXED_FILES or sum(sizes) > MAX_UNINDEXED_BYTES

    def _index_changed_files(self, checks: Sequence[ManifestCheck], stop: Stop) -> None:
        """Store new and changed files, remove deleted ones, and save the manifests."""
        segment, vocabulary = SegmentBuilder(), file_records.new_vocabulary()
        with self._codebase.opener(stop) as opener:
            for root, check in zip(self._roots, checks, strict=True):
                for texts in _read_batches(opener, root, check, stop):
                    self._store_files(check.manifest, texts, segment, vocabulary)
                    if segment.is_full:
                        segment.write(self._db)
                        segment = SegmentBuilder()
                    if len(vocabulary) > MAX_VOCABULARY_WORDS:
                        vocabulary = file_records.new_vocabulary()
        segment.write(self._db)
        live = {file for check in checks for file in check.manifest.ids}
        removed = {file for (file,) in self._db.execute("SELECT id FROM files")} - live
        self._db.executemany("DELETE FROM files WHERE id = ?", [(file,) for file in removed])
        postings.compact_segments(self._db, live)
        self._save_manifests(checks)

    def _store_files(
        self,
        root_manifest: RootManifest,
        texts: Mapping[int, bytes],
        segment: SegmentBuilder,
        vocabulary: Vocabulary,
    ) -> None:
        """Store a batch of files under new ids. `texts` maps positions in the manifest to contents."""
        files = [(root_manifest.paths[position], data) for position, data in texts.items()]
        packed = file_records.pack_files(files, vocabulary)
        last = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'files'").fetchone()
        first = last[0] + 1 if last else 1
        ids = range(first, first + len(packed))
        self._db.executemany(
            f"INSERT INTO files (id, {file_records.COLUMNS}) VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - constants
            [(file, *one.row) for file, one in zip(ids, packed, strict=True)],
        )
        segment.add((file, one.words) for file, one in zip(ids, packed, strict=True))
        for position, file in zip(texts, ids, strict=True):
            root_manifest.ids[position] = file

    def _save_manifests(self, checks: Sequence[ManifestCheck]) -> None:
        self._db.executemany(
            "REPLACE INTO holdings VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(number, *check.manifest.pack()) for number, check in enumerate(checks)],
        )


def _read_batches(opener: Opener, root: Root, check: ManifestCheck, stop: Stop) -> Iterator[dict[int, bytes]]:
    """Yield the texts of the changed files by position, and update their sizes and stamps.

    A file's stamp is taken before the file is read, so that a later edit is noticed.
    """
    known = check.manifest
    texts: dict[int, bytes] = {}
    size = 0
    for position in check.changed:
        stop.check()
        path = known.paths[position]
        as_of_ns = time.time_ns()
        try:
            status = os.lstat(f"{root.path}{os.sep}{path}")
        except OSError:
            known.ids[position], known.sizes[position], known.stamps[position] = 0, 0, MISSING_STAMP
            continue
        known.sizes[position], known.stamps[position] = status.st_size, stable_stamp(status, as_of_ns)
        texts[position] = searchable_text(opener, FileEntry(root, path)) or b""
        size += len(texts[position])
        if len(texts) >= BATCH_FILES or size >= BATCH_BYTES:
            yield texts
            texts, size = {}, 0
    yield texts


def _size_on_disk(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
