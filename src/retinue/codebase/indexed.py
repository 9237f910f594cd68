"""The evidence that an index holds for some terms. What it does not hold yet is read from the files."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

from retinue.codebase import file_records, segments
from retinue.codebase.codebase import Codebase
from retinue.codebase.damage import making_sense
from retinue.codebase.entry import FileEntry
from retinue.codebase.evidence import Detail
from retinue.codebase.index_snapshot import layout_of
from retinue.codebase.manifest import Current
from retinue.codebase.path_words import FOLDER, NAME, PathWords, path_words
from retinue.codebase.postings import COUNT, COUNT_BITS
from retinue.codebase.scan import counts_in, detail_of, size_of, text_of
from retinue.codebase.terms import QueryTerms
from retinue.core import Stop


class Indexed:
    """Only while the transaction lasts in which the index is read."""

    def __init__(
        self,
        index: Path,
        database: sqlite3.Connection,
        codebase: Codebase,
        currents: Sequence[Current],
        terms: Collection[str],
        stop: Stop,
    ) -> None:
        self._db = database
        self._terms = terms
        self._roots = codebase.roots
        self._layout = layout_of(index, tuple(one.holdings for one in currents))
        self.paths = self._layout.paths
        self.sizes = self._layout.sizes[:]
        self._loose = [
            start + place
            for start, one in zip([0, *self._layout.ends], currents, strict=False)
            for place in one.loose
        ]
        self._segments = segments.numbers(database)
        self.counts = {term: self._files_with(term) for term in terms}
        self._texts: dict[int, bytes] = {}
        with codebase.opener(stop) as opener:
            for file in self._loose:
                entry = self.entry(file)
                self.sizes[file] = size_of(opener, entry)
                self._texts[file] = text = text_of(opener, entry) or b""
                for term, count in counts_in(text, self._asked).items():
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
        for codes in segments.posting(self._db, self._segments, term):
            for code in codes:
                if (number := numbers.get(code >> COUNT_BITS)) is not None:
                    counts[number] = counts.get(number, 0) + (code & COUNT)
        return counts

    @cached_property
    def _asked(self) -> QueryTerms:
        """For what is read anew; mostly there is nothing."""
        return QueryTerms(self._terms)

    def entry(self, file: int) -> FileEntry:
        return FileEntry(self._roots[bisect_right(self._layout.ends, file)], self.paths[file])

    def path_words(self) -> PathWords:
        found = {
            mark: {term: set(self._files_with(mark + term)) for term in self.counts}
            for mark in (NAME, FOLDER)
        }
        if loose := self._loose:
            of_loose = path_words([self.paths[file] for file in loose], self._asked)
            for mark, places_of in zip((NAME, FOLDER), of_loose, strict=True):
                for term, places in places_of.items():
                    found[mark][term].update(loose[place] for place in places)
        return PathWords(found[NAME], found[FOLDER])

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, Detail]:
        return {file: self._detail(file, terms) for file in files}

    def _detail(self, file: int, terms: Collection[str]) -> Detail:
        if file in self._texts:
            return detail_of(self.paths[file], self._texts[file], self._asked)
        query = f"SELECT {file_records.COLUMNS} FROM files WHERE id = ?"  # noqa: S608 - a constant
        row = self._db.execute(query, (self._layout.ids[file],)).fetchone()
        counts = {term: count for term in terms if (count := self.counts[term].get(file))}
        with making_sense():
            return file_records.unpack(row, counts)
