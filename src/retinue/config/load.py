"""Where settings come from: the project's file, the user's file, the environment, flags; later wins.

Knows nothing of what a setting means.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from retinue.config.schema import Wrong, build, is_section, missing, nearest, row_of, rows, sections, snake
from retinue.config.settings import Settings
from retinue.core import ConfigInvalid

FILE = "retinue.toml"
PREFIX = "RETINUE_"
CHILD_TOKEN = "RETINUE_CHILD_TOKEN"  # noqa: S105 - the variable's name
DATA_DIR = "RETINUE_DATA_DIR"
CHILD_SOCKET = "RETINUE_CHILD_SOCKET"
RESERVED = frozenset({"RETINUE_RUN_ID", CHILD_TOKEN, CHILD_SOCKET})
"""Variables of ours that are not settings: they mark the processes that a run started."""


Spelling = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class SettingProblem:
    source: str
    key: str
    given: str
    wanted: str
    nearest: str | None = None

    def __str__(self) -> str:
        text = f"{self.source}: {self.key}" if self.key else self.source
        if self.given:
            text += f" = {self.given}"
        text += f": {self.wanted}"
        return text + (f"; did you mean {self.nearest}?" if self.nearest else "")


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

    return platformdirs.user_config_path("retinue", appauthor=False) / FILE


def project_file(start: Path) -> Path | None:
    """The nearest `retinue.toml` in this folder or one above it."""
    return next((folder / FILE for folder in (start, *start.parents) if (folder / FILE).is_file()), None)


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    user: Path | None = None,
) -> LoadedSettings:
    """All layers together, or `ConfigInvalid` with every problem there is."""
    layers = _Layers()
    project = project_file(directory or Path.cwd())
    personal = user or user_settings_file()
    if project is not None and project != personal:
        _take_file(layers, project, personal)
    if personal.is_file():
        _take_file(layers, personal, personal)
    _take_environment(layers, os.environ if environment is None else environment)
    _take_flags(layers, flags or {})
    _require(layers)
    if layers.problems:
        raise invalid_settings(layers.problems)
    return LoadedSettings(build(layers.values), layers.origins)


def load_settings_file(path: Path) -> LoadedSettings:
    """One file alone, read as the user's own, or `ConfigInvalid` with all that is wrong with it."""
    layers = _Layers()
    if not path.is_file():
        raise invalid_settings([SettingProblem(str(path), "", "", "no such file")])
    _take_file(layers, path, path)
    _require(layers)
    if layers.problems:
        raise invalid_settings(layers.problems)
    return LoadedSettings(build(layers.values), layers.origins)


def invalid_settings(problems: list[SettingProblem]) -> ConfigInvalid:
    count = "one setting is wrong" if len(problems) == 1 else f"{len(problems)} settings are wrong"
    return ConfigInvalid(
        count + "".join(f"\n  {problem}" for problem in problems),
        hint="`retinue config` lists every setting; `retinue config --check FILE` tries a file",
    )


def _require(layers: _Layers) -> None:
    for key in sorted(set(missing((*layers.values, *layers.empty)))):
        row = row_of(key)
        wanted = f"is missing; it must be {row.allowed if row else 'given'}"
        table = key.rpartition(".")[0]
        files = {**layers.empty, **{each.rpartition(".")[0]: file for each, file in layers.origins.items()}}
        layers.problems.append(SettingProblem(files.get(table, "settings"), key, "", wanted))


def _take_file(layers: _Layers, path: Path, personal: Path) -> None:
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
        row = row_of(key)
        if value == {} and is_section(key):
            layers.empty[key] = str(path)
        elif row is None:
            layers.problems.append(_unknown(str(path), key, value))
        elif row.user_only and path != personal:
            wanted = f"a project may not set this; put it in {personal}"
            layers.problems.append(SettingProblem(str(path), key, repr(value), wanted))
        else:
            try:
                checked = row.check(value)
                if row.item is Path:
                    checked = _anchored(checked, path.parent, inside=path != personal)
                layers.put(_spelled(row.key, key), checked, str(path))
            except Wrong as error:
                layers.problems.append(SettingProblem(str(path), key, repr(value), f"must be {error}"))


def _anchored(value: Any, folder: Path, *, inside: bool) -> Any:
    """Relative paths belong to the file that names them; a project's may not leave the project."""
    if isinstance(value, tuple):
        return tuple(_anchored(item, folder, inside=inside) for item in cast("tuple[Path, ...]", value))
    path = Path(os.path.normpath(folder / value))
    if inside and not path.resolve().is_relative_to(folder.resolve()):
        raise Wrong("a path inside the project that names it")
    return path


def _spelled(row_key: str, key: str) -> str:
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


def _unknown(source: str, key: str, value: object, spelling: Spelling = str) -> SettingProblem:
    given = repr(value)
    section = snake(key).rpartition(".")[0]
    if snake(key) in sections():
        return SettingProblem(source, spelling(key), given, "must be a table of settings")
    near = nearest(snake(key))
    known = [known.rpartition(".")[2] for known in rows() if known.rpartition(".")[0] == section]
    known += sorted(sections()) if not section else []
    wanted = (
        f"no such setting; {section or 'the top level'} has: {', '.join(known)}"
        if known
        else "no such setting"
    )
    return SettingProblem(source, spelling(key), given, wanted, spelling(near) if near else None)


def variable(key: str) -> str:
    """`limits.max_files_read` as the name of its environment variable."""
    return PREFIX + key.replace(".", "__").upper()


def _take_environment(layers: _Layers, environment: Mapping[str, str]) -> None:
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or name in RESERVED:
            continue
        key = name.removeprefix(PREFIX).lower().replace("__", ".")
        row = rows().get(key)
        if row is None or "*" in key:
            layers.problems.append(_unknown("environment", key, text, variable))
            continue
        try:
            layers.put(key, row.from_text(text, os.pathsep), name)
        except Wrong as error:
            layers.problems.append(SettingProblem("environment", name, repr(text), f"must be {error}"))


def _take_flags(layers: _Layers, flags: Mapping[str, Any]) -> None:
    for key, value in flags.items():
        flag = "--root" if key == "roots" else "--" + key.replace("_", "-").replace(".", "-")
        try:
            layers.put(key, rows()[key].check(value), flag)
        except Wrong as error:
            layers.problems.append(SettingProblem("command line", flag, repr(value), f"must be {error}"))
