"""What the settings are and where each came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retinue.config import (
    LoadedSettings,
    SettingProblem,
    invalid_settings,
    load_settings_file,
    setting_values,
    user_settings_file,
)
from retinue.core import ConfigInvalid
from retinue.models import TIERS, EndpointAddress


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    value: Any
    origin: str
    """A file, a variable, a flag, or `default`."""
    allowed: str


def describe_settings(loaded: LoadedSettings) -> list[Setting]:
    """Every setting, in the order of the settings page."""
    return [
        Setting(key, _plain(value), loaded.origins.get(key, "default"), row.allowed)
        for key, row, value in setting_values(loaded.settings)
    ]


def user_settings_location() -> tuple[Path, bool]:
    """The user's own file, and whether it is there."""
    file = user_settings_file()
    return file, file.is_file()


def check_settings_file(path: Path) -> None:
    """Raise `ConfigInvalid` with everything that is wrong in one file."""
    models = load_settings_file(path).settings.models
    given = {
        "models.endpoint": models.endpoint,
        **{f"models.tiers.{name}.endpoint": getattr(models.tiers, name).endpoint for name in TIERS},
    }
    urls = {f"models.endpoints.{name}.url": each.url for name, each in models.endpoints.items()}
    urls |= {key: value for key, value in given.items() if "://" in value}
    problems = [
        SettingProblem(str(path), key, "", wrong) for key, url in urls.items() if (wrong := _wrong_url(url))
    ]
    names = ", ".join(sorted(models.endpoints)) or "none"
    problems += [
        SettingProblem(str(path), key, repr(value), f"neither a URL nor an endpoint; there are: {names}")
        for key, value in given.items()
        if value and "://" not in value and value not in models.endpoints
    ]
    if problems:
        raise invalid_settings(problems)


def _wrong_url(url: str) -> str | None:
    """The URL is not repeated: it may hold a password."""
    try:
        EndpointAddress.parse(url)
    except ConfigInvalid as error:
        return f"{error.message}; {error.hint}"
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, Path) else value
