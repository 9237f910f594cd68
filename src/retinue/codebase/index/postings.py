"""Postings: which files contain a term and how often, as lists of numbers in SQLite rows.

The postings of files are stored in segments. An update writes its files as a small new segment, and small
segments are merged later. A removed file stays in its segment, unused, until the segment is rewritten. Each
merge at least doubles the size of a segment, so a file moves only a few times, however often others change.

The terms of a segment are sorted and packed into blocks, so that the many rare terms do not need a row each.
A segment is written once; afterwards it is only read or removed.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import accumulate

from retinue.codebase.index.database import corrupt_row_errors

TABLES = """
CREATE TABLE IF NOT EXISTS segments (id INTEGER PRIMARY KEY AUTOINCREMENT, files BLOB);
CREATE TABLE IF NOT EXISTS blocks (
    id INTEGER PRIMARY KEY, segment INTEGER, first TEXT, terms TEXT, ends BLOB, codes BLOB);
CREATE INDEX IF NOT EXISTS block_terms ON blocks (segment, first);
"""

MAX_SEGMENT_FILES = 4_000
"""Limits the memory that writing a segment needs."""
COUNT_BITS = 20
"""A code is a file number with the count of the term in its lowest bits. A file of at most
`MAX_SEARCHED_BYTES` contains no term more often than these bits can hold."""
COUNT_MASK = (1 << COUNT_BITS) - 1
_BLOCK_CODES = 256
"""Number of codes after which a block ends. Reading a rare term stays fast; a common term fills a block."""


class SegmentBuilder:
    """Collects the words of files in memory and writes them as one segment."""

    def __init__(self) -> None:
        self._files = array("I")
        self._codes = new_posting_lists()
        """Codes by word. A word may stand for several terms; they are split once, when the segment is
        written."""

    def add(self, files: Iterable[tuple[int, Iterable[str]]]) -> None:
        """Add files, each with all of its words. A word may be empty."""
        codes = self._codes
        for file, counts in [(file, Counter(words)) for file, words in files]:
            self._files.append(file)
            base = file << COUNT_BITS
            for word, count in counts.items():
                codes[word].append(base + count)

    @property
    def is_full(self) -> bool:
        return len(self._files) >= MAX_SEGMENT_FILES

    def write(self, database: sqlite3.Connection) -> None:
        if self._files:
            row = database.execute("INSERT INTO segments (files) VALUES (?)", (self._files.tobytes(),))
            write_postings(database, row.lastrowid or 0, self._codes_by_term())

    def _codes_by_term(self) -> dict[str, array[int]]:
        """Return the codes of each term: splits the words that stand for several terms, in place."""
        codes_by_term = self._codes
        for word in [word for word in codes_by_term if not word.isalnum()]:
            codes = codes_by_term.pop(word)
            for term in word.split():
                codes_by_term[term].extend(codes)
        return codes_by_term


def segment_ids(database: sqlite3.Connection) -> list[int]:
    """Return the segments of files, oldest first."""
    return [segment for (segment,) in database.execute("SELECT id FROM segments ORDER BY id")]


def compact_segments(database: sqlite3.Connection, live: AbstractSet[int]) -> None:
    """Merge small segments, and rewrite those in which most files were removed.

    `live` are the ids of the current files.
    """
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
    merged: list[int] = []
    merged_files: list[int] = []
    for segment, kept in found:
        if merged and not len(kept) <= len(merged_files) <= MAX_SEGMENT_FILES - len(kept):
            break
        merged.append(segment)
        merged_files += kept
    if len(merged) > 1:
        _merge_segments(database, merged, merged_files)


def _merge_segments(database: sqlite3.Connection, segments: Sequence[int], files: Sequence[int]) -> None:
    """Replace the segments by one with the given files, built from the stored words."""
    for segment in segments:
        delete_postings(database, segment)
        database.execute("DELETE FROM segments WHERE id = ?", (segment,))
    builder = SegmentBuilder()
    for file in sorted(files):
        words = database.execute("SELECT words FROM files WHERE id = ?", (file,)).fetchone()[0]
        builder.add([(file, words.split())])
    builder.write(database)


def new_posting_lists() -> defaultdict[str, array[int]]:
    """Return an empty mapping of terms to codes.

    Arrays keep the codes together in memory; lists would not.
    """
    return defaultdict(array("Q").__copy__)


def write_postings(database: sqlite3.Connection, segment: int, codes: Mapping[str, array[int]]) -> None:
    """Write a new segment. If a term has several codes for one file, their counts add up."""
    database.executemany(
        "INSERT INTO blocks (segment, first, terms, ends, codes) VALUES (?, ?, ?, ?, ?)",
        _pack_blocks(segment, codes),
    )


def delete_postings(database: sqlite3.Connection, segment: int) -> None:
    database.execute("DELETE FROM blocks WHERE segment = ?", (segment,))


def read_postings(database: sqlite3.Connection, segment: int, term: str) -> Sequence[int]:
    """Return the codes of a term in one segment, including those of removed files."""
    found = database.execute(
        "SELECT terms, ends, codes FROM blocks WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1",
        (segment, term),
    ).fetchone()
    if found is None:
        return ()
    with corrupt_row_errors():
        terms, ends, codes = found
        return _codes_of_term(term, terms, ends, codes)


def _codes_of_term(term: str, packed_terms: str, packed_ends: bytes, packed_codes: bytes) -> Sequence[int]:
    """Return the codes of a term in a packed block, or nothing if the block does not have it."""
    terms = packed_terms.split("\n")
    position = bisect_left(terms, term)
    if position == len(terms) or terms[position] != term:
        return ()
    ends, codes = array("I"), array("Q")
    ends.frombytes(packed_ends)
    codes.frombytes(packed_codes)
    if len(codes) != ends[-1]:
        raise ValueError("a block is cut short")
    return codes[ends[position - 1] if position else 0 : ends[position]]


def _pack_blocks(segment: int, codes: Mapping[str, array[int]]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a segment: first term, all terms, where the codes of each end, and the codes."""
    terms = sorted(codes)
    lists = list(map(codes.__getitem__, terms))
    ends = list(accumulate(map(len, lists)))
    numbers = array("Q", b"".join(lists))
    first, before = 0, 0
    while first < len(terms):
        last = min(bisect_left(ends, before + _BLOCK_CODES), len(terms) - 1)
        block_ends = array("I", [end - before for end in ends[first : last + 1]])
        block_codes = numbers[before : ends[last]].tobytes()
        yield segment, terms[first], "\n".join(terms[first : last + 1]), block_ends.tobytes(), block_codes
        first, before = last + 1, ends[last]
