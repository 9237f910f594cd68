"""Evidence without an index: the files are read for one question.

Ripgrep, where there is one, says which files can hold a term at all; the others are not opened.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.codebase.evidence import Detail
from retinue.codebase.opener import Opener
from retinue.codebase.outline import outline
from retinue.codebase.question import Question
from retinue.codebase.ripgrep import Ripgrep, batches
from retinue.codebase.sources import LARGEST, worth_reading
from retinue.codebase.terms import Asked, words
from retinue.core.errors import LimitExceeded, PathDenied, PathMissing
from retinue.core.stop import Stop


class Scan:
    """What one pass over the files says of some terms."""

    def __init__(self, codebase: Codebase, question: Question, ripgrep: Ripgrep | None, stop: Stop) -> None:
        self.entries = [entry for entry in codebase.files(stop).entries if worth_reading(entry.path)]
        self.paths = [entry.path for entry in self.entries]
        self.sizes = [0] * len(self.entries)
        self.counts: dict[str, dict[int, int]] = {term: {} for term in question.terms}
        self._details: dict[int, Detail] = {}
        asked = Asked(question.terms)
        numbers = {entry: number for number, entry in enumerate(self.entries)}
        with codebase.opener(stop) as opener:
            self.sizes = [size_of(opener, entry) for entry in self.entries]
            for entry in _candidates(self.entries, question.needles, ripgrep, stop):
                stop.check()
                if (data := text_of(opener, entry)) is not None:
                    self._add(numbers[entry], entry.path, data, asked)

    def _add(self, file: int, path: str, data: bytes, asked: Asked) -> None:
        self._details[file] = detail = detail_of(path, data, asked)
        for term, hits in detail.hits.items():
            self.counts[term][file] = sum(hits.values())

    def details(self, files: Sequence[int]) -> dict[int, Detail]:
        return {file: self._details.get(file, Detail((), (), {})) for file in files}


def text_of(opener: Opener, entry: Entry) -> bytes | None:
    """A file as UTF-8; nothing if it may not be read, is binary, gone, or too large to be written by hand."""
    try:
        data = opener.text(entry).utf8
    except (PathDenied, PathMissing, LimitExceeded):
        return None
    return data if len(data) <= LARGEST else None


def size_of(opener: Opener, entry: Entry) -> int:
    try:
        return opener.stamp(entry).size
    except (PathDenied, PathMissing):
        return 0


def _candidates(
    entries: Sequence[Entry], needles: Collection[str], ripgrep: Ripgrep | None, stop: Stop
) -> Sequence[Entry]:
    """The entries that can hold a term: some too many, never one too few."""
    if not needles:
        return ()
    if ripgrep is None:
        return entries
    pattern = "|".join(sorted(needles))
    found: list[Entry] = []
    for root, of_root in groupby(entries, attrgetter("root")):
        for batch in batches([entry.path for entry in of_root]):
            could = ripgrep.candidates(root.path, batch, pattern, ignore_case=True, stop=stop)
            found += (Entry(root, path) for path in batch if could is None or path in could)
    return found


def detail_of(path: str, data: bytes, asked: Mapping[bytes, tuple[str, ...]]) -> Detail:
    cut, imports = outline(path, data)
    spaced = words(data)
    hits: dict[str, dict[int, int]] = {}
    for number, chunk in enumerate(cut):
        for found in filter(None, map(asked.__getitem__, spaced[chunk.start : chunk.end].split())):
            for term in found:
                counts = hits.setdefault(term, {})
                counts[number] = counts.get(number, 0) + 1
    return Detail(cut, imports, hits)
