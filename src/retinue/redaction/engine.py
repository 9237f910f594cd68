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


class RegexMatch(Protocol):
    def span(self, group: int = 0, /) -> tuple[int, int]: ...


class RegexPattern(Protocol):
    @property
    def groups(self) -> int: ...

    def search(self, text: bytes, pos: int = 0, /) -> RegexMatch | None: ...


KeywordFinder = Callable[[bytes], Iterable[int]]
"""From lower-cased text to the numbers of the keywords that occur in it."""


class RegexEngine(Protocol):
    def compile(self, regex: str) -> RegexPattern: ...

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder: ...


class Re2Engine:
    """Linear time whatever the text: the engine to have."""

    MAX_MEM = 2 << 20
    """Bytes that one expression may fill with states; beyond it RE2 goes on, only slower."""

    SENTINEL = b"\x00retinue-sentinel"
    """Appended to every text and looked for in it: a set that runs out of memory reports nothing found."""

    def __init__(self) -> None:
        # Imported here: a start without any text to redact should not pay for it.
        self._re2 = importlib.import_module("re2")
        self._options = self._re2.Options()
        self._options.encoding = self._re2.Options.Encoding.LATIN1
        self._options.log_errors = False
        self._options.max_mem = self.MAX_MEM

    def compile(self, regex: str) -> RegexPattern:
        return cast(RegexPattern, self._re2.compile(regex.encode(), self._options))

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        matcher = self._re2.Set.SearchSet(self._options)
        for keyword in (*keywords, self.SENTINEL):
            matcher.Add(self._re2.escape(keyword))
        matcher.Compile()
        return lambda lowered: present(matcher.Match(lowered + self.SENTINEL), len(keywords))


def present(found: list[int] | None, count: int) -> Iterable[int]:
    """The keywords found, or all of them if not even the sentinel after the last one was."""
    return (number for number in found if number < count) if found and count in found else range(count)


class ReEngine:
    """The fallback: the same findings, slower, and without RE2's promise of linear time."""

    def compile(self, regex: str) -> RegexPattern:
        return re.compile(to_python(regex).encode())

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        return lambda lowered: [number for number, keyword in enumerate(keywords) if keyword in lowered]


@cache
def best_engine() -> RegexEngine:
    try:
        return Re2Engine()
    except ImportError:
        return ReEngine()
