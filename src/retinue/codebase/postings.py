"""Which files have a term, and how often: number lists kept in rows of SQLite. Knows nothing of files.

The terms of a segment are sorted and packed into blocks, so that the many rare ones cost no row each.
A segment is written once and then only read or removed.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

TABLES = """
CREATE TABLE IF NOT EXISTS blocks (
    id INTEGER PRIMARY KEY, segment INTEGER, first TEXT, terms TEXT, ends BLOB, numbers BLOB, counts BLOB);
CREATE INDEX IF NOT EXISTS block_terms ON blocks (segment, first);
"""

_BLOCK = 256
"""Numbers after which a block ends: few enough to read a rare term quickly, and a common one has its own."""
COUNT_BITS = 20
"""No file that is read has a term this often: see LARGEST."""
_COUNT = (1 << COUNT_BITS) - 1

Posting = tuple[Sequence[int], Sequence[int]]
"""Numbers, and how often the term stands in each."""
NOTHING: Posting = ((), ())


def code(number: int, count: int) -> int:
    """One of the integers that `write` takes."""
    return number << COUNT_BITS | count


def write(database: sqlite3.Connection, segment: int, codes: Mapping[str, Sequence[int]]) -> None:
    """A new segment. Each term once, its numbers in order."""
    database.executemany(
        "INSERT INTO blocks (segment, first, terms, ends, numbers, counts) VALUES (?, ?, ?, ?, ?, ?)",
        _blocks(segment, codes),
    )


def remove(database: sqlite3.Connection, segment: int) -> None:
    database.execute("DELETE FROM blocks WHERE segment = ?", (segment,))


def read(database: sqlite3.Connection, segment: int, term: str) -> Posting:
    found = database.execute(
        "SELECT terms, ends, numbers, counts FROM blocks"
        " WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1",
        (segment, term),
    ).fetchone()
    if found is None:
        return NOTHING
    terms = found[0].split("\n")
    place = bisect_left(terms, term)
    if place == len(terms) or terms[place] != term:
        return NOTHING
    ends, numbers, counts = (_unpacked(blob) for blob in found[1:])
    span = slice(ends[place - 1] if place else 0, ends[place])
    return numbers[span], counts[span]


def _blocks(segment: int, codes: Mapping[str, Sequence[int]]) -> Iterator[tuple[object, ...]]:
    terms: list[str] = []
    ends = array("I")
    inside: list[int] = []
    for term in sorted(codes):
        terms.append(term)
        inside += codes[term]
        ends.append(len(inside))
        if len(inside) >= _BLOCK:
            yield _row(segment, terms, ends, inside)
            terms, ends, inside = [], array("I"), []
    if terms:
        yield _row(segment, terms, ends, inside)


def _row(segment: int, terms: list[str], ends: array[int], inside: list[int]) -> tuple[object, ...]:
    numbers = array("I", [code >> COUNT_BITS for code in inside])
    counts = array("I", [code & _COUNT for code in inside])
    return segment, terms[0], "\n".join(terms), ends.tobytes(), numbers.tobytes(), counts.tobytes()


def _unpacked(blob: bytes) -> array[int]:
    numbers = array("I")
    numbers.frombytes(blob)
    return numbers
