"""What is known of a root's files for one question, whether an index or a scan found it.

The two sources must agree to the last number: the ranker cannot tell them apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
    find_path_terms,
    has_searchable_text,
    outline_text,
    separate_words,
)
from retinue.codebase.search import Ripgrep, argument_batches
from retinue.core import LimitExceeded, PathDenied, PathMissing, Stop


@dataclass(frozen=True, slots=True)
class FileDetail:
    """One file seen closely, its chunks as columns: a question asks for few fields of few of them."""

    starts: Sequence[int]
    """The byte each chunk begins at; at the end, the one after the last."""
    lines: Sequence[int]
    """The line that names each chunk."""
    names: Sequence[str]
    imports: Sequence[str]
    hits: dict[str, dict[int, int]]
    """Term to chunk to how often."""
    name_terms: Mapping[str, str]
    """Each defined name to its terms, every one once, spaces between."""


@dataclass(frozen=True, slots=True)
class RelatedCommit:
    """A commit that speaks of the question."""

    terms: frozenset[str]
    words: int
    """Distinct terms of its message: a long one matches by chance."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitEvidence:
    """The commits nearest to the question, best first, and how common its terms are among all."""

    commits: int = 0
    frequency: dict[str, int] = field(default_factory=dict[str, int])
    changes: Sequence[RelatedCommit] = ()


class Evidence(Protocol):
    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that may be named, in the order of the roots, then by path. Its place is its number."""
        ...

    def entry(self, file: int) -> FileEntry: ...

    @property
    def sizes(self) -> Sequence[int]:
        """Bytes on disk, one for each path."""
        ...

    @property
    def counts(self) -> dict[str, dict[int, int]]:
        """Term to file to how often."""
        ...

    def path_words(self) -> PathTerms:
        """The same terms in the paths."""
        ...

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, FileDetail]:
        """Some files seen closely, with where these of the terms stand; others may be there too."""
        ...


def merge_commit_evidence(pasts: Sequence[CommitEvidence]) -> CommitEvidence:
    """The histories of several roots as one."""
    if len(pasts) == 1:
        return pasts[0]
    frequency: Counter[str] = Counter()
    for past in pasts:
        frequency.update(past.frequency)
    changes = [change for past in pasts for change in past.changes]
    return CommitEvidence(sum(past.commits for past in pasts), dict(frequency), changes)


# MERGED scan: Evidence without an index: the files are read for one question.
#
# Ripgrep, where there is one, says which files can hold a term at all; the others are not opened.


class ScanEvidence:
    """What one pass over the files says of some terms. Only files looked at closely are cut into chunks."""

    def __init__(
        self, codebase: Codebase, question: ParsedQuestion, ripgrep: Ripgrep | None, stop: Stop
    ) -> None:
        self._codebase = codebase
        self._stop = stop
        self._asked = QueryTerms(question.terms, question.kept)
        self._entries = [entry for entry in codebase.files(stop).entries if has_searchable_text(entry.path)]
        stop.check()  # a walk that time cut short has its few files looked at in vain
        self.paths = tuple(entry.path for entry in self._entries)
        self.counts: dict[str, dict[int, int]] = {term: {} for term in question.terms}
        numbers = {entry: number for number, entry in enumerate(self._entries)}
        with codebase.opener(stop) as opener:
            self.sizes = [_size(opener, entry, stop) for entry in self._entries]
            for entry in _files_to_read(self._entries, question.terms, ripgrep, stop):
                stop.check()
                if (data := searchable_text(opener, entry)) is not None:
                    for term, count in count_terms(data, self._asked).items():
                        self.counts[term][numbers[entry]] = count

    def entry(self, file: int) -> FileEntry:
        return self._entries[file]

    def path_words(self) -> PathTerms:
        return find_path_terms(self.paths, self._asked)

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, FileDetail]:
        with self._codebase.opener(self._stop) as opener:
            return {file: self._detail(opener, self._entries[file]) for file in files}

    def _detail(self, opener: Opener, entry: FileEntry) -> FileDetail:
        self._stop.check()
        return detail_of_text(entry.path, searchable_text(opener, entry) or b"", self._asked)


def searchable_text(opener: Opener, entry: FileEntry) -> bytes | None:
    """A file as UTF-8; nothing if it may not be read, is binary, gone, or too large to be written by hand."""
    try:
        data = opener.text(entry).utf8
    except (PathDenied, PathMissing, LimitExceeded):
        return None
    return data if len(data) <= MAX_SEARCHED_BYTES else None


def size_or_zero(opener: Opener, entry: FileEntry) -> int:
    try:
        return opener.stamp(entry).size
    except (PathDenied, PathMissing):
        return 0


def _size(opener: Opener, entry: FileEntry, stop: Stop) -> int:
    stop.check()
    return size_or_zero(opener, entry)


def _files_to_read(
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
        for batch in argument_batches([entry.path for entry in of_root]):
            stop.check()
            could = ripgrep.candidates(root.path, batch, pattern, ignore_case=True, stop=stop)
            found += (FileEntry(root, path) for path in batch if could is None or path in could)
    return found


def count_terms(data: bytes, asked: QueryTerms) -> dict[str, int]:
    counts: dict[str, int] = {}
    for found in filter(None, map(asked.__getitem__, separate_words(data).split())):
        for term in found:
            counts[term] = counts.get(term, 0) + 1
    return counts


def detail_of_text(path: str, data: bytes, asked: QueryTerms) -> FileDetail:
    cut, imports = outline_text(path, data)
    spaced = separate_words(data)
    hits: dict[str, dict[int, int]] = {}
    for number, chunk in enumerate(cut):
        for found in filter(None, map(asked.__getitem__, spaced[chunk.start : chunk.end].split())):
            for term in found:
                counts = hits.setdefault(term, {})
                counts[number] = counts.get(number, 0) + 1
    names = [chunk.name for chunk in cut]
    return FileDetail(
        [*(chunk.start for chunk in cut), len(data)],
        [chunk.line for chunk in cut],
        names,
        imports,
        hits,
        {name: asked.vocabulary.distinct(name) for name in names if name},
    )
