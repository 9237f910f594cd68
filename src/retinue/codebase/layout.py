"""The files of all roots in one row, under the numbers that a question knows them by."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain

from retinue.codebase.holdings import Holdings


class Layout:
    """Shared by questions: none may change it."""

    def __init__(self, held: Sequence[Holdings]) -> None:
        self.ends = list(accumulate(len(one.paths) for one in held))
        """The number after each root's last."""
        self.paths = tuple(chain.from_iterable(one.paths for one in held))
        self.sizes = array("Q", chain.from_iterable(one.sizes for one in held))
        self.ids = array("I", chain.from_iterable(one.ids for one in held))
        self.numbers = {file: number for number, file in enumerate(self.ids) if file}
        """By the id that a file's words are stored under."""


layout_of = lru_cache(maxsize=2)(Layout)
"""Holdings are the same as long as they are one and the same object; see `holdings.kept`."""
