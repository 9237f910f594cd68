"""The regex engines for redaction: RE2 if it is installed, otherwise Python's `re`.

Both accept RE2 syntax and search UTF-8 bytes, so that the same rules find the same secrets. For `re`, the
syntax that the rules use is translated: flags in the middle of a group, `\\z`, a strict `$` and POSIX
classes. `.*` gets a bound, because `re` would otherwise backtrack through the whole text. Knows nothing of
secrets.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol, cast

REGEX_TOKEN = re.compile(
    r"""
    (?P<escape>\\.)
  | (?P<cls>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])
  | (?P<flags>\(\?[a-zA-Z]+\))
  | (?P<open>\((?:\?P?<\w+>|\?[a-zA-Z-]*:)?)
  | (?P<close>\))
  | (?P<alternative>\|)
  | (?P<end>\$)
  | (?P<wild>\.[*])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
POSIX_CLASSES = {"[:alnum:]": "a-zA-Z0-9", "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:space:]": r"\s"}
BOUNDED_WILDCARD = ".{0,200}"


class RegexMatch(Protocol):
    """A match of a regex in bytes."""

    def span(self, group: int = 0, /) -> tuple[int, int]: ...


class RegexPattern(Protocol):
    """A compiled regex."""

    @property
    def groups(self) -> int: ...

    def search(self, text: bytes, pos: int = 0, /) -> RegexMatch | None: ...


KeywordFinder = Callable[[bytes], Iterable[int]]
"""Takes lower-case text and returns the indexes of the keywords that occur in it."""


class RegexEngine(Protocol):
    """The operations that redaction needs from a regex library."""

    def compile(self, regex: str) -> RegexPattern:
        """Compile a regex in RE2 syntax."""
        ...

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        """Return a function that finds these keywords in lower-case text."""
        ...


class Re2Engine:
    """RE2, which runs in linear time for any text."""

    MAX_MEM = 2 << 20
    """Memory limit for one regex in bytes. Beyond it, RE2 continues but becomes slower."""

    SENTINEL = b"\x00retinue-sentinel"
    """A keyword that is appended to every text. If it is not found, the keyword set ran out of memory."""

    def __init__(self) -> None:
        # Imported here because a process that redacts nothing does not need it.
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
        return lambda lowered: found_keywords(matcher.Match(lowered + self.SENTINEL), len(keywords))


def found_keywords(found: list[int] | None, count: int) -> Iterable[int]:
    """Return the indexes of the found keywords, or of all keywords if the sentinel was not found."""
    return (number for number in found if number < count) if found and count in found else range(count)


class ReEngine:
    """Python's `re`: finds the same secrets, but slower and without a guarantee of linear time."""

    def compile(self, regex: str) -> RegexPattern:
        return re.compile(to_python_regex(regex).encode())

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        return lambda lowered: [number for number, keyword in enumerate(keywords) if keyword in lowered]


@cache
def best_engine() -> RegexEngine:
    """Return RE2 if it is installed, otherwise Python's `re`."""
    try:
        return Re2Engine()
    except ImportError:
        return ReEngine()


def to_python_regex(regex: str) -> str:
    """Translate a regex from RE2 syntax to Python's."""
    out: list[str] = []
    # For each open group, the flags set inside it so far. They apply until the group ends, across every `|`.
    flags: list[list[str]] = [[]]
    for token in REGEX_TOKEN.finditer(regex):
        kind, text = str(token.lastgroup), token.group()
        if kind == "flags":
            flags[-1].append(text[:-1] + ":")
            out.append(flags[-1][-1])
        elif kind == "open":
            flags.append([])
            out.append(text)
        elif kind == "close":
            out.append(")" * len(flags.pop()) + ")")
        elif kind == "alternative":
            out.append(")" * len(flags[-1]) + "|" + "".join(flags[-1]))
        else:
            out.append(_translate_token(kind, text))
    return "".join(out) + ")" * len(flags[0])


def _translate_token(kind: str, text: str) -> str:
    """Translate one token that is neither a flag nor a group."""
    if kind == "end" or text == r"\z":
        return r"\Z"
    if kind == "wild":
        return BOUNDED_WILDCARD
    if kind == "cls":
        for name, members in POSIX_CLASSES.items():
            text = text.replace(name, members)
        # An unescaped bracket inside a class is literal, but `re` warns about it.
        return "[" + text[1:-1].replace("[", r"\[").replace(r"\\[", r"\[") + "]"
    return text
