"""Which files have a term, and how often: number lists kept in rows of SQLite. Knows nothing of files.

The terms of a segment are sorted and packed into blocks, so that the many rare ones cost no row each.
A segment is written once and then only read or removed.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from retinue.codebase.damage import making_sense

TABLES = """
CREATE TABLE IF NOT EXISTS blocks (
    id INTEGER PRIMARY KEY, segment INTEGER, first TEXT, terms TEXT, ends BLOB, codes BLOB);
CREATE INDEX IF NOT EXISTS block_terms ON blocks (segment, first);
"""

_BLOCK = 256
"""Numbers after which a block ends: few enough to read a rare term quickly, and a common one has its own."""
COUNT_BITS = 20
"""No file that is read has a term this often: see LARGEST."""
COUNT = (1 << COUNT_BITS) - 1
"""A code is a number and, in the lowest bits, how often the term stands there."""


def no_codes() -> defaultdict[str, array[int]]:
    """By term, to be gathered. In arrays, because a number of Python's own lies anywhere in memory."""
    return defaultdict(array("Q").__copy__)


def write(database: sqlite3.Connection, segment: int, codes: Mapping[str, array[int]]) -> None:
    """A new segment. A term may have the same number several times: its counts add up."""
    database.executemany(
        "INSERT INTO blocks (segment, first, terms, ends, codes) VALUES (?, ?, ?, ?, ?)",
        _blocks(segment, codes),
    )


def remove(database: sqlite3.Connection, segment: int) -> None:
    database.execute("DELETE FROM blocks WHERE segment = ?", (segment,))


def read(database: sqlite3.Connection, segment: int, term: str) -> Sequence[int]:
    """The codes of a term."""
    found = database.execute(
        "SELECT terms, ends, codes FROM blocks WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1",
        (segment, term),
    ).fetchone()
    if found is None:
        return ()
    with making_sense():
        terms, ends, codes = found
        return _codes(term, terms, ends, codes)


def _codes(term: str, packed_terms: str, packed_ends: bytes, packed: bytes) -> Sequence[int]:
    terms = packed_terms.split("\n")
    place = bisect_left(terms, term)
    if place == len(terms) or terms[place] != term:
        return ()
    ends, codes = array("I"), array("Q")
    ends.frombytes(packed_ends)
    codes.frombytes(packed)
    if len(codes) != ends[-1]:
        raise ValueError("a block is cut short")
    return codes[ends[place - 1] if place else 0 : ends[place]]


def _blocks(segment: int, codes: Mapping[str, array[int]]) -> Iterator[tuple[object, ...]]:
    terms = sorted(codes)
    lists = list(map(codes.__getitem__, terms))
    ends = list(accumulate(map(len, lists)))
    numbers = array("Q", b"".join(lists))
    first, before = 0, 0
    while first < len(terms):
        last = min(bisect_left(ends, before + _BLOCK), len(terms) - 1)
        inside = array("I", [end - before for end in ends[first : last + 1]])
        packed = numbers[before : ends[last]].tobytes()
        yield segment, terms[first], "\n".join(terms[first : last + 1]), inside.tobytes(), packed
        first, before = last + 1, ends[last]
