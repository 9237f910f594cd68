"""Globs to regular expressions: `?`, `*`, `**`, `[a-z]`, `[!a]`, `{a,b}` and `\\` as an escape.

One reading of globs for ignore files, policies and callers alike. It follows ripgrep, and git where the two
differ: nothing but `**` as a whole component crosses a `/`, an unclosed `[` is an ordinary character.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from retinue.codebase.linear_regex import PatternInvalid, compile_regex
from retinue.core import InvalidInput

PREFIX, MIDDLE, SUFFIX = "(?:/?|.*/)", "(?:/|/.*/)", "/.*"
ANY_NAME = "[^/]*"
NOTHING = r"[^\x00-\x{10FFFF}]"
SPECIAL = frozenset("?*[]{}\\")


def is_literal(glob: str) -> bool:
    return SPECIAL.isdisjoint(glob)


@functools.lru_cache(maxsize=4096)
def matcher(*globs: str) -> Callable[[str], bool]:
    """Whether a whole `/`-separated path fits one of the globs."""
    if all(map(is_literal, globs)):
        return frozenset(globs).__contains__
    try:
        regex = compile_regex("|".join(map(to_regex, globs)))
    except PatternInvalid:
        raise InvalidInput(f"not a glob: {', '.join(globs)}", hint="use ?, *, **, [a-z], {a,b}") from None
    head, tail = literal_ends(globs[0]) if len(globs) == 1 else ("", "")
    # Walks ask this of every path, and a look at its ends costs a twentieth of a match.
    return lambda path: (
        path.startswith(head)
        and path.endswith(tail)
        and regex.fullmatch(path.encode("utf-8", "surrogateescape")) is not None
    )


def literal_ends(glob: str) -> tuple[str, str]:
    """What every path that fits begins and ends with, as far as that is plain to see."""
    specials = [index for index, char in enumerate(glob) if char in SPECIAL]
    # The slash of `**/name` may stand for nothing.
    return glob[: specials[0]], glob[specials[-1] + 1 :].lstrip("/")


def to_regex(glob: str) -> str:
    return _Translator(glob).translate()


class _Translator:
    """Walks the glob once. `branches` holds one list of pieces for each open alternative."""

    def __init__(self, glob: str) -> None:
        self.glob = glob
        self.at = 0
        self.branches: list[list[str]] = [[]]
        self.opened: list[int] = []
        self.classes_close = True

    def translate(self) -> str:
        while self.at < len(self.glob):
            char = self.glob[self.at]
            self.at += 1
            if char == "*":
                self.star()
            elif char == "?":
                self.push("[^/]")
            elif char == "[" and self.classes_close:
                self.character_class()
            elif char == "\\":
                if self.at == len(self.glob):
                    raise self.invalid("nothing follows the last \\")
                self.push(re.escape(self.glob[self.at]))
                self.at += 1
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
            raise self.invalid("a { is never closed")
        return ".*" if self.branches[0] == [PREFIX] else "".join(self.branches[0])

    def push(self, piece: str) -> None:
        self.branches[-1].append(piece)

    def peek(self) -> str:
        return self.glob[self.at : self.at + 1]

    def invalid(self, why: str) -> InvalidInput:
        return InvalidInput(f"not a glob: {self.glob!r}: {why}")

    def star(self) -> None:
        before = self.glob[self.at - 2 : self.at - 1]
        if self.peek() != "*":
            self.push(ANY_NAME)
            return
        self.at += 1
        following, branch = self.peek(), self.branches[-1]
        ends = following == "" or (bool(self.opened) and following in ",}")
        if not branch and following in ("", "/"):
            self.push(PREFIX)
            self.at += len(following)
        elif not branch or before != "/" or not (ends or following == "/"):
            self.push(ANY_NAME)
        else:
            self.at += following == "/"
            last = branch.pop()
            self.push(last if last in (PREFIX, SUFFIX) else SUFFIX if ends else MIDDLE)

    def character_class(self) -> None:
        start = self.at
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
                raise self.invalid(f"the range {low}-{high} runs backwards")
            pieces += _members(ord(low), ord(high))
            index += 1
        if negated:
            self.push(f"[^/{pieces}]")
        else:
            self.push(f"[{pieces}]" if pieces else NOTHING)
        self.at = end + 1

    def close_alternatives(self) -> None:
        if not self.opened:
            raise self.invalid("a } closes nothing")
        start = self.opened.pop()
        choices = ["".join(branch) for branch in self.branches[start:]]
        del self.branches[start:]
        kept = [choice for choice in choices if choice]
        if kept:
            self.push(f"(?:{'|'.join(kept)})")


def _members(low: int, high: int) -> str:
    """A range of a character class, without the `/` that no class matches."""
    slash = ord("/")
    parts = ((low, min(high, slash - 1)), (max(low, slash + 1), high))
    if not low <= slash <= high:
        parts = ((low, high),)
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in parts if first <= last)
