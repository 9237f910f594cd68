"""The flat table of settings: one row per dotted key, derived from the dataclasses in `settings.py`.

A row knows the type, the bounds and the allowed values of its setting. Also builds `Settings` from checked
values by key. Knows nothing of where values come from.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from retinue.config.settings import ProjectMay, Settings

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Allowed names for user-defined tables, such as `commands.NAME`. They become part of tool names."""

Section = TypeVar("Section")


class InvalidValue(ValueError):
    """A setting's value is not allowed. The message says what is allowed."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: its dotted key, its type and the bounds of its value."""

    key: str
    """Dotted, in snake_case: `limits.max_files_read`."""
    kind: Any
    """The type annotation of the setting, without `None`."""
    bounds: Mapping[str, Any]
    """`at_least`, `at_most`, `one_of`, `form`, `project` and `required`."""

    @property
    def allowed(self) -> str:
        """Describe the allowed values in words."""
        if choices := self.choices:
            many = "a list of: " if self.is_list else "one of: "
            return many + ", ".join(choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            low, high = self.bounds.get("at_least"), self.bounds.get("at_most")
            if low is not None and high is not None:
                return f"an integer from {low} to {high}"
            return "an integer" if low is None else f"an integer of at least {low}"
        if form := self.bounds.get("form"):
            return f"a list of {form[1]}" if self.is_list else form[1]
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
        """The type of the list's items, or of the value itself."""
        return get_args(self.kind)[0] if self.is_list else self.kind

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed strings. Empty if any string is allowed."""
        literal = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        return literal or self.bounds.get("one_of", ())

    @property
    def project(self) -> ProjectMay:
        """How a project's settings file may change it. By default, it may not."""
        return self.bounds.get("project") or "ignored"

    def check(self, value: object) -> Any:
        """Check a value from TOML or a flag and convert it. Raises `InvalidValue`."""
        if self.is_list:
            if not isinstance(value, list | tuple):
                raise InvalidValue(self.allowed)
            return tuple(self._check_item(item) for item in cast("list[object]", value))
        if self.is_table:
            if not isinstance(value, dict):
                raise InvalidValue(self.allowed)
            table = cast("dict[str, object]", value)
            return {name: self._check_item(item) for name, item in table.items()}
        return self._check_item(value)

    def from_text(self, text: str, separator: str) -> Any:
        """Check and convert the value of an environment variable. `separator` splits lists of paths."""
        if self.is_list:
            parts = text.split(separator if self.item is Path else ",")
            return self.check([part.strip() for part in parts if part.strip()])
        if self.kind is bool:
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            if text.strip().lower() not in words:
                raise InvalidValue(self.allowed)
            return words[text.strip().lower()]
        if self.kind is int:
            digits = text.strip().replace("_", "")
            if not re.fullmatch(r"-?\d{1,18}", digits):
                raise InvalidValue(self.allowed)
            return self.check(int(digits))
        return self.check(text)

    def _check_item(self, value: object) -> Any:
        """Check a single value, or one item of a list or table."""
        if self.kind is bool:
            if not isinstance(value, bool):
                raise InvalidValue(self.allowed)
            return value
        if self.kind is int:
            low, high = self.bounds.get("at_least"), self.bounds.get("at_most")
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidValue(self.allowed)
            if (low is not None and value < low) or (high is not None and value > high):
                raise InvalidValue(self.allowed)
            return value
        if not isinstance(value, str) or "\0" in value or (self.choices and value not in self.choices):
            raise InvalidValue(self.allowed)
        form = self.bounds.get("form")
        if form and not re.fullmatch(form[0], value):
            raise InvalidValue(self.allowed)
        if self.item is Path:
            if not value:
                raise InvalidValue(self.allowed)
            try:
                return Path(value).expanduser()
            except RuntimeError:  # the home of a user who does not exist
                raise InvalidValue(self.allowed) from None
        return value


def _collect_rows(kind: type, prefix: str = "", project: ProjectMay | None = None) -> Iterator[SettingRow]:
    """Yield a row for each setting of a settings class and of the classes nested in it."""
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        hint = hints[each.name]
        may: ProjectMay | None = each.metadata.get("project") or project
        if dataclasses.is_dataclass(hint):
            yield from _collect_rows(cast("type", hint), f"{prefix}{each.name}.", may)
        elif named := named_table_type(hint):
            yield from _collect_rows(named, f"{prefix}{each.name}.*.", may)
        else:
            bounds = {**each.metadata, "project": may, "required": _is_required(each)}
            yield SettingRow(prefix + each.name, _without_none(hint), bounds)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    """Whether a field has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _without_none(hint: Any) -> Any:
    """Turn `X | None` into `X`: None is only a default, never a value that the user writes."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if type(None) in get_args(hint) else hint


def named_table_type(hint: Any) -> type | None:
    """Return the class of the entries of a user-named table such as `commands`, or None for other types."""
    item = get_args(hint)[1] if get_origin(hint) is Mapping else None
    return item if dataclasses.is_dataclass(item) and isinstance(item, type) else None


@cache
def setting_rows() -> Mapping[str, SettingRow]:
    """Return all settings by key. `*` stands for a name that the user chooses, as in `commands.*.argv`."""
    return {row.key: row for row in _collect_rows(Settings)}


def find_row(key: str) -> SettingRow | None:
    """Return the row for a key, however the user spells it, or None if there is no such setting."""
    found = setting_rows().get(snake_case_key(key))
    if found is not None and "*" not in key:
        return found
    parts = key.split(".")
    for place in range(1, len(parts) - 1):
        before, name, after = ".".join(parts[:place]), parts[place], ".".join(parts[place + 1 :])
        found = setting_rows().get(f"{snake_case_key(before)}.*.{snake_case_key(after)}")
        if found is not None and NAME_PATTERN.fullmatch(name):
            return found
    return None


@cache
def section_keys() -> frozenset[str]:
    """Return all keys that contain further settings, such as `commands`, but not `commands.*`."""
    found: set[str] = set()
    for key in setting_rows():
        section = key.partition(".*.")[0] if "*" in key else key.rpartition(".")[0]
        while section:
            found.add(section)
            section = section.rpartition(".")[0]
    return frozenset(found)


@cache
def _user_named_tables() -> frozenset[str]:
    """Return the tables whose entries the user names, such as `commands`."""
    return frozenset(key.partition(".*.")[0] for key in setting_rows() if "*" in key)


def is_section(key: str) -> bool:
    """Whether a key contains further settings: `limits`, `commands`, `commands.NAME`."""
    before, _, name = key.rpartition(".")
    return snake_case_key(key) in section_keys() or (
        snake_case_key(before) in _user_named_tables() and bool(NAME_PATTERN.fullmatch(name))
    )


def snake_case_key(key: str) -> str:
    """Convert `limits.maxFilesRead` and `limits.max-files-read` to `limits.max_files_read`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()


def closest_key(key: str) -> str | None:
    """Return the valid key that is closest to `key`, or None if none is close."""
    import difflib  # for mistakes only; costs memory

    whole = difflib.get_close_matches(key, setting_rows(), n=1, cutoff=0.6)
    if whole:
        return whole[0]
    leaf = key.rpartition(".")[2]
    leaves = {known.rpartition(".")[2]: known for known in setting_rows()}
    close = difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.6)
    return leaves[close[0]] if close else None


def build_settings(values: Mapping[str, Any]) -> Settings:
    """Build the settings from checked values by dotted key. Missing keys keep their defaults."""
    return _build_section(Settings, "", values)


def _build_section(kind: type[Section], prefix: str, values: Mapping[str, Any]) -> Section:
    """Build one settings class and the classes nested in it. `values` maps dotted keys to values."""
    hints = get_type_hints(kind)
    values_by_field: dict[str, Any] = {}
    for each in dataclasses.fields(cast("Any", kind)):
        key, hint = prefix + each.name, hints[each.name]
        if dataclasses.is_dataclass(hint):
            values_by_field[each.name] = _build_section(cast("type[Any]", hint), key + ".", values)
        elif named := named_table_type(hint):
            below = (name.removeprefix(key + ".") for name in values if name.startswith(key + "."))
            names = sorted({name.partition(".")[0] for name in below})
            values_by_field[each.name] = {
                name: _build_section(named, f"{key}.{name}.", values) for name in names
            }
        elif key in values:
            values_by_field[each.name] = values[key]
    return kind(**values_by_field)


def missing_required_keys(keys: Collection[str]) -> Iterator[str]:
    """Yield required keys that are missing from user-named tables. `keys` also contains empty tables."""
    for key in keys:
        for row_key, row in setting_rows().items():
            before, star, after = row_key.partition(".*.")
            if star and row.bounds["required"] and key.startswith(before + "."):
                name = key.removeprefix(before + ".").partition(".")[0]
                if f"{before}.{name}.{after}" not in keys:
                    yield f"{before}.{name}.{after}"


def setting_values(settings: Settings) -> Iterator[tuple[str, SettingRow, Any]]:
    """Yield every key with its row and its current value."""
    for key, row in setting_rows().items():
        section, star, leaf = key.partition(".*.")
        if star:
            named = cast("Mapping[str, Any]", _value_at(settings, section))
            yield from (
                (f"{section}.{name}.{leaf}", row, _value_at(value, leaf)) for name, value in named.items()
            )
        else:
            yield key, row, _value_at(settings, key)


def _value_at(settings: object, key: str) -> Any:
    """Return the value at a dotted key."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value
