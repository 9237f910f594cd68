"""The settings as a flat table of dotted keys, and the check of one value against its row.

Knows nothing of files or the environment.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from retinue.config.settings import Settings

Made = TypeVar("Made")


class Wrong(ValueError):
    """A value that does not fit; the text says what is allowed."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    key: str
    """Dotted, in snake_case: `limits.max_files_read`."""
    kind: Any
    bounds: Mapping[str, Any]

    @property
    def allowed(self) -> str:
        """What may stand here, in words."""
        if choices := self.choices:
            many = "a list of: " if self.is_list else "one of: "
            return many + ", ".join(choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            words = ["a whole number"]
            for name, word in (("at_least", "of at least"), ("at_most", "of at most")):
                if self.bounds.get(name) is not None:
                    words.append(f"{word} {self.bounds[name]}")
            return " ".join(words)
        if self.is_list:
            return "a list of paths" if self.item is Path else "a list of strings"
        if self.is_table:
            return "a table of strings"
        return "a path" if self.kind is Path else "a string"

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def is_table(self) -> bool:
        return get_origin(self.kind) is Mapping

    @property
    def item(self) -> Any:
        return get_args(self.kind)[0] if self.is_list else self.kind

    @property
    def choices(self) -> tuple[str, ...]:
        literal = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        return literal or self.bounds.get("one_of", ())

    @property
    def user_only(self) -> bool:
        return bool(self.bounds.get("user_only"))

    def check(self, value: object) -> Any:
        """The value as the settings hold it, or `Wrong`."""
        if self.is_list:
            if not isinstance(value, list | tuple):
                raise Wrong(self.allowed)
            return tuple(self._item(item) for item in cast("list[object]", value))
        if self.is_table:
            if not isinstance(value, dict):
                raise Wrong(self.allowed)
            table = cast("dict[str, object]", value)
            return {name: self._item(item) for name, item in table.items()}
        return self._item(value)

    def from_text(self, text: str, separator: str) -> Any:
        """The same from an environment variable, where everything is text."""
        if self.is_list:
            parts = text.split(separator if self.item is Path else ",")
            return self.check([part.strip() for part in parts if part.strip()])
        if self.kind is bool:
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            if text.strip().lower() not in words:
                raise Wrong(self.allowed)
            return words[text.strip().lower()]
        if self.kind is int:
            digits = text.strip().replace("_", "")
            if not re.fullmatch(r"-?\d{1,18}", digits):
                raise Wrong(self.allowed)
            return self.check(int(digits))
        return self.check(text)

    def _item(self, value: object) -> Any:
        if self.kind is bool:
            if not isinstance(value, bool):
                raise Wrong(self.allowed)
            return value
        if self.kind is int:
            low, high = self.bounds.get("at_least"), self.bounds.get("at_most")
            if not isinstance(value, int) or isinstance(value, bool):
                raise Wrong(self.allowed)
            if (low is not None and value < low) or (high is not None and value > high):
                raise Wrong(self.allowed)
            return value
        if not isinstance(value, str) or "\0" in value or (self.choices and value not in self.choices):
            raise Wrong(self.allowed)
        if self.item is Path:
            if not value:
                raise Wrong(self.allowed)
            return Path(value).expanduser()
        return value


def _rows(kind: type, prefix: str = "", user_only: bool = False) -> Iterator[SettingRow]:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        only = user_only or bool(field.metadata.get("user_only"))
        if dataclasses.is_dataclass(hint):
            yield from _rows(cast("type", hint), f"{prefix}{field.name}.", only)
        elif named := named_kind(hint):
            yield from _rows(named, f"{prefix}{field.name}.*.", only)
        else:
            bounds = {**field.metadata, "user_only": only, "required": _is_required(field)}
            yield SettingRow(prefix + field.name, _given(hint), bounds)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _given(hint: Any) -> Any:
    """The type of a value that was given: a setting that may be absent has None for its default alone."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if type(None) in get_args(hint) else hint


def named_kind(hint: Any) -> type | None:
    """The class of a table whose keys are names the user chooses, such as `commands`."""
    item = get_args(hint)[1] if get_origin(hint) is Mapping else None
    return item if dataclasses.is_dataclass(item) and isinstance(item, type) else None


@cache
def rows() -> Mapping[str, SettingRow]:
    """By key; `*` stands for a name the user chooses."""
    return {row.key: row for row in _rows(Settings)}


def row_of(key: str) -> SettingRow | None:
    """The row for a key as the user wrote it."""
    found = rows().get(snake(key))
    if found is not None and "*" not in key:
        return found
    parts = key.split(".")
    for place in range(1, len(parts) - 1):
        before, name, after = ".".join(parts[:place]), parts[place], ".".join(parts[place + 1 :])
        found = rows().get(f"{snake(before)}.*.{snake(after)}")
        if found is not None and NAME.fullmatch(name):
            return found
    return None


@cache
def sections() -> frozenset[str]:
    """Everything that has settings below it; of tables with names the user chooses, the table itself."""
    found: set[str] = set()
    for key in rows():
        section = key.partition(".*.")[0] if "*" in key else key.rpartition(".")[0]
        while section:
            found.add(section)
            section = section.rpartition(".")[0]
    return frozenset(found)


@cache
def _tables_of_names() -> frozenset[str]:
    return frozenset(key.partition(".*.")[0] for key in rows() if "*" in key)


def is_section(key: str) -> bool:
    """Whether further keys stand below this one: `limits`, `commands`, `commands.NAME`."""
    before, _, name = key.rpartition(".")
    return snake(key) in sections() or (snake(before) in _tables_of_names() and bool(NAME.fullmatch(name)))


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What a name the user chooses looks like: it becomes part of a tool's name."""


def snake(key: str) -> str:
    """`limits.maxFilesRead` and `limits.max-files-read` as `limits.max_files_read`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()


def nearest(key: str) -> str | None:
    """The valid key that the wrong one most looks like."""
    whole = difflib.get_close_matches(key, rows(), n=1, cutoff=0.6)
    if whole:
        return whole[0]
    leaf = key.rpartition(".")[2]
    leaves = {known.rpartition(".")[2]: known for known in rows()}
    close = difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.6)
    return leaves[close[0]] if close else None


def build(values: Mapping[str, Any]) -> Settings:
    """Settings from checked values by key; what is not given keeps its default."""
    return _make(Settings, "", values)


def _make(kind: type[Made], prefix: str, values: Mapping[str, Any]) -> Made:
    hints = get_type_hints(kind)
    given: dict[str, Any] = {}
    for field in dataclasses.fields(cast("Any", kind)):
        key, hint = prefix + field.name, hints[field.name]
        if dataclasses.is_dataclass(hint):
            given[field.name] = _make(cast("type[Any]", hint), key + ".", values)
        elif named := named_kind(hint):
            below = (name.removeprefix(key + ".") for name in values if name.startswith(key + "."))
            names = sorted({name.partition(".")[0] for name in below})
            given[field.name] = {name: _make(named, f"{key}.{name}.", values) for name in names}
        elif key in values:
            given[field.name] = values[key]
    return kind(**given)


def missing(given: Collection[str]) -> Iterator[str]:
    """Keys without which a named table makes no sense; `given` are keys, and tables that have none."""
    for key in given:
        for row_key, row in rows().items():
            before, star, after = row_key.partition(".*.")
            if star and row.bounds["required"] and key.startswith(before + "."):
                name = key.removeprefix(before + ".").partition(".")[0]
                if f"{before}.{name}.{after}" not in given:
                    yield f"{before}.{name}.{after}"


def setting_values(settings: Settings) -> Iterator[tuple[str, SettingRow, Any]]:
    """Every key there is now, with its row and its value."""
    for key, row in rows().items():
        section, star, leaf = key.partition(".*.")
        if star:
            named = cast("Mapping[str, Any]", value_of(settings, section))
            yield from (
                (f"{section}.{name}.{leaf}", row, value_of(value, leaf)) for name, value in named.items()
            )
        else:
            yield key, row, value_of(settings, key)


def value_of(settings: object, key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value
