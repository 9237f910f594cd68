"""Matches paths against globs: `?`, `*`, `**`, `[a-z]`, `[!a]`, `{a,b}` and `\\` as an escape.

Ignore files, policies and callers all use these rules, which are ripgrep's, or git's where the two differ:
only `**` as a whole component matches a `/`, and an unclosed `[` is an ordinary character.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from retinue.codebase.access.linear_regex import PatternInvalid, compile_regex
from retinue.core import InvalidInput

_ANY_PREFIX, _ANY_MIDDLE, _ANY_SUFFIX = "(?:/?|.*/)", "(?:/|/.*/)", "/.*"
_ANY_NAME = "[^/]*"
_NOTHING = r"[^\x00-\x{10FFFF}]"
_SPECIAL_CHARS = frozenset("?*[]{}\\")


def is_literal_glob(glob: str) -> bool:
    """Return whether a glob has no special characters and matches only itself."""
    return _SPECIAL_CHARS.isdisjoint(glob)


@functools.lru_cache(maxsize=4096)
def glob_matcher(*globs: str) -> Callable[[str], bool]:
    """Return a function that tells whether a whole `/`-separated path matches one of the globs."""
    if all(map(is_literal_glob, globs)):
        return frozenset(globs).__contains__
    try:
        regex = compile_regex("|".join([_GlobTranslator(glob).translate() for glob in globs]))
    except PatternInvalid:
        raise InvalidInput(
            f"not a valid glob: {', '.join(globs)}", hint="use ?, *, **, [a-z], {a,b}"
        ) from None
    head, tail = literal_ends(globs[0]) if len(globs) == 1 else ("", "")
    # Walks check every path, and comparing its ends first takes a twentieth of the time of a match.
    return lambda path: (
        path.startswith(head)
        and path.endswith(tail)
        and regex.fullmatch(path.encode("utf-8", "surrogateescape")) is not None
    )


def path_filter(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a path matches one of the globs and none of the `!globs`.

    As with ripgrep's `--glob`, a glob without `/` matches names at any depth, and one with `/` matches the
    path from the root. If there are only `!globs`, all other paths match. If there are no globs, all paths
    match.
    """
    wanted = glob_matcher(*(_at_any_depth(glob) for glob in globs if not glob.startswith("!")))
    unwanted = glob_matcher(*(_at_any_depth(glob[1:]) for glob in globs if glob.startswith("!")))
    wants_all = all(glob.startswith("!") for glob in globs)
    return lambda path: (wants_all or wanted(path)) and not unwanted(path)


def _at_any_depth(glob: str) -> str:
    """Let a glob without `/` match at any depth."""
    glob = glob.removeprefix("./")
    return glob.removeprefix("/") if "/" in glob else f"**/{glob}"


def literal_ends(glob: str) -> tuple[str, str]:
    """Return a prefix and a suffix that every matching path has."""
    specials = [index for index, char in enumerate(glob) if char in _SPECIAL_CHARS]
    # The slash of `**/name` may match nothing.
    return glob[: specials[0]], glob[specials[-1] + 1 :].lstrip("/")


class _GlobTranslator:
    """Translates a glob to a regular expression in one pass.

    `branches` has one list of pieces for each open alternative of `{a,b}`.
    """

    def __init__(self, glob: str) -> None:
        self.glob = glob
        self.position = 0
        self.branches: list[list[str]] = [[]]
        self.opened: list[int] = []
        self.classes_close = True

    def translate(self) -> str:
        while self.position < len(self.glob):
            char = self.glob[self.position]
            self.position += 1
            if char == "*":
                self.translate_star()
            elif char == "?":
                self.push("[^/]")
            elif char == "[" and self.classes_close:
                self.translate_class()
            elif char == "\\":
                if self.position == len(self.glob):
                    raise self.error("nothing follows the last \\")
                self.push(re.escape(self.glob[self.position]))
                self.position += 1
            elif char == "{":
                self.opened.append(len(self.branches))
                self.branches.append([])
            elif char == "}":
                self.close_alternatives()
            elif char == "," and self.opened:
                self.branches.append([])
            else:
                self.push(re.escape(char))
        if self.opened:
            raise self.error("a { is not closed")
        return ".*" if self.branches[0] == [_ANY_PREFIX] else "".join(self.branches[0])

    def push(self, piece: str) -> None:
        self.branches[-1].append(piece)

    def peek(self) -> str:
        return self.glob[self.position : self.position + 1]

    def error(self, reason: str) -> InvalidInput:
        return InvalidInput(
            f"not a valid glob: {self.glob!r}: {reason}", hint="write \\ before a special character"
        )

    def translate_star(self) -> None:
        """Translate `*`, or `**` if it is a whole component."""
        before = self.glob[self.position - 2 : self.position - 1]
        if self.peek() != "*":
            self.push(_ANY_NAME)
            return
        self.position += 1
        following, branch = self.peek(), self.branches[-1]
        ends = following == "" or (bool(self.opened) and following in ",}")
        if not branch and following in ("", "/"):
            self.push(_ANY_PREFIX)
            self.position += len(following)
        elif not branch or before != "/" or not (ends or following == "/"):
            self.push(_ANY_NAME)
        else:
            self.position += following == "/"
            last = branch.pop()
            self.push(last if last in (_ANY_PREFIX, _ANY_SUFFIX) else _ANY_SUFFIX if ends else _ANY_MIDDLE)

    def translate_class(self) -> None:
        """Translate `[...]`. An unclosed `[` is an ordinary character, and so is every later `[`."""
        start = self.position
        negated = self.peek() in ("!", "^")
        start += negated
        end = self.glob.find("]", start + 1)
        if end < 0:
            self.classes_close = False
            self.push(re.escape("["))
            return
        body, pieces, index = self.glob[start:end], "", 0
        while index < len(body):
            low = high = body[index]
            if body[index + 1 : index + 2] == "-" and index + 2 < len(body):
                high = body[index + 2]
                index += 2
            if high < low:
                raise self.error(f"the range {low}-{high} is reversed")
            pieces += _class_range(ord(low), ord(high))
            index += 1
        if negated:
            self.push(f"[^/{pieces}]")
        else:
            self.push(f"[{pieces}]" if pieces else _NOTHING)
        self.position = end + 1

    def close_alternatives(self) -> None:
        """Translate the end of `{a,b}`."""
        if not self.opened:
            raise self.error("a } has no matching {")
        start = self.opened.pop()
        choices = ["".join(branch) for branch in self.branches[start:]]
        del self.branches[start:]
        kept = [choice for choice in choices if choice]
        if kept:
            self.push(f"(?:{'|'.join(kept)})")


def _class_range(low: int, high: int) -> str:
    """Return the regex of a range in a character class, without `/`, which no class matches."""
    slash = ord("/")
    parts = ((low, min(high, slash - 1)), (max(low, slash + 1), high))
    if not low <= slash <= high:
        parts = ((low, high),)
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in parts if first <= last)
