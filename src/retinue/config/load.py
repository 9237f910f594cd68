"""Where settings come from: the project's file, the user's file, the environment, flags; later wins.

Knows nothing of what a setting means."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from retinue.config.settings import Settings
from retinue.core import ConfigInvalid

# MERGED schema: The settings as a flat table of dotted keys, and the check of one value against its row.
#
# Knows nothing of files or the environment.

Section = TypeVar("Section")


class InvalidValue(ValueError):
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
        """The value as the settings hold it, or `InvalidValue`."""
        if self.is_list:
            if not isinstance(value, list | tuple):
                raise InvalidValue(self.allowed)
            return tuple(self._item(item) for item in cast("list[object]", value))
        if self.is_table:
            if not isinstance(value, dict):
                raise InvalidValue(self.allowed)
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
                raise InvalidValue(self.allowed)
            return words[text.strip().lower()]
        if self.kind is int:
            digits = text.strip().replace("_", "")
            if not re.fullmatch(r"-?\d{1,18}", digits):
                raise InvalidValue(self.allowed)
            return self.check(int(digits))
        return self.check(text)

    def _item(self, value: object) -> Any:
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
        if self.item is Path:
            if not value:
                raise InvalidValue(self.allowed)
            return Path(value).expanduser()
        return value


def _collect_rows(kind: type, prefix: str = "", user_only: bool = False) -> Iterator[SettingRow]:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        only = user_only or bool(field.metadata.get("user_only"))
        if dataclasses.is_dataclass(hint):
            yield from _collect_rows(cast("type", hint), f"{prefix}{field.name}.", only)
        elif named := named_table_type(hint):
            yield from _collect_rows(named, f"{prefix}{field.name}.*.", only)
        else:
            bounds = {**field.metadata, "user_only": only, "required": _is_required(field)}
            yield SettingRow(prefix + field.name, _without_none(hint), bounds)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _without_none(hint: Any) -> Any:
    """The type of a value that was given: a setting that may be absent has None for its default alone."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if type(None) in get_args(hint) else hint


def named_table_type(hint: Any) -> type | None:
    """The class of a table whose keys are names the user chooses, such as `commands`."""
    item = get_args(hint)[1] if get_origin(hint) is Mapping else None
    return item if dataclasses.is_dataclass(item) and isinstance(item, type) else None


@cache
def setting_rows() -> Mapping[str, SettingRow]:
    """By key; `*` stands for a name the user chooses."""
    return {row.key: row for row in _collect_rows(Settings)}


def find_row(key: str) -> SettingRow | None:
    """The row for a key as the user wrote it."""
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
    """Everything that has settings below it; of tables with names the user chooses, the table itself."""
    found: set[str] = set()
    for key in setting_rows():
        section = key.partition(".*.")[0] if "*" in key else key.rpartition(".")[0]
        while section:
            found.add(section)
            section = section.rpartition(".")[0]
    return frozenset(found)


@cache
def _tables_of_names() -> frozenset[str]:
    return frozenset(key.partition(".*.")[0] for key in setting_rows() if "*" in key)


def is_section(key: str) -> bool:
    """Whether further keys stand below this one: `limits`, `commands`, `commands.NAME`."""
    before, _, name = key.rpartition(".")
    return snake_case_key(key) in section_keys() or (
        snake_case_key(before) in _tables_of_names() and bool(NAME_PATTERN.fullmatch(name))
    )


NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What a name the user chooses looks like: it becomes part of a tool's name."""


def snake_case_key(key: str) -> str:
    """`limits.maxFilesRead` and `limits.max-files-read` as `limits.max_files_read`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()


def closest_key(key: str) -> str | None:
    """The valid key that the wrong one most looks like."""
    whole = difflib.get_close_matches(key, setting_rows(), n=1, cutoff=0.6)
    if whole:
        return whole[0]
    leaf = key.rpartition(".")[2]
    leaves = {known.rpartition(".")[2]: known for known in setting_rows()}
    close = difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.6)
    return leaves[close[0]] if close else None


def build_settings(values: Mapping[str, Any]) -> Settings:
    """Settings from checked values by key; what is not given keeps its default."""
    return _build_section(Settings, "", values)


def _build_section(kind: type[Section], prefix: str, values: Mapping[str, Any]) -> Section:
    hints = get_type_hints(kind)
    given: dict[str, Any] = {}
    for field in dataclasses.fields(cast("Any", kind)):
        key, hint = prefix + field.name, hints[field.name]
        if dataclasses.is_dataclass(hint):
            given[field.name] = _build_section(cast("type[Any]", hint), key + ".", values)
        elif named := named_table_type(hint):
            below = (name.removeprefix(key + ".") for name in values if name.startswith(key + "."))
            names = sorted({name.partition(".")[0] for name in below})
            given[field.name] = {name: _build_section(named, f"{key}.{name}.", values) for name in names}
        elif key in values:
            given[field.name] = values[key]
    return kind(**given)


def missing_required_keys(given: Collection[str]) -> Iterator[str]:
    """Keys without which a named table makes no sense; `given` are keys, and tables that have none."""
    for key in given:
        for row_key, row in setting_rows().items():
            before, star, after = row_key.partition(".*.")
            if star and row.bounds["required"] and key.startswith(before + "."):
                name = key.removeprefix(before + ".").partition(".")[0]
                if f"{before}.{name}.{after}" not in given:
                    yield f"{before}.{name}.{after}"


def setting_values(settings: Settings) -> Iterator[tuple[str, SettingRow, Any]]:
    """Every key there is now, with its row and its value."""
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
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


FILE_NAME = "retinue.toml"
VARIABLE_PREFIX = "RETINUE_"
CHILD_TOKEN = "RETINUE_CHILD_TOKEN"  # noqa: S105 - the variable's name
DATA_DIR = "RETINUE_DATA_DIR"
CHILD_SOCKET = "RETINUE_CHILD_SOCKET"
RESERVED_VARIABLES = frozenset({"RETINUE_RUN_ID", CHILD_TOKEN, CHILD_SOCKET})
"""Variables of ours that are not settings: they mark the processes that a run started."""


KeyFormatter = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class SettingProblem:
    source: str
    key: str
    given: str
    wanted: str
    closest_key: str | None = None

    def __str__(self) -> str:
        text = f"{self.source}: {self.key}" if self.key else self.source
        if self.given:
            text += f" = {self.given}"
        text += f": {self.wanted}"
        return text + (f"; did you mean {self.closest_key}?" if self.closest_key else "")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    settings: Settings
    origins: Mapping[str, str]
    """For each key, the file, variable or flag that gave it; keys at their default are absent."""


@dataclass(slots=True)
class _Layers:
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[SettingProblem] = field(default_factory=list[SettingProblem])
    empty: dict[str, str] = field(default_factory=dict[str, str])
    """Tables without a setting, and the files they stand in: one that must have some is wrong."""

    def put(self, key: str, value: Any, origin: str) -> None:
        self.values[key] = value
        self.origins[key] = origin


def user_settings_file() -> Path:
    import platformdirs  # imported here because `retinue --help` does not need it

    return platformdirs.user_config_path("retinue", appauthor=False) / FILE_NAME


def find_project_file(start: Path) -> Path | None:
    """The nearest `retinue.toml` in this folder or one above it."""
    return next(
        (folder / FILE_NAME for folder in (start, *start.parents) if (folder / FILE_NAME).is_file()), None
    )


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    user: Path | None = None,
) -> LoadedSettings:
    """All layers together, or `ConfigInvalid` with every problem there is."""
    layers = _Layers()
    project = find_project_file(directory or Path.cwd())
    personal = user or user_settings_file()
    if project is not None and project != personal:
        _read_settings_file(layers, project, personal)
    if personal.is_file():
        _read_settings_file(layers, personal, personal)
    _read_environment(layers, os.environ if environment is None else environment)
    _read_flags(layers, flags or {})
    _check_required(layers)
    if layers.problems:
        raise invalid_settings(layers.problems)
    return LoadedSettings(build_settings(layers.values), layers.origins)


def load_settings_file(path: Path) -> LoadedSettings:
    """One file alone, read as the user's own, or `ConfigInvalid` with all that is wrong with it."""
    layers = _Layers()
    if not path.is_file():
        raise invalid_settings([SettingProblem(str(path), "", "", "no such file")])
    _read_settings_file(layers, path, path)
    _check_required(layers)
    if layers.problems:
        raise invalid_settings(layers.problems)
    return LoadedSettings(build_settings(layers.values), layers.origins)


def invalid_settings(problems: list[SettingProblem]) -> ConfigInvalid:
    count = "one setting is wrong" if len(problems) == 1 else f"{len(problems)} settings are wrong"
    return ConfigInvalid(
        count + "".join(f"\n  {problem}" for problem in problems),
        hint="`retinue config` lists every setting; `retinue config --check FILE` tries a file",
    )


def _check_required(layers: _Layers) -> None:
    for key in sorted(set(missing_required_keys((*layers.values, *layers.empty)))):
        row = find_row(key)
        wanted = f"is missing; it must be {row.allowed if row else 'given'}"
        table = key.rpartition(".")[0]
        files = {**layers.empty, **{each.rpartition(".")[0]: file for each, file in layers.origins.items()}}
        layers.problems.append(SettingProblem(files.get(table, "settings"), key, "", wanted))


def _read_settings_file(layers: _Layers, path: Path, personal: Path) -> None:
    try:
        tree = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        layers.problems.append(SettingProblem(str(path), "", "", f"not valid TOML: {error}"))
        return
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        layers.problems.append(SettingProblem(str(path), "", "", f"cannot be read: {reason}"))
        return
    for key, value in _flatten(tree):
        row = find_row(key)
        if value == {} and is_section(key):
            layers.empty[key] = str(path)
        elif row is None:
            layers.problems.append(_unknown_key(str(path), key, value))
        elif row.user_only and path != personal:
            wanted = f"a project may not set this; put it in {personal}"
            layers.problems.append(SettingProblem(str(path), key, repr(value), wanted))
        else:
            try:
                checked = row.check(value)
                if row.item is Path:
                    checked = _resolve_path(checked, path.parent, inside=path != personal)
                layers.put(_canonical_key(row.key, key), checked, str(path))
            except InvalidValue as error:
                layers.problems.append(SettingProblem(str(path), key, repr(value), f"must be {error}"))


def _resolve_path(value: Any, folder: Path, *, inside: bool) -> Any:
    """Relative paths belong to the file that names them; a project's may not leave the project."""
    if isinstance(value, tuple):
        return tuple(_resolve_path(item, folder, inside=inside) for item in cast("tuple[Path, ...]", value))
    path = Path(os.path.normpath(folder / value))
    if inside and not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidValue("a path inside the project that names it")
    return path


def _canonical_key(row_key: str, key: str) -> str:
    """The row's own spelling, with the name the user chose in the place of the star."""
    if "*" not in row_key:
        return row_key
    return row_key.replace("*", key.split(".")[row_key.split(".").index("*")])


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its dotted key, and every table without one."""
    for key, value in tree.items():
        if value and isinstance(value, dict) and is_section(prefix + key):
            yield from _flatten(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _unknown_key(source: str, key: str, value: object, spelling: KeyFormatter = str) -> SettingProblem:
    given = repr(value)
    section = snake_case_key(key).rpartition(".")[0]
    if snake_case_key(key) in section_keys():
        return SettingProblem(source, spelling(key), given, "must be a table of settings")
    near = closest_key(snake_case_key(key))
    known = [known.rpartition(".")[2] for known in setting_rows() if known.rpartition(".")[0] == section]
    known += sorted(section_keys()) if not section else []
    wanted = (
        f"no such setting; {section or 'the top level'} has: {', '.join(known)}"
        if known
        else "no such setting"
    )
    return SettingProblem(source, spelling(key), given, wanted, spelling(near) if near else None)


def variable_name(key: str) -> str:
    """`limits.max_files_read` as the name of its environment variable."""
    return VARIABLE_PREFIX + key.replace(".", "__").upper()


def _read_environment(layers: _Layers, environment: Mapping[str, str]) -> None:
    for name, text in sorted(environment.items()):
        if not name.startswith(VARIABLE_PREFIX) or name in RESERVED_VARIABLES:
            continue
        key = name.removeprefix(VARIABLE_PREFIX).lower().replace("__", ".")
        row = setting_rows().get(key)
        if row is None or "*" in key:
            layers.problems.append(_unknown_key("environment", key, text, variable_name))
            continue
        try:
            layers.put(key, row.from_text(text, os.pathsep), name)
        except InvalidValue as error:
            layers.problems.append(SettingProblem("environment", name, repr(text), f"must be {error}"))


def _read_flags(layers: _Layers, flags: Mapping[str, Any]) -> None:
    for key, value in flags.items():
        flag = "--root" if key == "roots" else "--" + key.replace("_", "-").replace(".", "-")
        try:
            layers.put(key, setting_rows()[key].check(value), flag)
        except InvalidValue as error:
            layers.problems.append(SettingProblem("command line", flag, repr(value), f"must be {error}"))
