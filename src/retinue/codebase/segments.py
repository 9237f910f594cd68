"""The words of stored files as postings, in segments: changes become a small new one, small ones are joined.

A file that is gone stays in its segment, unseen, until that is written anew. Each join at least doubles the
segment of every file in it, so a file is moved a few times in its life, however often others change.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet

from retinue.codebase import postings
from retinue.codebase.postings import COUNT_BITS

TABLES = f"""
CREATE TABLE IF NOT EXISTS segments (id INTEGER PRIMARY KEY AUTOINCREMENT, files BLOB);
{postings.TABLES}
"""

MOST_FILES = 4_000
"""In one segment: what has to be in memory while it is written."""


class Segment:
    """One that is being gathered."""

    def __init__(self) -> None:
        self._files = array("I")
        self._codes = postings.no_codes()
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
        return len(self._files) >= MOST_FILES

    def write(self, database: sqlite3.Connection) -> None:
        if self._files:
            row = database.execute("INSERT INTO segments (files) VALUES (?)", (self._files.tobytes(),))
            postings.write(database, row.lastrowid or 0, self._by_term())

    def _by_term(self) -> dict[str, array[int]]:
        """The segment's own lists, so that those of words that are one term stay as they are."""
        found = self._codes
        for words in [words for words in found if not words.isalnum()]:
            codes = found.pop(words)
            for term in words.split():
                found[term].extend(codes)
        return found


def numbers(database: sqlite3.Connection) -> list[int]:
    return [number for (number,) in database.execute("SELECT id FROM segments ORDER BY id")]


def posting(database: sqlite3.Connection, segments: Sequence[int], term: str) -> Iterator[Sequence[int]]:
    """Of files that are there and of files that are gone."""
    return (postings.read(database, segment, term) for segment in segments)


def tidy(database: sqlite3.Connection, live: AbstractSet[int]) -> None:
    """Join what is small, and write anew what is mostly gone, from the words of the stored files."""
    found: list[tuple[int, list[int]]] = []
    for segment, blob in database.execute("SELECT id, files FROM segments").fetchall():
        files = array("I")
        files.frombytes(blob)
        kept = [file for file in files if file in live]
        if 2 * len(kept) < len(files):
            _rewrite(database, [segment], kept)
        else:
            found.append((segment, kept))
    found.sort(key=lambda one: len(one[1]))
    joined: list[int] = []
    files_of_all: list[int] = []
    for segment, kept in found:
        if joined and not len(kept) <= len(files_of_all) <= MOST_FILES - len(kept):
            break
        joined.append(segment)
        files_of_all += kept
    if len(joined) > 1:
        _rewrite(database, joined, files_of_all)


def _rewrite(database: sqlite3.Connection, segments: Sequence[int], files: Sequence[int]) -> None:
    for segment in segments:
        postings.remove(database, segment)
        database.execute("DELETE FROM segments WHERE id = ?", (segment,))
    gathered = Segment()
    for file in sorted(files):
        said = database.execute("SELECT words FROM files WHERE id = ?", (file,)).fetchone()[0]
        gathered.add([(file, said.split())])
    gathered.write(database)
