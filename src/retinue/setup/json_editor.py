"""Edits JSON with comments by inserting and cutting text, so that all other bytes stay as they are.

Implements `DocumentEditor` with module-level functions. The second half of the module is a parser that
records the position of every node. Knows nothing of hosts or files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from retinue.setup.document_editor import FOREIGN, HIDDEN, DocumentUnreadable

DEFAULT_INDENT = "  "

_SAME_LINE_COMMENTS = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r'(?P<comment>//[^\r\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?', re.DOTALL
)


def set_entry(text: str, place: tuple[str, str], value: dict[str, object]) -> str:
    """Return the text with our entry added, or replaced in place."""
    container, name = place
    top = _parse_document(text)
    if top is None:
        newline = _newline(text)
        fresh = _indented_json({container: {name: value}}, DEFAULT_INDENT, "", newline)
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{fresh}{newline}"
    servers = _find_container(top, container)
    if servers is None:
        return _append_member(text, top, top, (container, {name: value}))
    own = servers.member(name)
    if own is None:
        return _append_member(text, top, servers, (name, value))
    return text[: own.value.start] + _render_value(text, top, own.start, value) + text[own.value.end :]


def remove_entry(text: str, place: tuple[str, str]) -> str:
    """Return the text without our entry."""
    container, name = place
    top = _parse_document(text)
    servers = None if top is None else _find_container(top, container)
    own = None if servers is None else servers.member(name)
    if servers is None or own is None:
        return text
    index = servers.members.index(own)
    before = servers.members[index - 1] if index else None
    cuts = [(_cut_start(text, servers, before, own), own.value.end)]
    if own.comma is not None:
        cuts.append((own.comma, own.comma + 1))
    elif before is not None and before.comma is not None:
        cuts.append((before.comma, before.comma + 1))
    end = servers.end
    for start, stop in sorted(cuts, reverse=True):
        text = text[:start] + text[stop:]
        end -= stop - start
    if not text[servers.start + 1 : end - 1].strip(" \t\r\n"):
        text = f"{text[: servers.start]}{{}}{text[end:]}"
    return text


def read_entry(text: str, place: tuple[str, str]) -> object:
    """Return the value of our entry, None if there is none, or `FOREIGN`."""
    container, name = place
    top = _parse_document(text)
    servers = None if top is None else _find_container(top, container)
    member = None if servers is None else servers.member(name)
    if member is None:
        return None
    value = to_python(member.value)
    return FOREIGN if value is None else value


def read_everything_else(text: str, place: tuple[str, str]) -> object:
    """Return all content except our entry, for comparison."""
    container, name = place
    top = _parse_document(text)
    if top is None:
        return {}
    rest = {member.key: to_python(member.value) for member in top.members}
    servers = _find_container(top, container)
    if servers is not None:
        neighbours = {member.key: to_python(member.value) for member in servers.members if member.key != name}
        rest[container] = neighbours
        if not neighbours:
            del rest[container]
    return rest


def mask_values(text: str, keep: Collection[str]) -> str:
    """Return the text for display, with comments and all values except those in `keep` hidden."""

    def shown(found: re.Match[str]) -> str:
        if found["comment"]:
            return f"// {HIDDEN}" if found["comment"].startswith("//") else f"/* {HIDDEN} */"
        visible = found["key"] or any(found["string"] == _json_string(value) for value in keep)
        return found[0] if visible else f'"{HIDDEN}"'

    return _TOKEN.sub(shown, text)


def _parse_document(text: str) -> ObjectNode | None:
    """Parse a document whose top level is an object. Returns None for an empty document."""
    node = parse_jsonc(text)
    if node is None or isinstance(node, ObjectNode):
        return node
    raise DocumentUnreadable("the document is not an object")


def _find_container(top: ObjectNode, key: str) -> ObjectNode | None:
    """Return the object with this key, or None. Raises `DocumentUnreadable` for another type."""
    found = top.member(key)
    if found is None:
        return None
    if isinstance(found.value, ObjectNode):
        return found.value
    raise DocumentUnreadable(f'"{key}" is not an object')


def _append_member(text: str, top: ObjectNode, parent: ObjectNode, member: tuple[str, object]) -> str:
    """Add a member at the end of `parent`, formatted like the members before it."""
    key, value = member
    newline = _newline(text)
    if not parent.members:
        outer = _line_indent(text, parent.start)
        unit = _indent_unit(text, top)
        inner = outer + unit
        written = f"{newline}{inner}{_json_string(key)}: {_indented_json(value, unit, inner, newline)}"
        inside = text[parent.start + 1 : parent.end - 1]
        if not inside.strip(" \t\r\n"):
            inside = newline + outer
        return text[: parent.start + 1] + written + inside + text[parent.end - 1 :]
    first, last = parent.members[0], parent.members[-1]
    spread = "\n" in text[parent.start : first.start]
    anchor = last.value.end if last.comma is None else last.comma + 1
    at = _match_end(_SAME_LINE_COMMENTS, text, anchor)
    # Text after a `//` comment would become part of it, so start a new line.
    lead = newline + _line_indent(text, first.start) if spread or "//" in text[anchor:at] else " "
    written = f"{lead}{_json_string(key)}: {_render_value(text, top, first.start, value, spread)}"
    if last.comma is None:
        return text[:anchor] + "," + text[anchor:at] + written + text[at:]
    return text[:at] + written + "," + text[at:]


def _cut_start(text: str, servers: ObjectNode, before: JsonMember | None, own: JsonMember) -> int:
    """Return where the cut must start to remove the line of our key and nothing else."""
    floor = servers.start + 1 if before is None or before.comma is None else before.comma + 1
    blank = len(text[floor : own.start].rstrip(" \t\r\n")) + floor
    newline_at = text.rfind("\n", blank, own.start)
    if newline_at < 0:
        return blank
    if newline_at > blank and text[newline_at - 1] == "\r":
        newline_at -= 1
    comments = _COMMENT.findall(text[floor:blank])
    end = own.value.end if own.comma is None else own.comma + 1
    rest_of_line = text[end:].split("\n", 1)[0].strip(" \t\r")
    would_swallow = bool(comments) and comments[-1].startswith("//") and rest_of_line[:2] not in ("", "//")
    return own.start if would_swallow else newline_at


def _render_value(
    text: str, top: ObjectNode, member_start: int, value: object, spread: bool | None = None
) -> str:
    """Format a value like its neighbours: over several lines if `spread`, otherwise on one line."""
    if spread is None:
        spread = not text[text.rfind("\n", 0, member_start) + 1 : member_start].strip(" \t\r")
    if not spread:
        return json.dumps(value, ensure_ascii=False)
    return _indented_json(value, _indent_unit(text, top), _line_indent(text, member_start), _newline(text))


def _indented_json(value: object, unit: str, indent: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _json_string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _newline(text: str) -> str:
    """Return the line ending that the text uses."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _line_indent(text: str, at: int) -> str:
    """Return the white space at the start of the line that contains position `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str, top: ObjectNode) -> str:
    """Return the indentation of one level, taken from the first member of the document."""
    if top.members and "\n" in text[top.start : top.members[0].start]:
        return _line_indent(text, top.members[0].start) or DEFAULT_INDENT
    return DEFAULT_INDENT


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


# The parser

MAX_DEPTH = 200
"""Deeper nesting is refused, to avoid a stack overflow."""

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"[-+.\w]+")


@dataclass(frozen=True, slots=True)
class JsonScalar:
    """A string, number, boolean or null."""

    start: int
    end: int
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class JsonArray:
    """An array."""

    start: int
    end: int
    items: tuple[JsonNode, ...]


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A key with its value, and the comma after it."""

    key: str
    start: int
    """Position of the key's opening quote."""
    value: JsonNode
    comma: int | None
    """Position of the comma after the value, if there is one."""


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """An object."""

    start: int
    end: int
    members: tuple[JsonMember, ...]

    def member(self, key: str) -> JsonMember | None:
        """Return the member with this key, or None."""
        return next((member for member in self.members if member.key == key), None)


JsonNode: TypeAlias = JsonScalar | JsonArray | ObjectNode


@lru_cache(maxsize=2)  # planning a change parses the old and the new text several times
def parse_jsonc(text: str) -> JsonNode | None:
    """Parse JSON with comments and trailing commas. Returns None if there is no value.

    Every node records its position in the text. Raises `DocumentUnreadable` if the text is not valid.
    """
    parser = _JsoncParser(text)
    parser.skip_space()
    if parser.at == len(text):
        return None
    node = parser.parse_node(0)
    parser.skip_space()
    if parser.at < len(text):
        raise parser.error("unexpected text after the end of the document")
    return node


def to_python(node: JsonNode) -> object:
    """Return the value as `json.loads` would."""
    match node:
        case JsonScalar(value=value):
            return value
        case JsonArray(items=items):
            return [to_python(item) for item in items]
        case ObjectNode(members=members):
            return {member.key: to_python(member.value) for member in members}


class _JsoncParser:
    """A recursive-descent parser. `at` is the current position in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, what: str, at: int | None = None) -> DocumentUnreadable:
        """Build the error for a problem in the line of position `at`, by default the current one."""
        return DocumentUnreadable(what, line=self.text.count("\n", 0, self.at if at is None else at) + 1)

    def skip_space(self) -> None:
        """Skip white space and comments."""
        self.at = _match_end(_TRIVIA, self.text, self.at)

    def parse_node(self, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise self.error("nested too deeply")
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._parse_object(depth)
            case "[":
                return self._parse_array(depth)
            case '"':
                start, value = self.at, self._parse_string()
                return JsonScalar(start, self.at, value)
            case _:
                return self._parse_word()

    def _parse_object(self, depth: int) -> ObjectNode:
        start = self.at
        members: list[JsonMember] = []
        seen: set[str] = set()
        self.at += 1
        self.skip_space()
        while not self._accept("}"):
            if members and members[-1].comma is None:
                raise self.error("expected ',' or '}'")
            key_start, key = self.at, self._parse_string()
            if key in seen:
                raise self.error("duplicate key in an object", key_start)
            seen.add(key)
            self.skip_space()
            if not self._accept(":"):
                raise self.error("expected ':' after a key")
            self.skip_space()
            value = self.parse_node(depth + 1)
            members.append(JsonMember(key, key_start, value, self._skip_comma()))
        return ObjectNode(start, self.at, tuple(members))

    def _parse_array(self, depth: int) -> JsonArray:
        start = self.at
        items: list[JsonNode] = []
        separated = True
        self.at += 1
        self.skip_space()
        while not self._accept("]"):
            if not separated:
                raise self.error("expected ',' or ']'")
            items.append(self.parse_node(depth + 1))
            separated = self._skip_comma() is not None
        return JsonArray(start, self.at, tuple(items))

    def _skip_comma(self) -> int | None:
        """Skip a comma with the space and comments around it. Returns its position, or None."""
        self.skip_space()
        at = self.at
        found = self._accept(",")
        self.skip_space()
        return at if found else None

    def _accept(self, character: str) -> bool:
        """Skip the character if it comes next. Returns whether it did."""
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def _parse_string(self) -> str:
        end = _match_end(_STRING, self.text, self.at)
        if end == self.at:
            raise self.error("expected a string in double quotes, on one line")
        value = self._load_json(end)
        assert isinstance(value, str)  # noqa: S101 - the pattern matches only strings
        return value

    def _parse_word(self) -> JsonScalar:
        start, end = self.at, _match_end(_WORD, self.text, self.at)
        if end == start or self.text[start:end] in ("NaN", "Infinity", "-Infinity"):
            raise self.error("expected a value")
        value = self._load_json(end)
        assert value is None or isinstance(value, int | float)  # noqa: S101 - no other word is valid JSON
        return JsonScalar(start, end, value)

    def _load_json(self, end: int) -> object:
        try:
            value: object = json.loads(self.text[self.at : end])
        except ValueError:
            raise self.error("not a valid JSON value") from None
        self.at = end
        return value
