"""Evidence without an index: the files are read for one question.

Ripgrep, where there is one, says which files can hold a term at all; the others are not opened.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby
from operator import attrgetter

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import FileEntry
from retinue.codebase.evidence import Detail
from retinue.codebase.opener import Opener
from retinue.codebase.outline import outline_text
from retinue.codebase.path_words import PathWords, path_words
from retinue.codebase.question import ParsedQuestion
from retinue.codebase.ripgrep import Ripgrep, batches
from retinue.codebase.sources import MAX_SEARCHED_BYTES, worth_reading
from retinue.codebase.terms import QueryTerms, words
from retinue.core import LimitExceeded, PathDenied, PathMissing, Stop


class Scan:
    """What one pass over the files says of some terms. Only files looked at closely are cut into chunks."""

    def __init__(
        self, codebase: Codebase, question: ParsedQuestion, ripgrep: Ripgrep | None, stop: Stop
    ) -> None:
        self._codebase = codebase
        self._stop = stop
        self._asked = QueryTerms(question.terms, question.kept)
        self._entries = [entry for entry in codebase.files(stop).entries if worth_reading(entry.path)]
        stop.check()  # a walk that time cut short has its few files looked at in vain
        self.paths = tuple(entry.path for entry in self._entries)
        self.counts: dict[str, dict[int, int]] = {term: {} for term in question.terms}
        numbers = {entry: number for number, entry in enumerate(self._entries)}
        with codebase.opener(stop) as opener:
            self.sizes = [_size(opener, entry, stop) for entry in self._entries]
            for entry in _candidates(self._entries, question.terms, ripgrep, stop):
                stop.check()
                if (data := text_of(opener, entry)) is not None:
                    for term, count in counts_in(data, self._asked).items():
                        self.counts[term][numbers[entry]] = count

    def entry(self, file: int) -> FileEntry:
        return self._entries[file]

    def path_words(self) -> PathWords:
        return path_words(self.paths, self._asked)

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, Detail]:
        with self._codebase.opener(self._stop) as opener:
            return {file: self._detail(opener, self._entries[file]) for file in files}

    def _detail(self, opener: Opener, entry: FileEntry) -> Detail:
        self._stop.check()
        return detail_of(entry.path, text_of(opener, entry) or b"", self._asked)


def text_of(opener: Opener, entry: FileEntry) -> bytes | None:
    """A file as UTF-8; nothing if it may not be read, is binary, gone, or too large to be written by hand."""
    try:
        data = opener.text(entry).utf8
    except (PathDenied, PathMissing, LimitExceeded):
        return None
    return data if len(data) <= MAX_SEARCHED_BYTES else None


def size_of(opener: Opener, entry: FileEntry) -> int:
    try:
        return opener.stamp(entry).size
    except (PathDenied, PathMissing):
        return 0


def _size(opener: Opener, entry: FileEntry, stop: Stop) -> int:
    stop.check()
    return size_of(opener, entry)


def _candidates(
    entries: Sequence[FileEntry], terms: Collection[str], ripgrep: Ripgrep | None, stop: Stop
) -> Sequence[FileEntry]:
    """The entries that can hold a term: some too many, never one too few."""
    if not terms:
        return ()
    if ripgrep is None:
        return entries
    # An identifier is found by its letters run together too, whatever stands between them.
    pattern = "|".join("_*".join(map(re.escape, term)) for term in sorted(terms))
    found: list[FileEntry] = []
    for root, of_root in groupby(entries, attrgetter("root")):
        for batch in batches([entry.path for entry in of_root]):
            stop.check()
            could = ripgrep.candidates(root.path, batch, pattern, ignore_case=True, stop=stop)
            found += (FileEntry(root, path) for path in batch if could is None or path in could)
    return found


def counts_in(data: bytes, asked: QueryTerms) -> dict[str, int]:
    counts: dict[str, int] = {}
    for found in filter(None, map(asked.__getitem__, words(data).split())):
        for term in found:
            counts[term] = counts.get(term, 0) + 1
    return counts


def detail_of(path: str, data: bytes, asked: QueryTerms) -> Detail:
    cut, imports = outline_text(path, data)
    spaced = words(data)
    hits: dict[str, dict[int, int]] = {}
    for number, chunk in enumerate(cut):
        for found in filter(None, map(asked.__getitem__, spaced[chunk.start : chunk.end].split())):
            for term in found:
                counts = hits.setdefault(term, {})
                counts[number] = counts.get(number, 0) + 1
    names = [chunk.name for chunk in cut]
    return Detail(
        [*(chunk.start for chunk in cut), len(data)],
        [chunk.line for chunk in cut],
        names,
        imports,
        hits,
        {name: asked.vocabulary.distinct(name) for name in names if name},
    )
