"""Which files have a term, and how often: number lists kept in rows of SQLite. Knows nothing of files.

The terms of a segment are sorted and packed into blocks, so that the many rare ones cost no row each.
A segment is written once and then only read or removed.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

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


def write(database: sqlite3.Connection, segment: int, codes: Mapping[str, Sequence[int]]) -> None:
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


def _blocks(segment: int, codes: Mapping[str, Sequence[int]]) -> Iterator[tuple[object, ...]]:
    terms: list[str] = []
    ends = array("I")
    inside = array("Q")
    for term in sorted(codes):
        terms.append(term)
        inside.extend(codes[term])
        ends.append(len(inside))
        if len(inside) >= _BLOCK:
            yield segment, terms[0], "\n".join(terms), ends.tobytes(), inside.tobytes()
            terms, ends, inside = [], array("I"), array("Q")
    if terms:
        yield segment, terms[0], "\n".join(terms), ends.tobytes(), inside.tobytes()
