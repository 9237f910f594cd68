"""The regular expression engine: RE2 where it is installed, else the standard library's `re`.

Both read UTF-8 bytes and the syntax of RE2, so that one set of rules gives the same findings on either.
Knows nothing of secrets.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol, cast

from retinue.redaction.go_syntax import to_python


class Match(Protocol):
    def span(self, group: int = 0, /) -> tuple[int, int]: ...


class Pattern(Protocol):
    @property
    def groups(self) -> int: ...

    def search(self, text: bytes, pos: int = 0, /) -> Match | None: ...


KeywordFinder = Callable[[bytes], Iterable[int]]
"""From lower-cased text to the numbers of the keywords that occur in it."""


class Engine(Protocol):
    def compile(self, regex: str) -> Pattern: ...

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder: ...


class Re2Engine:
    """Linear time whatever the text: the engine to have."""

    MAX_MEM = 2 << 20
    """Bytes that one expression may fill with states; beyond it RE2 goes on, only slower."""

    SENTINEL = b"\x00retinue-sentinel"
    """Appended to every text and looked for in it, because a set that ran out of memory finds nothing."""

    def __init__(self) -> None:
        # Imported here because it costs 10 ms and megabytes that a start without any text to redact does not owe.
        self._re2 = importlib.import_module("re2")
        self._options = self._re2.Options()
        self._options.encoding = self._re2.Options.Encoding.LATIN1
        self._options.log_errors = False
        self._options.max_mem = self.MAX_MEM

    def compile(self, regex: str) -> Pattern:
        return cast(Pattern, self._re2.compile(regex.encode(), self._options))

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        matcher = self._re2.Set.SearchSet(self._options)
        for keyword in (*keywords, self.SENTINEL):
            matcher.Add(self._re2.escape(keyword))
        matcher.Compile()
        everything = range(len(keywords))
        sentinel = len(keywords)

        def find(lowered: bytes) -> Iterable[int]:
            found = cast(list[int], matcher.Match(lowered + self.SENTINEL) or [])
            return (number for number in found if number != sentinel) if sentinel in found else everything

        return find


class ReEngine:
    """The fallback: the same findings, slower, and without RE2's promise of linear time."""

    def compile(self, regex: str) -> Pattern:
        return re.compile(to_python(regex).encode())

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        return lambda lowered: [number for number, keyword in enumerate(keywords) if keyword in lowered]


@cache
def best_engine() -> Engine:
    try:
        return Re2Engine()
    except ImportError:
        return ReEngine()
