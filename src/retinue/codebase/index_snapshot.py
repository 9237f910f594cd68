"""The files of all roots in one row, under the numbers that a question knows them by.

Shared by the questions of one state of an index: nobody may change what he gets from here.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path

from retinue.codebase.manifest import Holdings

MOST_NUMBERS = 100_000
"""Of the counts that are kept: about 4 MB."""
_ENTRY = 10
"""Numbers that a term counts for besides those of its files."""


class Layout:
    def __init__(self, held: Sequence[Holdings]) -> None:
        self.ends = list(accumulate(len(one.paths) for one in held))
        """The number after each root's last."""
        self.paths = tuple(chain.from_iterable(one.paths for one in held))
        self.sizes = array("Q", chain.from_iterable(one.sizes for one in held))
        self.ids = array("I", chain.from_iterable(one.ids for one in held))
        self.numbers = {file: number for number, file in enumerate(self.ids) if file}
        """By the id that a file's words are stored under."""
        self.counts = Counts()


class Counts:
    """Term to file to how often, as questions looked them up: the next ones ask for the same common words.

    Full, it begins anew. Safe for several threads.
    """

    def __init__(self) -> None:
        self._by_term: dict[str, dict[int, int]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, term: str) -> dict[int, int] | None:
        return self._by_term.get(term)

    def keep(self, term: str, counts: dict[int, int]) -> None:
        with self._lock:
            if self._size >= MOST_NUMBERS:
                self._by_term.clear()
                self._size = 0
            self._by_term[term] = counts
            self._size += _ENTRY + len(counts)


@lru_cache(maxsize=2)
def layout_of(_index: Path, held: tuple[Holdings, ...]) -> Layout:
    """One for each state of each of two indexes: another index may hold other words for the same files.

    Holdings are the same as long as they are one and the same object; see `holdings.kept`.
    """
    return Layout(held)
