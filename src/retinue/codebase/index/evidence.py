"""Defines the evidence that files give for one question, and collects it by scanning the files.

There are two sources of evidence: `ScanEvidence` reads the files, and `IndexEvidence` reads the index. Both
must give exactly the same numbers, because the ranker cannot tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from retinue.codebase.access import FileEntry, Opener
from retinue.codebase.codebase import Codebase
from retinue.codebase.parse import (
    MAX_SEARCHED_BYTES,
    ParsedQuestion,
    PathTerms,
    QueryTerms,
    WordSpans,
    chunk_columns,
    find_path_terms,
    has_searchable_text,
)
from retinue.codebase.search import Ripgrep, argument_batches
from retinue.core import LimitExceeded, PathDenied, PathMissing, Stop


@dataclass(frozen=True, slots=True)
class FileDetail:
    """The chunks of one file, as parallel columns, because a question needs few fields of few chunks."""

    starts: Sequence[int]
    """The first byte of each chunk, followed by the end of the last one."""
    lines: Sequence[int]
    """The line that names each chunk."""
    names: Sequence[str]
    hits: dict[str, dict[int, int]]
    """For each term, its count in each chunk that contains it."""
    name_terms: Mapping[str, str]
    """For each defined name, its distinct terms, separated by spaces; may be empty for a name without a term
    of the question."""


class Evidence(Protocol):
    """The input of the ranker for all files. A file is identified by its position in `paths`."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that an answer may name, in the order of the roots, then by path."""
        ...

    def entry(self, file: int) -> FileEntry: ...

    @property
    def sizes(self) -> Sequence[int]:
        """Bytes on disk, one for each path."""
        ...

    @property
    def counts(self) -> dict[str, dict[int, int]]:
        """For each term of the question, its count in each file that contains it."""
        ...

    def path_terms(self) -> PathTerms:
        """Return the files that have a term of the question in their path."""
        ...

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, FileDetail]:
        """Return the chunks of some files, with hits for at least these terms."""
        ...

    def text(self, opener: Opener, file: int) -> bytes | None:
        """Return the text of a file as UTF-8, or None if it cannot be read."""
        ...

    @property
    def query(self) -> QueryTerms:
        """Looks up the terms of the question in words of a text."""
        ...

    @property
    def codebase(self) -> Codebase: ...

    @property
    def stop(self) -> Stop: ...


MAX_UNFILTERED_FILES, MAX_UNFILTERED_BYTES = 1_000, 8 << 20
"""A scan of so many files and bytes does not start ripgrep. Most of them match, and have to be read anyway:
leaving out the others saved less than ripgrep costs."""
MAX_KEPT_BYTES = 8 << 20
"""How much text a scan keeps, so that it reads a file only once."""


def searchable_entries(codebase: Codebase, stop: Stop) -> list[FileEntry]:
    """Return the files that an answer may name, in the order of the roots, then by path."""
    entries = [entry for entry in codebase.files(stop).entries if has_searchable_text(entry.path)]
    stop.check()  # a walk that the deadline cut short found only some of the files
    return entries


class ScanEvidence:
    """Evidence without an index: reads the files for one question.

    In a large codebase, ripgrep finds the files that may contain a term; the others are not opened.
    """

    def __init__(
        self,
        codebase: Codebase,
        entries: Sequence[FileEntry],
        question: ParsedQuestion,
        ripgrep: Callable[[], Ripgrep | None],
        stop: Stop,
    ) -> None:
        """`entries` are those of `searchable_entries`. `ripgrep` is called only if it is needed."""
        self.codebase = codebase
        self.stop = stop
        terms = question.searched_terms
        self.query = QueryTerms(terms, question.kept_stop_terms)
        self._entries = entries
        self.paths = tuple(entry.path for entry in entries)
        self.counts: dict[str, dict[int, int]] = {term: {} for term in terms}
        self._words: dict[int, tuple[int, WordSpans | None]] = {}
        """For each file that may match, its size and where its words with terms are."""
        self._texts: dict[int, bytes] = {}
        self._kept_bytes = 0
        with codebase.opener(stop) as opener:
            self.sizes: list[int] = []
            for entry in self._entries:
                stop.check()
                self.sizes.append(size_or_zero(opener, entry))
            for file in self._files_to_read(terms, ripgrep):
                stop.check()
                if (data := self.text(opener, file)) is not None:
                    spans = self.query.find_words(data)
                    self._words[file] = len(data), spans
                    for term, counts in self.query.count_terms(data, spans=spans).items():
                        self.counts[term][file] = counts[0]

    def entry(self, file: int) -> FileEntry:
        return self._entries[file]

    def path_terms(self) -> PathTerms:
        return find_path_terms(self.paths, self.query)

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, FileDetail]:
        found: dict[int, FileDetail] = {}
        with self.codebase.opener(self.stop) as opener:
            for file in files:
                self.stop.check()
                data = self.text(opener, file) or b""
                size, spans = self._words.get(file, (0, None))
                known = spans if size == len(data) else None
                found[file] = parse_detail(self.paths[file], data, self.query, known)
        return found

    def text(self, opener: Opener, file: int) -> bytes | None:
        if (text := self._texts.get(file)) is None:
            text = searchable_text(opener, self._entries[file])
            if text is not None and self._kept_bytes + len(text) <= MAX_KEPT_BYTES:
                self._texts[file] = text
                self._kept_bytes += len(text)
        return text

    def _files_to_read(self, terms: Collection[str], ripgrep: Callable[[], Ripgrep | None]) -> Sequence[int]:
        """Return the files that contain a term, and possibly some that do not."""
        if not terms:
            return ()
        searched_bytes = sum(size for size in self.sizes if size <= MAX_SEARCHED_BYTES)
        if len(self._entries) <= MAX_UNFILTERED_FILES and searched_bytes <= MAX_UNFILTERED_BYTES:
            return range(len(self._entries))
        return _files_that_may_match(self._entries, terms, ripgrep(), self.stop)


def read_texts(evidence: Evidence, files: Sequence[int]) -> dict[int, bytes]:
    """Return the texts of some files as UTF-8, without those that cannot be read."""
    texts: dict[int, bytes] = {}
    with evidence.codebase.opener(evidence.stop) as opener:
        for file in files:
            evidence.stop.check()
            if (text := evidence.text(opener, file)) is not None:
                texts[file] = text
    return texts


def _files_that_may_match(
    entries: Sequence[FileEntry], terms: Collection[str], ripgrep: Ripgrep | None, stop: Stop
) -> Sequence[int]:
    """Return the positions of all entries that contain a term, and possibly of some that do not."""
    if ripgrep is None:
        return range(len(entries))
    # A term of several words also matches with underscores between its letters.
    pattern = "|".join("_*".join(map(re.escape, term)) for term in sorted(terms))
    found: list[int] = []
    first = 0
    for root, of_root in groupby(entries, attrgetter("root")):
        for batch in argument_batches([entry.path for entry in of_root]):
            stop.check()
            matching = ripgrep.files_that_may_match(root.path, batch, pattern, ignore_case=True, stop=stop)
            numbered = enumerate(batch, first)
            found += (file for file, path in numbered if matching is None or path in matching)
            first += len(batch)
    return found


def searchable_text(opener: Opener, entry: FileEntry) -> bytes | None:
    """Return a file as UTF-8, or None if it is denied, missing, binary or over `MAX_SEARCHED_BYTES`."""
    try:
        data = opener.read_text(entry).utf8
    except (PathDenied, PathMissing, LimitExceeded):
        return None
    return data if len(data) <= MAX_SEARCHED_BYTES else None


def size_or_zero(opener: Opener, entry: FileEntry) -> int:
    """Return the size of a file on disk, or 0 if it is denied or missing."""
    try:
        return opener.stamp(entry).size
    except (PathDenied, PathMissing):
        return 0


def parse_detail(path: str, data: bytes, query: QueryTerms, words: WordSpans | None = None) -> FileDetail:
    """Split a text into chunks and count the terms of the question in each.

    `words` are where the words with terms are, if that is known.
    """
    starts, lines, names = chunk_columns(path, data)
    hits = query.count_terms(data, starts, words) if data else {}
    return FileDetail([*starts, len(data)], lines, names, hits, query.terms_of_names(names))
