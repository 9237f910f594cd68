"""Loads settings from the project's file, the user's file, environment variables and command line flags.

The sources are read in this order, and later ones override earlier ones. Every value is checked against its
row in `setting_rows.py`. Knows nothing of what a setting means.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, cast

from retinue.config.setting_rows import (
    InvalidValue,
    SettingRow,
    build_settings,
    closest_key,
    find_row,
    is_section,
    missing_required_keys,
    section_keys,
    setting_rows,
    setting_values,
    snake_case_key,
)
from retinue.config.settings import Settings
from retinue.core import ConfigInvalid

FILE_NAME = "retinue.toml"
VARIABLE_PREFIX = "RETINUE_"
CHILD_TOKEN = "RETINUE_CHILD_TOKEN"  # noqa: S105 - the variable's name
DATA_DIR = "RETINUE_DATA_DIR"
CHILD_SOCKET = "RETINUE_CHILD_SOCKET"
RESERVED_VARIABLES = frozenset({"RETINUE_RUN_ID", CHILD_TOKEN, CHILD_SOCKET})
"""Variables that are not settings: Retinue sets them for the processes that a run starts."""

MAX_FILE_BYTES = 262_144
"""Largest settings file that is read."""
MAX_PROBLEMS = 50
"""Problems that are reported at once."""
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""")
"""A key with more parts than any setting has. Takes time in proportion to the text."""

KeyFormatter = Callable[[str], str]


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
    restrictions: list[tuple[SettingRow, Any, str]] = field(default_factory=list[tuple[SettingRow, Any, str]])
    """What sources other than the user's file take away, with their names. Applied at the end."""
    empty: dict[str, str] = field(default_factory=dict[str, str])
    """Empty tables, with the files they are in. They are remembered because they may lack required keys."""

    def put(self, key: str, value: Any, origin: str) -> None:
        """Set a value and record where it comes from."""
        self.values[key] = value
        self.origins[key] = origin

    def restrict(self) -> None:
        """Apply the restrictions to what the user's file allows: switch off, and deny more."""
        for row, value, origin in self.restrictions:
            before = self.values.get(row.key, _defaults()[row.key])
            after = before and value if isinstance(value, bool) else tuple(dict.fromkeys((*before, *value)))
            if after != before:
                self.put(row.key, after, origin)


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
    layers.restrict()
    _check_required(layers)
    if layers.problems:
        raise settings_error(layers.problems)
    return LoadedSettings(build_settings(layers.values), layers.origins, tuple(layers.ignored))


def load_settings_file(path: Path) -> LoadedSettings:
    """Load one file as if it were the user's own. Raises `ConfigInvalid` with every problem found."""
    layers = _Layers()
    if not path.is_file():
        raise settings_error([SettingProblem(str(path), "", "", "no such file")])
    _read_settings_file(layers, path, path)
    _check_required(layers)
    if layers.problems:
        raise settings_error(layers.problems)
    return LoadedSettings(build_settings(layers.values), layers.origins)


def settings_error(problems: list[SettingProblem]) -> ConfigInvalid:
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
        if row is not None and project is not None and row.project in ("ignored", "user_file"):
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
            elif project is not None and row.project == "restrict":
                layers.restrictions.append((row, checked, str(path)))
            else:
                layers.put(canonical_key(row.key, key), checked, str(path))


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
    import tomllib  # for start-up time: many users have no file of settings

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
    if row.project in ("ignored", "user_file"):
        return f"{who} may not set this"
    if row.project == "restrict":
        return f"{who} may only switch this off" if value is True else None
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


def canonical_key(row_key: str, key: str) -> str:
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
    """Return the problem for an unknown key, with the closest known key, or else all that its table has."""
    section = snake_case_key(key).rpartition(".")[0]
    if snake_case_key(key) in section_keys():
        return SettingProblem(source, format_key(key), show_value(value), "must be a table of settings")
    near = closest_key(snake_case_key(key))
    if near:
        return SettingProblem(source, format_key(key), show_value(value), "no such setting", format_key(near))
    known = [known.rpartition(".")[2] for known in setting_rows() if known.rpartition(".")[0] == section]
    known += [name for name in sorted(section_keys()) if "." not in name] if not section else []
    message = f"no such setting; {section or 'the top level'} has: {', '.join(known)}"
    return SettingProblem(source, format_key(key), show_value(value), message if known else "no such setting")


def show_value(value: object) -> str:
    """Return a value as text for a message: short, whatever a file contains.

    For a table, only its keys, because it may contain the values of variables.
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
            who = "a run" if by_run else "a variable" if row.project in ("restrict", "user_file") else ""
            if who and name != DATA_DIR and (reason := _exceeds(row, value, who)):
                problem = f"ignored: {reason}; put it in {user_file}"
                layers.ignored.append(SettingProblem("environment", name, show_value(text), problem))
            elif row.project == "restrict":
                layers.restrictions.append((row, value, name))
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
