"""JSON with comments and trailing commas, read into a tree that knows where each part stands in the text.

Reads only; knows nothing of hosts or of editing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from retinue.setup.document import DocumentUnreadable

MAX_DEPTH = 200
"""Nesting beyond this is refused rather than met with a stack overflow."""

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"[-+.\w]+")


@dataclass(frozen=True, slots=True)
class JsonScalar:
    start: int
    end: int
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Array:
    start: int
    end: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member:
    key: str
    start: int
    """Where the key's opening quote stands."""
    value: Node
    comma: int | None
    """Where the comma after the value stands, if there is one."""


@dataclass(frozen=True, slots=True)
class Object:
    start: int
    end: int
    members: tuple[Member, ...]

    def member(self, key: str) -> Member | None:
        return next((member for member in self.members if member.key == key), None)


Node: TypeAlias = JsonScalar | Array | Object


@lru_cache(maxsize=2)  # planning a change asks several questions about the text before and the text after
def parse(text: str) -> Node | None:
    """The document's tree; None when it holds nothing but space and comments."""
    reader = _Reader(text)
    reader.skip()
    if reader.at == len(text):
        return None
    node = reader.node(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.trouble("something follows the end of the document")
    return node


def plain(node: Node) -> object:
    """The value as `json.loads` would give it."""
    match node:
        case JsonScalar(value=value):
            return value
        case Array(items=items):
            return [plain(item) for item in items]
        case Object(members=members):
            return {member.key: plain(member.value) for member in members}


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def trouble(self, what: str, at: int | None = None) -> DocumentUnreadable:
        return DocumentUnreadable(what, line=self.text.count("\n", 0, self.at if at is None else at) + 1)

    def skip(self) -> None:
        self.at = self._end(_TRIVIA, self.at)

    def node(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.trouble("nested too deeply")
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                start, value = self.at, self._string()
                return JsonScalar(start, self.at, value)
            case _:
                return self._word()

    def _object(self, depth: int) -> Object:
        start = self.at
        members: list[Member] = []
        seen: set[str] = set()
        self.at += 1
        self.skip()
        while not self._take("}"):
            if members and members[-1].comma is None:
                raise self.trouble("expected ',' or '}'")
            key_start, key = self.at, self._string()
            if key in seen:
                raise self.trouble("the same key stands twice in one object", key_start)
            seen.add(key)
            self.skip()
            if not self._take(":"):
                raise self.trouble("expected ':' after a key")
            self.skip()
            value = self.node(depth + 1)
            members.append(Member(key, key_start, value, self._comma()))
        return Object(start, self.at, tuple(members))

    def _array(self, depth: int) -> Array:
        start = self.at
        items: list[Node] = []
        separated = True
        self.at += 1
        self.skip()
        while not self._take("]"):
            if not separated:
                raise self.trouble("expected ',' or ']'")
            items.append(self.node(depth + 1))
            separated = self._comma() is not None
        return Array(start, self.at, tuple(items))

    def _comma(self) -> int | None:
        """Steps over what separates one part from the next."""
        self.skip()
        at = self.at
        found = self._take(",")
        self.skip()
        return at if found else None

    def _take(self, character: str) -> bool:
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def _string(self) -> str:
        end = self._end(_STRING, self.at)
        if end == self.at:
            raise self.trouble("expected a string in double quotes, on one line")
        value = self._loaded(end)
        assert isinstance(value, str)  # noqa: S101 - the pattern admits nothing else
        return value

    def _word(self) -> JsonScalar:
        start, end = self.at, self._end(_WORD, self.at)
        if end == start or self.text[start:end] in ("NaN", "Infinity", "-Infinity"):
            raise self.trouble("expected a value")
        value = self._loaded(end)
        assert value is None or isinstance(value, int | float)  # noqa: S101 - words are nothing else
        return JsonScalar(start, end, value)

    def _loaded(self, end: int) -> object:
        try:
            value: object = json.loads(self.text[self.at : end])
        except ValueError:
            raise self.trouble("a value that JSON does not know") from None
        self.at = end
        return value

    def _end(self, pattern: re.Pattern[str], start: int) -> int:
        found = pattern.match(self.text, start)
        return found.end() if found else start
