"""What the settings are and where each came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retinue.config.load import Loaded, Problem, check_file, invalid, user_file
from retinue.config.schema import values_of


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    value: Any
    origin: str
    """A file, a variable, a flag, or `default`."""
    allowed: str


def describe(loaded: Loaded) -> list[Setting]:
    """Every setting, in the order of the settings page."""
    return [
        Setting(key, _plain(value), loaded.origins.get(key, "default"), row.allowed)
        for key, row, value in values_of(loaded.settings)
    ]


def own_file() -> tuple[Path, bool]:
    """The user's own file, and whether it is there."""
    file = user_file()
    return file, file.is_file()


def check(path: Path) -> None:
    """Raise `ConfigInvalid` with everything that is wrong in one file."""
    problems: Sequence[Problem] = check_file(path)
    if problems:
        raise invalid(list(problems))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, Path) else value
