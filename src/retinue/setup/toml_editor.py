"""Edits TOML by inserting and cutting whole tables, so that all other bytes stay as they are.

`tomllib` decides what the text means; the scanner below only finds where its statements are. Implements
`DocumentEditor` with module-level functions. Knows nothing of hosts or files.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from retinue.setup.document_editor import HIDDEN, DocumentUnreadable

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"#[^\n]*")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_KEY_PART = re.compile(r'[ \t]*("(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)[ \t]*')
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ERROR_LINE = re.compile(r" \(at line (\d+), column \d+\)| \(at end of document\)")


@dataclass(frozen=True, slots=True)
class TomlStatement:
    """A `[table]` header or a `key = value` pair, with its positions in the text."""

    start: int
    value_start: int
    """After the `=`. For a header, its end."""
    end: int
    """After the line break, with the comment on the same line."""
    path: tuple[str, ...]
    """The key, or the name of the table."""
    is_header: bool


def set_entry(text: str, place: tuple[str, str], value: dict[str, object]) -> str:
    """Return the text with our table added at the end, or replaced in place."""
    _container(text, place[0])
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join(_table_lines(place, value)) + newline
    spans = _own_spans(text, place)
    if spans:
        changed = _cut(text, spans[1:])
        start, end = spans[0]
        changed = changed[:start] + block + changed[end:]
    else:
        gap = "" if not text or text.endswith("\n") else newline
        changed = f"{text}{gap}{newline if text.strip() else ''}{block}"
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        raise DocumentUnreadable(
            f'"{place[0]}" cannot be edited safely in this form; write it as [{place[0]}.NAME] tables'
        ) from None
    return changed


def remove_entry(text: str, place: tuple[str, str]) -> str:
    """Return the text without our tables."""
    if read_entry(text, place) is None:
        return text
    spans = _own_spans(text, place)
    if not spans:
        raise DocumentUnreadable(f'"{".".join(place)}" is not a table of its own; remove it by hand')
    start, end = spans[0]
    before = text[:start]
    if end == len(text) and before.endswith("\n\n"):  # the empty line that `set_entry` writes
        spans[0] = (start - 1, end)
    elif end == len(text) and before.endswith("\r\n\r\n"):
        spans[0] = (start - 2, end)
    return _cut(text, spans)


def read_entry(text: str, place: tuple[str, str]) -> object:
    """Return the value of our entry, or None if there is none."""
    return _container(text, place[0]).get(place[1])


def read_everything_else(text: str, place: tuple[str, str]) -> object:
    """Return all content except our entry, for comparison."""
    container, name = place
    rest = dict(_parse(text))
    neighbours = {key: value for key, value in _container(text, container).items() if key != name}
    rest.pop(container, None)
    return {**rest, container: neighbours} if neighbours else rest


def mask_values(text: str, keep: Collection[str]) -> str:
    """Return the text for display, with comments and all strings except those in `keep` hidden."""
    shown = {_toml_string(value) for value in keep}

    def mask(found: re.Match[str]) -> str:
        if found[0].startswith("#"):
            return f"# {HIDDEN}"
        return found[0] if found[0] in shown else f'"{HIDDEN}"'

    token = re.compile(f"{_COMMENT.pattern}|{_STRING.pattern}", re.DOTALL)
    parts: list[str] = []
    at = 0
    for statement in _statements(text):
        parts.append(_COMMENT.sub(f"# {HIDDEN}", text[at : statement.start]))
        parts.append(text[statement.start : statement.value_start])
        parts.append(token.sub(mask, text[statement.value_start : statement.end]))
        at = statement.end
    return "".join((*parts, _COMMENT.sub(f"# {HIDDEN}", text[at:])))


@lru_cache(maxsize=2)  # planning a change parses the old and the new text several times
def _parse(text: str) -> dict[str, Any]:
    """Parse the text. The message of an error never repeats a value, which may be a secret."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _ERROR_LINE.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        raise DocumentUnreadable("not valid TOML", line=line) from None
    except RecursionError:
        raise DocumentUnreadable("nested too deeply") from None


def _container(text: str, key: str) -> dict[str, object]:
    """Return the table that contains the servers; empty if there is none."""
    found = _parse(text).get(key, {})
    if not isinstance(found, dict):
        raise DocumentUnreadable(f'"{key}" is not a table')
    return cast("dict[str, object]", found)


def _own_spans(text: str, place: tuple[str, str]) -> list[tuple[int, int]]:
    """Return where our table and its sub-tables start and end.

    A table ends with its last statement, so that comments and empty lines before the next table stay.
    """
    spans: list[tuple[int, int]] = []
    inside = False
    for statement in _statements(text):
        if statement.is_header:
            inside = statement.path[:2] == place
        if inside and statement.is_header:
            spans.append((statement.start, statement.end))
        elif inside:
            spans[-1] = (spans[-1][0], statement.end)
    return spans


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def _statements(text: str) -> Iterator[TomlStatement]:
    """Yield the statements of a valid document, in order."""
    at = _skip_blank(text, 0)
    while at < len(text):
        start = at
        is_header = text[at] == "["
        if is_header:
            brackets = 2 if text.startswith("[[", at) else 1
            path, at = _key(text, at + brackets)
            at += brackets
            value_start = at
        else:
            path, at = _key(text, at)
            value_start = at + 1
            at = _value_end(text, value_start)
        end = text.find("\n", at)
        at = len(text) if end < 0 else end + 1
        yield TomlStatement(start, value_start, at, path, is_header)
        at = _skip_blank(text, at)


def _skip_blank(text: str, at: int) -> int:
    """Skip white space, line breaks and comments."""
    while True:
        at = _end_of(_SPACE, text, at)
        if not text.startswith("#", at):
            return at
        at = _end_of(_COMMENT, text, at)


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return a dotted key that starts here, and its end."""
    parts: list[str] = []
    while found := _KEY_PART.match(text, at):
        part, at = found[1], found.end()
        parts.append(next(iter(tomllib.loads(f"{part} = 0"))))
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(parts), at


def _value_end(text: str, at: int) -> int:
    """Return the end of the value that starts here: after its brackets are closed, before the line break."""
    depth = 0
    while at < len(text):
        character = text[at]
        if character in "\"'":
            at = _end_of(_STRING, text, at)
            continue
        if character == "#":
            if depth == 0:
                return at
            at = _end_of(_COMMENT, text, at)
            continue
        if character == "\n" and depth == 0:
            return at
        depth += (character in "[{") - (character in "]}")
        at += 1
    return at


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at + 1


def _table_lines(place: tuple[str, str], value: dict[str, object]) -> list[str]:
    return [
        f"[{'.'.join(map(_toml_key, place))}]",
        *(f"{_toml_key(key)} = {_toml_value(each)}" for key, each in value.items()),
    ]


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml_string(key)


def _toml_value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return _toml_string(value)
        case list():
            return f"[{', '.join(map(_toml_value, cast('list[object]', value)))}]"
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return f"{{ {', '.join(f'{_toml_key(key)} = {_toml_value(each)}' for key, each in pairs)} }}"
        case _:
            raise TypeError(f"no TOML for {type(value).__name__}")


def _toml_string(value: str) -> str:
    """Return a basic string. JSON escapes the same characters, except for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
