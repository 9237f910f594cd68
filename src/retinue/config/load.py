"""Loads settings from the project's file, the user's file, environment variables and command line flags.

The sources are read in this order, and later ones override earlier ones. Every value is checked against its
row in a flat table of dotted keys, which is derived from the dataclasses in `settings.py`. Knows nothing of
what a setting means.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from retinue.config.settings import ProjectMay, Settings
from retinue.core import ConfigInvalid

FILE_NAME = "retinue.toml"
VARIABLE_PREFIX = "RETINUE_"
CHILD_TOKEN = "RETINUE_CHILD_TOKEN"  # noqa: S105 - the variable's name
DATA_DIR = "RETINUE_DATA_DIR"
CHILD_SOCKET = "RETINUE_CHILD_SOCKET"
RESERVED_VARIABLES = frozenset({"RETINUE_RUN_ID", CHILD_TOKEN, CHILD_SOCKET})
"""Variables that are not settings: Retinue sets them for the processes that a run starts."""
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Allowed names for user-defined tables, such as `commands.NAME`. They become part of tool names."""

MAX_FILE_BYTES = 262_144
"""Largest settings file that is read."""
MAX_PROBLEMS = 50
"""Problems that are reported at once."""
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""")
"""A key with more parts than any setting has. Takes time in proportion to the text."""

KeyFormatter = Callable[[str], str]
Section = TypeVar("Section")


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One invalid setting: where it is set, its value, and what is wrong."""

    source: str
    """A file, or `environment` or `command line`."""
    key: str
    value: str
    message: str
    closest_key: str | None = None

    def __str__(self) -> str:
        text = f"{self.source}: {self.key}" if self.key else self.source
        if self.value:
            text += f" = {self.value}"
        text += f": {self.message}"
        return text + (f"; did you mean {self.closest_key}?" if self.closest_key else "")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The merged settings and where each value comes from."""

    settings: Settings
    origins: Mapping[str, str]
    """For each key that is set, the file, variable or flag that set it."""
    ignored: tuple[SettingProblem, ...] = ()
    """The settings of the project's file that do not count, because a project may not decide them."""


@dataclass(slots=True)
class _Layers:
    """The values collected so far. A later source overwrites the values of an earlier one."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[SettingProblem] = field(default_factory=list[SettingProblem])
    ignored: list[SettingProblem] = field(default_factory=list[SettingProblem])
    empty: dict[str, str] = field(default_factory=dict[str, str])
    """Empty tables, with the files they are in. They are remembered because they may lack required keys."""

    def put(self, key: str, value: Any, origin: str) -> None:
        """Set a value and record where it comes from."""
        self.values[key] = value
        self.origins[key] = origin


def user_settings_file() -> Path:
    """Return the path of the user's own settings file. It may not exist."""
    import platformdirs  # imported here because `retinue --help` does not need it

    return platformdirs.user_config_path("retinue", appauthor=False) / FILE_NAME


def find_project_file(start: Path) -> Path | None:
    """Find the nearest `retinue.toml` in a folder or its parents."""
    return next(
        (folder / FILE_NAME for folder in (start, *start.parents) if (folder / FILE_NAME).is_file()), None
    )


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    user: Path | None = None,
    by_run: bool = False,
) -> LoadedSettings:
    """Load and merge all sources. Raises `ConfigInvalid` with every problem found.

    `directory` is where the search for the project's file starts; `user` replaces the user's file. For a
    process of a run (`by_run`), variables may only narrow, as the project's file: it could have set them.
    """
    layers = _Layers()
    project = find_project_file(directory or Path.cwd())
    user_file = user or user_settings_file()
    if project is not None and project != user_file:
        _read_settings_file(layers, project, user_file)
    if user_file.is_file():
        _read_settings_file(layers, user_file, user_file)
    _read_environment(layers, os.environ if environment is None else environment, user_file, by_run=by_run)
    _read_flags(layers, flags or {})
    _check_required(layers)
    if layers.problems:
        raise invalid_settings(layers.problems)
    return LoadedSettings(build_settings(layers.values), layers.origins, tuple(layers.ignored))


def load_settings_file(path: Path) -> LoadedSettings:
    """Load one file as if it were the user's own. Raises `ConfigInvalid` with every problem found."""
    layers = _Layers()
    if not path.is_file():
        raise invalid_settings([SettingProblem(str(path), "", "", "no such file")])
    _read_settings_file(layers, path, path)
    _check_required(layers)
    if layers.problems:
        raise invalid_settings(layers.problems)
    return LoadedSettings(build_settings(layers.values), layers.origins)


def invalid_settings(problems: list[SettingProblem]) -> ConfigInvalid:
    """Build the error that lists the problems, one per line, at most `MAX_PROBLEMS` of them."""
    count = "one setting is wrong" if len(problems) == 1 else f"{len(problems)} settings are wrong"
    if len(problems) >= MAX_PROBLEMS:
        count = f"at least {MAX_PROBLEMS} settings are wrong"
    return ConfigInvalid(
        count + "".join(f"\n  {problem}" for problem in problems[:MAX_PROBLEMS]),
        hint="`retinue config` lists every setting; `retinue config --check FILE` checks a file",
    )


def _check_required(layers: _Layers) -> None:
    """Record a problem for each required key that is missing from a user-named table."""
    for key in sorted(set(missing_required_keys((*layers.values, *layers.empty)))):
        row = find_row(key)
        message = f"is missing; it must be {row.allowed if row else 'set'}"
        table = key.rpartition(".")[0]
        files = {**layers.empty, **{each.rpartition(".")[0]: file for each, file in layers.origins.items()}}
        layers.problems.append(SettingProblem(files.get(table, "settings"), key, "", message))


def _read_settings_file(layers: _Layers, path: Path, user_file: Path) -> None:
    """Add one TOML file to the layers. A file other than `user_file` belongs to a project."""
    project = None if path == user_file else path.parent
    try:
        tree = _parse_toml(_read_bounded(path, project))
    except InvalidValue as error:
        layers.problems.append(SettingProblem(str(path), "", "", str(error)))
        return
    for key, value in _flatten(tree):
        if len(layers.problems) >= MAX_PROBLEMS:
            return
        row = find_row(key)
        if row is not None and project is not None and row.project == "ignored":
            reason = _exceeds(row, value, "a project") or ""
            layers.ignored.append(_ignored(path, key, value, reason, user_file))
        elif value == {} and is_section(key):
            if project is None:
                layers.empty[key] = str(path)
        elif row is None:
            layers.problems.append(_unknown_key_problem(str(path), key, value))
        else:
            try:
                checked = row.check(value)
            except InvalidValue as error:
                layers.problems.append(SettingProblem(str(path), key, show_value(value), f"must be {error}"))
                continue
            if row.item is Path:
                checked = _resolve_paths(checked, path.parent)
            if project is not None and (reason := _widens(row, checked, project)):
                layers.ignored.append(_ignored(path, key, value, reason, user_file))
            else:
                layers.put(_canonical_key(row.key, key), checked, str(path))


def _read_bounded(path: Path, project: Path | None) -> bytes:
    """Return the content of a settings file. Raises `InvalidValue` if it is too large or no regular file.

    The file of a project must be inside the project, even after following links.
    """
    try:
        if project is not None and not path.resolve(strict=True).is_relative_to(project.resolve()):
            raise InvalidValue("cannot be read: it is a link to a file outside the project")
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidValue("cannot be read: not a regular file")
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "circular links"
        raise InvalidValue(f"cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidValue(f"larger than {MAX_FILE_BYTES:,} bytes")
    return data


def _parse_toml(data: bytes) -> dict[str, Any]:
    """Parse a settings file. Raises `InvalidValue` for whatever is wrong with it."""
    try:
        text = data.decode("utf-8-sig")
        if _DEEP_KEY.search(text):  # for such keys, `tomllib` takes time that grows with the square
            raise InvalidValue("not valid: a key has too many parts")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(f"not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise InvalidValue("cannot be read: not UTF-8 text") from None
    except RecursionError:
        raise InvalidValue("not valid: nested too deeply") from None
    except InvalidValue:
        raise
    except ValueError as error:  # such as an integer with too many digits
        raise InvalidValue(f"not valid TOML: {error}") from None


def _widens(row: SettingRow, value: Any, project: Path) -> str | None:
    """Return why a project may not set this value, or None if it may."""
    if row.item is Path:
        paths = cast("tuple[Path, ...]", value if isinstance(value, tuple) else (value,))
        inside = all(path.resolve().is_relative_to(project.resolve()) for path in paths)
        return None if inside else "a project may only name a path inside the project"
    return _exceeds(row, value, "a project")


def _exceeds(row: SettingRow, value: Any, who: str) -> str | None:
    """Return why somebody who may only narrow may not set this value, or None."""
    if row.project == "ignored":
        return f"{who} may not set this"
    if row.project == "set":
        return None
    default = _defaults()[row.key]
    if isinstance(value, tuple):
        narrower = set(cast("tuple[str, ...]", value)) <= set(default)
        return None if narrower else f"{who} may only choose from: {', '.join(default)}"
    return None if value <= default else f"{who} may only set at most {default}"


@cache
def _defaults() -> Mapping[str, Any]:
    """Return the default of each setting outside user-named tables."""
    return {key: value for key, _, value in setting_values(Settings())}


def _ignored(path: Path, key: str, value: object, reason: str, user_file: Path) -> SettingProblem:
    return SettingProblem(str(path), key, show_value(value), f"ignored: {reason}; put it in {user_file}")


def _resolve_paths(value: Any, folder: Path) -> Any:
    """Resolve a relative path, or a tuple of them, against the folder of the settings file."""
    if isinstance(value, tuple):
        return tuple(_resolve_paths(item, folder) for item in cast("tuple[Path, ...]", value))
    return Path(os.path.normpath(folder / value))


def _canonical_key(row_key: str, key: str) -> str:
    """Return a key as the row spells it, with the user's name for the table in place of `*`."""
    if "*" not in row_key:
        return row_key
    return row_key.replace("*", key.split(".")[row_key.split(".").index("*")])


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with its dotted key. An empty table is yielded as a value."""
    for key, value in tree.items():
        if value and isinstance(value, dict) and is_section(prefix + key):
            yield from _flatten(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _unknown_key_problem(
    source: str, key: str, value: object, format_key: KeyFormatter = str
) -> SettingProblem:
    """Return the problem for an unknown key, with the known keys and the closest one."""
    section = snake_case_key(key).rpartition(".")[0]
    if snake_case_key(key) in section_keys():
        return SettingProblem(source, format_key(key), show_value(value), "must be a table of settings")
    near = closest_key(snake_case_key(key))
    known = [known.rpartition(".")[2] for known in setting_rows() if known.rpartition(".")[0] == section]
    known += sorted(section_keys()) if not section else []
    message = (
        f"no such setting; {section or 'the top level'} has: {', '.join(known)}"
        if known
        else "no such setting"
    )
    return SettingProblem(
        source, format_key(key), show_value(value), message, format_key(near) if near else None
    )


def show_value(value: object) -> str:
    """Return a value as text for a message: short, whatever a file contains.

    Of a table only the names, because it may contain the values of variables.
    """
    if isinstance(value, dict):
        names = ", ".join(islice((str(name) for name in cast("dict[str, Any]", value)), 20))
        return f"{{{names[:200]}}}"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or a deep list
        return "(too long to show)"
    return text if len(text) <= 200 else f"{text[:200]}…"


def variable_name(key: str) -> str:
    """Return the environment variable for a key, such as `RETINUE_LIMITS__MAX_FILES_READ`."""
    return VARIABLE_PREFIX + key.replace(".", "__").upper()


def _read_environment(
    layers: _Layers, environment: Mapping[str, str], user_file: Path, *, by_run: bool
) -> None:
    """Add all `RETINUE_*` variables to the layers. Those of a run may only narrow."""
    for name, text in sorted(environment.items()):
        if not name.startswith(VARIABLE_PREFIX) or name in RESERVED_VARIABLES:
            continue
        key = name.removeprefix(VARIABLE_PREFIX).lower().replace("__", ".")
        row = setting_rows().get(key)
        if row is None or "*" in key:
            layers.problems.append(_unknown_key_problem("environment", key, text, variable_name))
            continue
        try:
            value = row.from_text(text, os.pathsep)
            if by_run and name != DATA_DIR and (reason := _exceeds(row, value, "a run")):
                problem = f"ignored: {reason}; put it in {user_file}"
                layers.ignored.append(SettingProblem("environment", name, show_value(text), problem))
            else:
                layers.put(key, value, name)
        except InvalidValue as error:
            layers.problems.append(SettingProblem("environment", name, show_value(text), f"must be {error}"))


def _read_flags(layers: _Layers, flags: Mapping[str, Any]) -> None:
    """Add command line flags to the layers. `flags` maps the keys of settings to values."""
    for key, value in flags.items():
        flag = "--root" if key == "roots" else "--" + key.replace("_", "-").replace(".", "-")
        try:
            layers.put(key, setting_rows()[key].check(value), flag)
        except InvalidValue as error:
            layers.problems.append(
                SettingProblem("command line", flag, show_value(value), f"must be {error}")
            )


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
    """`at_least`, `at_most`, `one_of`, `project` and `required`."""

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
        """What a project's settings file may do with it. If nobody decided, nothing."""
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
