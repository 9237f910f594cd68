"""Changes one setting in the text of a settings file. Everything else in the text stays as it is.

`tomllib` decides what the text means: a change is refused unless the new text means the old one with that
setting changed. Knows nothing of where files are.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from retinue.config.load import SettingProblem, canonical_key, settings_error, show_value
from retinue.config.setting_rows import InvalidValue, SettingRow, closest_key, find_row, snake_case_key

_HEADER = re.compile(r"\s*\[")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*)\s*=""")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A `[table]` header or a `key = value` pair, with its lines."""

    first: int
    end: int
    """The line after it."""
    path: tuple[str, ...]
    """The table of a header, or the whole key of a value."""
    is_header: bool


@dataclass(frozen=True, slots=True)
class NamedSetting:
    """A setting that a person named, with the names of user-named tables such as `commands.NAME`."""

    row: SettingRow
    path: tuple[str, ...]

    @classmethod
    def find(cls, key: str) -> NamedSetting:
        """Find a setting by its key. Raises `ConfigInvalid` with the closest one."""
        row = find_row(key)
        if row is None:
            near = closest_key(snake_case_key(key))
            raise settings_error([SettingProblem("command line", key, "", "no such setting", near)])
        return cls(row, tuple(canonical_key(row.key, key).split(".")))

    @property
    def key(self) -> str:
        return ".".join(self.path)

    def parse(self, texts: Sequence[str]) -> Any:
        """Check a value that a person typed: one text, or several for a list. Raises `ConfigInvalid`."""
        try:
            if len(texts) == 1:
                return self.row.from_text(texts[0], os.pathsep)
            return self.row.check(list(texts))
        except InvalidValue as error:
            problem = SettingProblem(
                "command line",
                self.key,
                show_value(texts[0] if len(texts) == 1 else list(texts)),
                f"must be {error}",
            )
            raise settings_error([problem]) from None

    def is_at(self, path: tuple[str, ...]) -> bool:
        """Whether a path in a file means this setting, in whatever spelling."""
        return len(path) == len(self.path) and self.is_below(path)

    def is_below(self, path: tuple[str, ...]) -> bool:
        """Whether a path in a file means a table that contains this setting, or the setting itself."""
        pattern = self.row.key.split(".")
        return len(path) <= len(self.path) and all(
            given == own if part == "*" else snake_case_key(given) == own
            for given, own, part in zip(path, self.path, pattern, strict=False)
        )


def change_setting(text: str, setting: NamedSetting, value: Any) -> str | None:
    """The text with the setting set to the value, or without it if the value is None.

    Returns None if this text cannot be changed safely. Raises `tomllib.TOMLDecodeError` if it is not valid.
    """
    before = _flatten(tomllib.loads(text))
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    statements = list(_statements(lines))
    existing = [each for each in statements if not each.is_header and setting.is_at(each.path)]
    if existing:
        found = existing[-1]
        new = [] if value is None else [_replaced(lines[found.first : found.end], value)]
        lines[found.first : found.end] = new
    elif value is not None:
        _insert(lines, statements, setting, value)
    expected = {path: each for path, each in before.items() if not setting.is_at(path)}
    changed = "".join(lines)
    if not _parses(changed):
        return None
    meant = _flatten(tomllib.loads(changed))
    others = {path: each for path, each in meant.items() if not setting.is_at(path)}
    own = [each for path, each in meant.items() if setting.is_at(path)]
    return changed if others == expected and own == ([] if value is None else [_plain(value)]) else None


def _insert(lines: list[str], statements: list[_Statement], setting: NamedSetting, value: Any) -> None:
    """Add the setting at the end of its table, or a new table at the end of the text."""
    table, line = setting.path[:-1], f"{_toml_key(setting.path[-1])} = {_toml(value)}\n"
    headers = [each for each in statements if each.is_header]
    if not table:
        first_header = headers[0].first if headers else len(lines)
        last = [each for each in statements if not each.is_header and each.first < first_header]
        at = last[-1].end if last else first_header
        lines.insert(at, line if last or not headers else f"{line}\n")
        return
    own = [each for each in headers if len(each.path) == len(table) and setting.is_below(each.path)]
    if not own:
        gap = ["\n"] if lines and lines[-1].strip() else []
        lines += [*gap, f"[{'.'.join(map(_toml_key, table))}]\n", line]
        return
    following = [each.first for each in headers if each.first > own[-1].first]
    limit = following[0] if following else len(lines)
    inside = [each.end for each in statements if own[-1].first <= each.first < limit]
    lines.insert(inside[-1], line)


def _replaced(old: list[str], value: Any) -> str:
    """A statement with another value, and with its comment if it is one line."""
    start = _KEY.match(old[0])
    head = old[0][: start.end()] if start else ""
    comment = ""
    if len(old) == 1:
        for found in re.finditer("#", old[0]):
            if _parses(old[0][: found.start()]):
                comment = "  " + old[0][found.start() :].rstrip("\n")
                break
    return f"{head} {_toml(value)}{comment}\n"


def _statements(lines: list[str]) -> Iterator[_Statement]:
    """The statements of a valid document. A value ends where its lines can be parsed."""
    table: tuple[str, ...] = ()
    at = 0
    while at < len(lines):
        line = lines[at]
        key = _KEY.match(line)
        if _HEADER.match(line) and _parses(line):
            table = _path_of(tomllib.loads(line.replace("[[", "[").replace("]]", "]")))
            yield _Statement(at, at + 1, table, is_header=True)
            at += 1
        elif key:
            end = at + 1
            while end < len(lines) and not _parses("".join(lines[at:end])):
                end += 1
            yield _Statement(at, end, (*table, *_path_of(tomllib.loads(f"{key[1]} = {{}}"))), is_header=False)
            at = end
        else:
            at += 1


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _path_of(tree: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a tree that has one branch."""
    path: list[str] = []
    while tree:
        [(name, below)] = tree.items()
        path.append(name)
        tree = cast("Mapping[str, Any]", below)
    return tuple(path)


def _flatten(tree: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Each value by its path."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            found |= _flatten(cast("dict[str, Any]", value), (*prefix, key))
        elif value != {}:
            found[(*prefix, key)] = value
    return found


def _plain(value: Any) -> Any:
    """A checked value as TOML has it."""
    match value:
        case tuple():
            return [_plain(each) for each in cast("tuple[Any, ...]", value)]
        case Path():
            return str(value)
        case _:
            return value


def _toml(value: Any) -> str:
    plain = _plain(value)
    if isinstance(plain, list):
        return f"[{', '.join(map(_toml, cast('list[Any]', plain)))}]"
    # A basic string of TOML. JSON escapes the same characters, except for DEL.
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
