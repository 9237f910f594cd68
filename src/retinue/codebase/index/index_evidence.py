"""Evidence from an index. Files that changed since the last update are read from disk.

`IndexSnapshot` caches everything that depends only on the state of the index, for the next questions.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path

from retinue.codebase.access import FileEntry, Opener
from retinue.codebase.codebase import Codebase
from retinue.codebase.index import file_records, postings
from retinue.codebase.index.database import corrupt_row_errors
from retinue.codebase.index.evidence import (
    FileDetail,
    parse_detail,
    searchable_text,
    size_or_zero,
)
from retinue.codebase.index.manifest import ManifestCheck, RootManifest
from retinue.codebase.index.postings import COUNT_BITS, COUNT_MASK
from retinue.codebase.parse import FOLDER_MARK, NAME_MARK, PathTerms, QueryTerms, find_path_terms
from retinue.core import Stop

MAX_CACHED_NUMBERS = 100_000
"""Size of a `TermCountCache`: about 4 MB."""
_NUMBERS_PER_TERM = 10
"""Size that each term adds to the cache besides its counts."""


class IndexEvidence:
    """The evidence for some terms. Valid only inside the transaction that reads the index."""

    def __init__(
        self,
        index: Path,
        database: sqlite3.Connection,
        codebase: Codebase,
        checks: Sequence[ManifestCheck],
        terms: Collection[str],
        stop: Stop,
    ) -> None:
        self._db = database
        self.query = QueryTerms(terms)
        self.codebase = codebase
        self.stop = stop
        self._roots = codebase.roots
        self._snapshot = index_snapshot(index, tuple(check.manifest for check in checks))
        self.paths = self._snapshot.paths
        self.sizes = self._snapshot.sizes[:]
        self._changed = [
            start + position
            for start, check in zip([0, *self._snapshot.ends], checks, strict=False)
            for position in check.changed
        ]
        self._segments = postings.segment_ids(database)
        self.counts = {term: self._counts_in_files(term) for term in terms}
        self._changed_texts: dict[int, bytes] = {}
        with codebase.opener(stop) as opener:
            for file in self._changed:
                entry = self.entry(file)
                self.sizes[file] = size_or_zero(opener, entry)
                self._changed_texts[file] = text = searchable_text(opener, entry) or b""
                for term, counts in self.query.count_terms(text).items():
                    self.counts[term][file] = counts[0]

    def entry(self, file: int) -> FileEntry:
        return FileEntry(self._roots[bisect_right(self._snapshot.ends, file)], self.paths[file])

    def path_terms(self) -> PathTerms:
        found = {
            mark: {term: set(self._counts_in_files(mark + term)) for term in self.counts}
            for mark in (NAME_MARK, FOLDER_MARK)
        }
        if changed := self._changed:
            of_changed = find_path_terms([self.paths[file] for file in changed], self.query)
            for mark, positions_by_term in zip((NAME_MARK, FOLDER_MARK), of_changed, strict=True):
                for term, positions in positions_by_term.items():
                    found[mark][term].update(changed[position] for position in positions)
        return PathTerms(found[NAME_MARK], found[FOLDER_MARK])

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, FileDetail]:
        return {file: self._detail(file, terms) for file in files}

    def text(self, opener: Opener, file: int) -> bytes | None:
        return searchable_text(opener, self.entry(file))

    def _detail(self, file: int, terms: Collection[str]) -> FileDetail:
        """Return the chunks of one file, from the index or, if it changed, from its text."""
        if file in self._changed_texts:
            return parse_detail(self.paths[file], self._changed_texts[file], self.query)
        query = f"SELECT {file_records.COLUMNS} FROM files WHERE id = ?"  # noqa: S608 - a constant
        row = self._db.execute(query, (self._snapshot.ids[file],)).fetchone()
        counts = {term: count for term in terms if (count := self.counts[term].get(file))}
        with corrupt_row_errors():
            return file_records.unpack_detail(row, counts)

    def _counts_in_files(self, term: str) -> dict[int, int]:
        """Return the count of a term in each indexed file, without the changed files."""
        counts = self._snapshot.counts.get(term)
        if counts is None:
            counts = self._read_counts(term)
            self._snapshot.counts.add(term, counts)
        if self._changed:
            counts = counts.copy()
            for file in self._changed:
                counts.pop(file, None)
        return counts

    def _read_counts(self, term: str) -> dict[int, int]:
        """Read the count of a term in each indexed file."""
        counts: dict[int, int] = {}
        numbers = self._snapshot.numbers
        for segment in self._segments:
            for code in postings.read_postings(self._db, segment, term):
                if (number := numbers.get(code >> COUNT_BITS)) is not None:
                    counts[number] = counts.get(number, 0) + (code & COUNT_MASK)
        return counts


class IndexSnapshot:
    """The files of all roots, numbered in the order that questions use.

    All questions to one state of the index share it, so callers must not modify it.
    """

    def __init__(self, manifests: Sequence[RootManifest]) -> None:
        self.ends = list(accumulate(len(one.paths) for one in manifests))
        """For each root, the number after its last file."""
        self.paths = tuple(chain.from_iterable(one.paths for one in manifests))
        self.sizes = array("Q", chain.from_iterable(one.sizes for one in manifests))
        self.ids = array("I", chain.from_iterable(one.ids for one in manifests))
        self.numbers = {file: number for number, file in enumerate(self.ids) if file}
        """Maps the id under which a file's words are stored to the number of the file."""
        self.counts = TermCountCache()


class TermCountCache:
    """Cache of term counts per file, which questions share; cleared when it is full. Thread-safe."""

    def __init__(self) -> None:
        self._by_term: dict[str, dict[int, int]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, term: str) -> dict[int, int] | None:
        return self._by_term.get(term)

    def add(self, term: str, counts: dict[int, int]) -> None:
        with self._lock:
            if self._size >= MAX_CACHED_NUMBERS:
                self._by_term.clear()
                self._size = 0
            self._by_term[term] = counts
            self._size += _NUMBERS_PER_TERM + len(counts)


@lru_cache(maxsize=2)
def index_snapshot(_index: Path, manifests: tuple[RootManifest, ...]) -> IndexSnapshot:
    """Return the snapshot of an index. The two latest snapshots are cached.

    Manifests compare by identity, and `load_manifests_cached` returns the same objects for the same state.
    `_index` is part of the key because two indexes may store different words for the same files.
    """
    return IndexSnapshot(manifests)
