"""The verbs of settings: show each value with its origin, change one, check a file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from retinue.config import (
    LoadedSettings,
    NamedSetting,
    SettingProblem,
    change_setting,
    find_project_file,
    load_settings,
    load_settings_file,
    setting_values,
    settings_error,
    user_settings_file,
)
from retinue.core import ConfigInvalid, InvalidInput, Redactor, Unavailable
from retinue.models import TIERS, EndpointAddress
from retinue.service.setup import this_machine
from retinue.store import replace_file

HIDDEN = "***"
_REFERENCE = re.compile(r"\$\{\w+\}")
_USER_INFO = re.compile(r"://[^/?#\s]*@")
_QUERY_VALUE = re.compile(r"([?&;][^=&;#\s]*=)[^&;#\s]*")
SETTINGS_HEADER = """\
# Settings of Retinue. `retinue config` shows all of them; docs/settings.md explains them.
"""


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting with its value and its origin."""

    key: str
    value: Any
    origin: str
    """A file, a variable, a flag, or `default`."""
    allowed: str


def settings_file_to_edit(*, project: bool) -> Path:
    """The user's own settings file, or the project's; the file may not exist yet."""
    if not project:
        return user_settings_file()
    return find_project_file(Path.cwd()) or Path.cwd() / user_settings_file().name


def set_setting(
    key: str, texts: tuple[str, ...], *, project: bool = False, add: bool = False, unset: bool = False
) -> dict[str, Any]:
    """Change one setting in a settings file, or remove it. Returns the file and the value.

    With `add`, the texts are added to a list. The other lines of the file stay as they are.
    """
    file = settings_file_to_edit(project=project)
    setting = NamedSetting.find(key)
    if project and setting.row.project == "ignored":
        raise ConfigInvalid(f"{setting.key} cannot be set by a project", hint="leave out --project")
    value: Any = None if unset else _absolute(setting.parse(texts))
    if add and not unset:
        if not setting.row.is_list:
            raise InvalidInput(f"{setting.key} is not a list", hint="leave out --add")
        now = {name: each for name, _, each in setting_values(load_settings().settings)}.get(setting.key, ())
        value = (*now, *(each for each in value if each not in now))
    shown = this_machine().display_path(file)
    try:
        text = file.read_text(encoding="utf-8-sig") if file.exists() else SETTINGS_HEADER
        changed = change_setting(text, setting, value)
        if changed is None:
            raise ConfigInvalid(
                f"{shown} cannot be changed safely in this form", hint=f"write {setting.key} into it by hand"
            )
        if changed != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            target = file.resolve()
            mode = target.stat().st_mode if target.exists() else None
            replace_file(target, changed)
            if mode is not None:
                target.chmod(mode)
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise ConfigInvalid(f"{shown} is not valid TOML: {error}", hint="correct it by hand") from None
    except OSError as error:
        raise Unavailable(
            f"{shown} cannot be changed: {error.strerror}",
            hint="check the permissions of the file and its folder",
        ) from None
    return {"file": str(file), "key": setting.key, "value": _to_json_value(value)}


def _absolute(value: Any) -> Any:
    """Paths that a person typed are relative to the current folder, those in a file to the file."""
    match value:
        case Path():
            return Path(os.path.abspath(value.expanduser()))  # noqa: PTH100 - links stay as they are
        case tuple():
            return tuple(_absolute(each) for each in cast("tuple[Any, ...]", value))
        case _:
            return value


def describe_settings(loaded: LoadedSettings, redactor: Redactor) -> list[SettingView]:
    """All settings, in the order of docs/settings.md, without the values of variables and passwords (P6)."""

    def show(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: _hide_variable(text) for name, text in cast("Mapping[str, str]", value).items()}
        return _hide_passwords(redactor.redact_value(_to_json_value(value)))

    return [
        SettingView(key, show(value), loaded.origins.get(key, "default"), row.allowed)
        for key, row, value in setting_values(loaded.settings)
    ]


def _hide_variable(value: str) -> str:
    """Return what may be shown of a variable's value: only a reference to another variable."""
    return value if _REFERENCE.fullmatch(value) else HIDDEN


def _hide_passwords(value: Any) -> Any:
    """Replace the user and password in URLs, and the values in their queries."""
    if isinstance(value, list):
        return [_hide_passwords(item) for item in cast("list[Any]", value)]
    if not isinstance(value, str) or "://" not in value:
        return value
    return _QUERY_VALUE.sub(rf"\1{HIDDEN}", _USER_INFO.sub(f"://{HIDDEN}@", value))


def user_settings_location() -> tuple[Path, bool]:
    """The path of the user's settings file, and whether it exists."""
    file = user_settings_file()
    return file, file.is_file()


def check_settings_file(path: Path) -> None:
    """Raise `ConfigInvalid` with all problems of one file."""
    models = load_settings_file(path).settings.models
    endpoints = {
        "models.endpoint": models.endpoint,
        **{f"models.tiers.{name}.endpoint": getattr(models.tiers, name).endpoint for name in TIERS},
    }
    urls = {f"models.endpoints.{name}.url": each.url for name, each in models.endpoints.items()}
    urls |= {key: value for key, value in endpoints.items() if "://" in value}
    problems = [
        SettingProblem(str(path), key, "", problem)
        for key, url in urls.items()
        if (problem := _url_problem(url))
    ]
    names = ", ".join(sorted(models.endpoints)) or "none"
    problems += [
        SettingProblem(
            str(path), key, repr(value), f"neither a URL nor a named endpoint; named endpoints: {names}"
        )
        for key, value in endpoints.items()
        if value and "://" not in value and value not in models.endpoints
    ]
    if problems:
        raise settings_error(problems)


def _url_problem(url: str) -> str | None:
    """Return the problem with the URL. Does not repeat it, because it may contain a password."""
    try:
        EndpointAddress.parse(url)
    except ConfigInvalid as error:
        return f"{error.message}; {error.hint}"
    return None


def _to_json_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json_value(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, Path) else value
