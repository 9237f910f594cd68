"""One file as an index keeps it: its outline, and its words by definition. Reads nothing."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from retinue.codebase.evidence import Detail
from retinue.codebase.outline import outline
from retinue.codebase.path_words import FOLDER, NAME, folders_of, name_of
from retinue.codebase.terms import Vocabulary, words

TABLES = """
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    places BLOB, names TEXT, name_terms TEXT, imports TEXT, words TEXT);
"""
COLUMNS = "places, names, name_terms, imports, words"

Row = tuple[bytes, str, str, str, str]

_APART = "\n"
"""A line of words for the path, then one for each definition."""
_CUT = b"\xff"
"""Stands between two definitions while words are looked up: a byte that no UTF-8 has."""


class Packed(NamedTuple):
    row: Row
    said: list[str]
    """The words of the row; some are several, with spaces between."""


def vocabulary() -> Vocabulary:
    """For many files in a row."""
    made = Vocabulary()
    made[_CUT] = _APART
    return made


def pack(path: str, data: bytes, known: Vocabulary) -> Packed:
    cut, imports = outline(path, data)
    places = array("I", [number for start, _, line, _ in cut for number in (start, line)])
    places.append(len(data))
    parted = b" \xff ".join([data[start:end] for start, end, _, _ in cut])
    said = [*_path_terms(path, known), _APART, *map(known.__getitem__, words(parted).split())]
    names = "\n".join([chunk.name for chunk in cut])
    terms = "\n".join([known.distinct(chunk.name) for chunk in cut])
    return Packed((places.tobytes(), names, terms, "\n".join(imports), f" {' '.join(said)} "), said)


def _path_terms(path: str, known: Vocabulary) -> Iterator[str]:
    """Marked, so that they are not taken for the words inside."""
    for mark, text in ((NAME, name_of(path)), (FOLDER, folders_of(path))):
        yield from (mark + term for term in known.distinct(text).split())


def unpack(row: Row, counts: Mapping[str, int]) -> Detail:
    """Of the words, only where the given terms stand is looked up: each is known to be there so often."""
    places, names, name_terms, imports, said = row
    numbers = array("I")
    numbers.frombytes(places)
    of_chunks = names.split("\n")
    terms_of = dict(zip(of_chunks, name_terms.split("\n"), strict=True))
    terms_of.pop("", None)
    ends = list(accumulate([len(line) + 1 for line in said.split(_APART)]))
    hits = {term: _by_chunk(said, ends, term, count) for term, count in counts.items()}
    imported = imports.split("\n") if imports else []
    return Detail(numbers[0::2], numbers[1::2], of_chunks, imported, hits, terms_of)


def _by_chunk(said: str, ends: Sequence[int], term: str, count: int) -> dict[int, int]:
    """Stops at the last place: what comes after need not be searched."""
    counts: dict[int, int] = {}
    wanted = f" {term} "
    step = len(wanted) - 1
    here, chunk, end = -step, -1, 0
    for _ in range(count):
        here = said.index(wanted, here + step)
        if here >= end:
            line = bisect_right(ends, here, chunk + 1)
            chunk, end = line - 1, ends[line]
            counts[chunk] = 0
        counts[chunk] += 1
    return counts
