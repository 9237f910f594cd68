"""The regular expression engine: RE2 where it is installed, else the standard library's `re`.

Both read UTF-8 bytes and the syntax of RE2, so that one set of rules gives the same findings on either.
Knows nothing of secrets."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol, cast

# MERGED go_syntax: From the regular expressions of Go and RE2 to those of Python's `re`.
#
# Covers what the rules use: flags in the middle of a group, `\z`, a strict `$`, and POSIX classes.
# Also bounds `.*`, over which `re`, unlike RE2, would backtrack through a whole text. Knows nothing of secrets.

TOKEN = re.compile(
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
BOUNDED_WILD = ".{0,200}"


def to_python_regex(regex: str) -> str:
    """The same expression for `re`."""
    out: list[str] = []
    # For each open group, the flags set inside it so far: they hold to the group's end, over every `|`.
    flags: list[list[str]] = [[]]
    for token in TOKEN.finditer(regex):
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
    if kind == "end" or text == r"\z":
        return r"\Z"
    if kind == "wild":
        return BOUNDED_WILD
    if kind == "cls":
        for name, members in POSIX_CLASSES.items():
            text = text.replace(name, members)
        # A bare bracket inside a class is literal; `re` warns that it may not stay so.
        return "[" + text[1:-1].replace("[", r"\[").replace(r"\\[", r"\[") + "]"
    return text


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
        return lambda lowered: found_keywords(matcher.Match(lowered + self.SENTINEL), len(keywords))


def found_keywords(found: list[int] | None, count: int) -> Iterable[int]:
    """The keywords found, or all of them if not even the sentinel after the last one was."""
    return (number for number in found if number < count) if found and count in found else range(count)


class ReEngine:
    """The fallback: the same findings, slower, and without RE2's promise of linear time."""

    def compile(self, regex: str) -> RegexPattern:
        return re.compile(to_python_regex(regex).encode())

    def keyword_finder(self, keywords: Sequence[bytes]) -> KeywordFinder:
        return lambda lowered: [number for number, keyword in enumerate(keywords) if keyword in lowered]


@cache
def best_engine() -> RegexEngine:
    try:
        return Re2Engine()
    except ImportError:
        return ReEngine()
