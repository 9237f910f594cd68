"""The evidence that an index holds for some terms. What it does not hold yet is read from the files."""

from __future__ import annotations

import sqlite3
import threading
from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from pathlib import Path

from retinue.codebase.access import FileEntry
from retinue.codebase.codebase import Codebase
from retinue.codebase.index import file_records, postings
from retinue.codebase.index.database import corrupt_row_errors
from retinue.codebase.index.evidence import (
    FileDetail,
    count_terms,
    detail_of_text,
    searchable_text,
    size_or_zero,
)
from retinue.codebase.index.manifest import ManifestCheck, RootManifest
from retinue.codebase.index.postings import COUNT_BITS, COUNT_MASK
from retinue.codebase.parse import FOLDER_MARK, NAME_MARK, PathTerms, QueryTerms, find_path_terms
from retinue.core import Stop

# MERGED index_snapshot: The files of all roots in one row, under the numbers that a question knows them by.
#
# Shared by the questions of one state of an index: nobody may change what he gets from here.

MAX_CACHED_NUMBERS = 100_000
"""Of the counts that are kept: about 4 MB."""
_NUMBERS_PER_TERM = 10
"""Numbers that a term counts for besides those of its files."""


class IndexSnapshot:
    def __init__(self, held: Sequence[RootManifest]) -> None:
        self.ends = list(accumulate(len(one.paths) for one in held))
        """The number after each root's last."""
        self.paths = tuple(chain.from_iterable(one.paths for one in held))
        self.sizes = array("Q", chain.from_iterable(one.sizes for one in held))
        self.ids = array("I", chain.from_iterable(one.ids for one in held))
        self.numbers = {file: number for number, file in enumerate(self.ids) if file}
        """By the id that a file's words are stored under."""
        self.counts = TermCountCache()


class TermCountCache:
    """Term to file to how often, as questions looked them up: the next ones ask for the same common words.

    Full, it begins anew. Safe for several threads.
    """

    def __init__(self) -> None:
        self._by_term: dict[str, dict[int, int]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, term: str) -> dict[int, int] | None:
        return self._by_term.get(term)

    def keep(self, term: str, counts: dict[int, int]) -> None:
        with self._lock:
            if self._size >= MAX_CACHED_NUMBERS:
                self._by_term.clear()
                self._size = 0
            self._by_term[term] = counts
            self._size += _NUMBERS_PER_TERM + len(counts)


@lru_cache(maxsize=2)
def index_snapshot(_index: Path, held: tuple[RootManifest, ...]) -> IndexSnapshot:
    """One for each state of each of two indexes: another index may hold other words for the same files.

    Holdings are the same as long as they are one and the same object; see `holdings.kept`.
    """
    return IndexSnapshot(held)


class IndexEvidence:
    """Only while the transaction lasts in which the index is read."""

    def __init__(
        self,
        index: Path,
        database: sqlite3.Connection,
        codebase: Codebase,
        currents: Sequence[ManifestCheck],
        terms: Collection[str],
        stop: Stop,
    ) -> None:
        self._db = database
        self._terms = terms
        self._roots = codebase.roots
        self._layout = index_snapshot(index, tuple(one.holdings for one in currents))
        self.paths = self._layout.paths
        self.sizes = self._layout.sizes[:]
        self._loose = [
            start + place
            for start, one in zip([0, *self._layout.ends], currents, strict=False)
            for place in one.loose
        ]
        self._segments = postings.segment_ids(database)
        self.counts = {term: self._files_with(term) for term in terms}
        self._texts: dict[int, bytes] = {}
        with codebase.opener(stop) as opener:
            for file in self._loose:
                entry = self.entry(file)
                self.sizes[file] = size_or_zero(opener, entry)
                self._texts[file] = text = searchable_text(opener, entry) or b""
                for term, count in count_terms(text, self._asked).items():
                    self.counts[term][file] = count

    def _files_with(self, term: str) -> dict[int, int]:
        counts = self._layout.counts.get(term)
        if counts is None:
            counts = self._look_up(term)
            self._layout.counts.keep(term, counts)
        if self._loose:
            counts = counts.copy()
            for file in self._loose:
                counts.pop(file, None)
        return counts

    def _look_up(self, term: str) -> dict[int, int]:
        counts: dict[int, int] = {}
        numbers = self._layout.numbers
        for codes in postings.term_postings(self._db, self._segments, term):
            for code in codes:
                if (number := numbers.get(code >> COUNT_BITS)) is not None:
                    counts[number] = counts.get(number, 0) + (code & COUNT_MASK)
        return counts

    @cached_property
    def _asked(self) -> QueryTerms:
        """For what is read anew; mostly there is nothing."""
        return QueryTerms(self._terms)

    def entry(self, file: int) -> FileEntry:
        return FileEntry(self._roots[bisect_right(self._layout.ends, file)], self.paths[file])

    def path_words(self) -> PathTerms:
        found = {
            mark: {term: set(self._files_with(mark + term)) for term in self.counts}
            for mark in (NAME_MARK, FOLDER_MARK)
        }
        if loose := self._loose:
            of_loose = find_path_terms([self.paths[file] for file in loose], self._asked)
            for mark, places_of in zip((NAME_MARK, FOLDER_MARK), of_loose, strict=True):
                for term, places in places_of.items():
                    found[mark][term].update(loose[place] for place in places)
        return PathTerms(found[NAME_MARK], found[FOLDER_MARK])

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, FileDetail]:
        return {file: self._detail(file, terms) for file in files}

    def _detail(self, file: int, terms: Collection[str]) -> FileDetail:
        if file in self._texts:
            return detail_of_text(self.paths[file], self._texts[file], self._asked)
        query = f"SELECT {file_records.COLUMNS} FROM files WHERE id = ?"  # noqa: S608 - a constant
        row = self._db.execute(query, (self._layout.ids[file],)).fetchone()
        counts = {term: count for term in terms if (count := self.counts[term].get(file))}
        with corrupt_row_errors():
            return file_records.unpack_detail(row, counts)
