"""Evidence without an index: the files are read, once, for one question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.codebase.evidence import Detail
from retinue.codebase.outline import Chunk, chunks
from retinue.codebase.sources import worth_reading
from retinue.codebase.terms import Vocabulary, words
from retinue.core.errors import LimitExceeded, PathDenied, PathMissing
from retinue.core.stop import Stop


class _Asked(dict[bytes, tuple[str, ...]]):
    """A word as it stands in a file to those of its terms that the question has."""

    def __init__(self, asked: Collection[str]) -> None:
        super().__init__()
        self._asked = frozenset(asked)
        self._vocabulary = Vocabulary()

    def __missing__(self, word: bytes) -> tuple[str, ...]:
        self[word] = found = tuple(term for term in self._vocabulary[word].split() if term in self._asked)
        return found


class Scan:
    """What one pass over the files says of some terms."""

    def __init__(self, codebase: Codebase, terms: Collection[str], stop: Stop) -> None:
        self.entries: list[Entry] = []
        self.paths: list[str] = []
        self.sizes: list[int] = []
        self.counts: dict[str, dict[int, int]] = {term: {} for term in terms}
        self._details: dict[int, Detail] = {}
        asked = _Asked(terms)
        with codebase.opener(stop) as opener:
            for entry in codebase.files(stop).entries:
                if not worth_reading(entry.path):
                    continue
                stop.check()
                try:
                    data = opener.text(entry).utf8
                except (PathDenied, PathMissing, LimitExceeded):
                    continue
                self._add(entry, data, asked)

    def _add(self, entry: Entry, data: bytes, asked: _Asked) -> None:
        file = len(self.entries)
        self.entries.append(entry)
        self.paths.append(entry.path)
        self.sizes.append(len(data))
        detail = detail_of(entry.path, data, asked)
        if detail.hits:
            self._details[file] = detail
        for term, hits in detail.hits.items():
            self.counts[term][file] = sum(hits.values())

    def details(self, files: Sequence[int]) -> dict[int, Detail]:
        return {file: self._details.get(file, Detail((), {})) for file in files}


def detail_of(path: str, data: bytes, asked: dict[bytes, tuple[str, ...]]) -> Detail:
    cut: list[Chunk] = chunks(path, data)
    spaced = words(data)
    hits: dict[str, dict[int, int]] = defaultdict(dict)
    for number, chunk in enumerate(cut):
        for word in spaced[chunk.start : chunk.end].split():
            for term in asked[word]:
                hits[term][number] = hits[term].get(number, 0) + 1
    return Detail(cut, dict(hits))
