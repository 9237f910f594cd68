"""Which files have a term, and how often: number lists kept in rows of SQLite. Knows nothing of files.

The terms of a segment are sorted and packed into blocks, so that the many rare ones cost no row each.
A segment is written once and then only read or removed."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import accumulate

from retinue.codebase.index.database import corrupt_row_errors

TABLES = """
CREATE TABLE IF NOT EXISTS blocks (
    id INTEGER PRIMARY KEY, segment INTEGER, first TEXT, terms TEXT, ends BLOB, codes BLOB);
CREATE INDEX IF NOT EXISTS block_terms ON blocks (segment, first);
"""

_BLOCK_CODES = 256
"""Numbers after which a block ends: few enough to read a rare term quickly, and a common one has its own."""
COUNT_BITS = 20
"""No file that is read has a term this often: see LARGEST."""
COUNT_MASK = (1 << COUNT_BITS) - 1
"""A code is a number and, in the lowest bits, how often the term stands there."""


def new_posting_lists() -> defaultdict[str, array[int]]:
    """By term, to be gathered. In arrays, because a number of Python's own lies anywhere in memory."""
    return defaultdict(array("Q").__copy__)


def write_postings(database: sqlite3.Connection, segment: int, codes: Mapping[str, array[int]]) -> None:
    """A new segment. A term may have the same number several times: its counts add up."""
    database.executemany(
        "INSERT INTO blocks (segment, first, terms, ends, codes) VALUES (?, ?, ?, ?, ?)",
        _pack_blocks(segment, codes),
    )


def delete_postings(database: sqlite3.Connection, segment: int) -> None:
    database.execute("DELETE FROM blocks WHERE segment = ?", (segment,))


def read_postings(database: sqlite3.Connection, segment: int, term: str) -> Sequence[int]:
    """The codes of a term."""
    found = database.execute(
        "SELECT terms, ends, codes FROM blocks WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1",
        (segment, term),
    ).fetchone()
    if found is None:
        return ()
    with corrupt_row_errors():
        terms, ends, codes = found
        return _codes_of_term(term, terms, ends, codes)


def _codes_of_term(term: str, packed_terms: str, packed_ends: bytes, packed: bytes) -> Sequence[int]:
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


def _pack_blocks(segment: int, codes: Mapping[str, array[int]]) -> Iterator[tuple[object, ...]]:
    terms = sorted(codes)
    lists = list(map(codes.__getitem__, terms))
    ends = list(accumulate(map(len, lists)))
    numbers = array("Q", b"".join(lists))
    first, before = 0, 0
    while first < len(terms):
        last = min(bisect_left(ends, before + _BLOCK_CODES), len(terms) - 1)
        inside = array("I", [end - before for end in ends[first : last + 1]])
        packed = numbers[before : ends[last]].tobytes()
        yield segment, terms[first], "\n".join(terms[first : last + 1]), inside.tobytes(), packed
        first, before = last + 1, ends[last]


# MERGED segments: The words of stored files as postings, in segments: changes become a small new one, small ones are joined.
#
# A file that is gone stays in its segment, unseen, until that is written anew. Each join at least doubles the
# segment of every file in it, so a file is moved a few times in its life, however often others change.

SEGMENT_TABLES = f"""
CREATE TABLE IF NOT EXISTS segments (id INTEGER PRIMARY KEY AUTOINCREMENT, files BLOB);
{TABLES}
"""

MAX_SEGMENT_FILES = 4_000
"""In one segment: what has to be in memory while it is written."""


class SegmentBuilder:
    """One that is being gathered."""

    def __init__(self) -> None:
        self._files = array("I")
        self._codes = new_posting_lists()
        """By words as they were said; some are several terms, which are told apart only once, at the end."""

    def add(self, files: Iterable[tuple[int, Iterable[str]]]) -> None:
        """Files with all of their words; some may be empty."""
        codes = self._codes
        for file, counts in [(file, Counter(said)) for file, said in files]:
            self._files.append(file)
            base = file << COUNT_BITS
            for words, count in counts.items():
                codes[words].append(base + count)

    @property
    def is_full(self) -> bool:
        return len(self._files) >= MAX_SEGMENT_FILES

    def write(self, database: sqlite3.Connection) -> None:
        if self._files:
            row = database.execute("INSERT INTO segments (files) VALUES (?)", (self._files.tobytes(),))
            write_postings(database, row.lastrowid or 0, self._by_term())

    def _by_term(self) -> dict[str, array[int]]:
        """The segment's own lists, so that those of words that are one term stay as they are."""
        found = self._codes
        for words in [words for words in found if not words.isalnum()]:
            codes = found.pop(words)
            for term in words.split():
                found[term].extend(codes)
        return found


def segment_ids(database: sqlite3.Connection) -> list[int]:
    return [number for (number,) in database.execute("SELECT id FROM segments ORDER BY id")]


def term_postings(
    database: sqlite3.Connection, segments: Sequence[int], term: str
) -> Iterator[Sequence[int]]:
    """Of files that are there and of files that are gone."""
    return (read_postings(database, segment, term) for segment in segments)


def compact_segments(database: sqlite3.Connection, live: AbstractSet[int]) -> None:
    """Join what is small, and write anew what is mostly gone, from the words of the stored files."""
    found: list[tuple[int, list[int]]] = []
    for segment, blob in database.execute("SELECT id, files FROM segments").fetchall():
        files = array("I")
        files.frombytes(blob)
        kept = [file for file in files if file in live]
        if 2 * len(kept) < len(files):
            _merge_segments(database, [segment], kept)
        else:
            found.append((segment, kept))
    found.sort(key=lambda one: len(one[1]))
    joined: list[int] = []
    files_of_all: list[int] = []
    for segment, kept in found:
        if joined and not len(kept) <= len(files_of_all) <= MAX_SEGMENT_FILES - len(kept):
            break
        joined.append(segment)
        files_of_all += kept
    if len(joined) > 1:
        _merge_segments(database, joined, files_of_all)


def _merge_segments(database: sqlite3.Connection, segments: Sequence[int], files: Sequence[int]) -> None:
    for segment in segments:
        delete_postings(database, segment)
        database.execute("DELETE FROM segments WHERE id = ?", (segment,))
    gathered = SegmentBuilder()
    for file in sorted(files):
        said = database.execute("SELECT words FROM files WHERE id = ?", (file,)).fetchone()[0]
        gathered.add([(file, said.split())])
    gathered.write(database)
