"""Which commands a person has confirmed as a project's checks: a file that people can read and edit.

Kept outside of the project, because what lies inside it is what the checks are to judge.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from retinue.core import Unavailable

NAME = "confirmed-checks.json"


class ConfirmedChecks:
    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self._file = data_dir / NAME

    def of(self, project: Path) -> Mapping[str, tuple[str, ...]]:
        """By name; none if nobody has confirmed any."""
        given: Any = self._all().get(str(project.resolve()), {})
        return {
            name: tuple(map(str, cast("list[Any]", argv)))
            for name, argv in cast("dict[str, Any]", given).items()
            if isinstance(argv, list) and argv
        }

    def confirm(self, project: Path, checks: Mapping[str, tuple[str, ...]]) -> None:
        """In place of what was confirmed for the project before."""
        everything = self._all()
        everything[str(project.resolve())] = {name: list(argv) for name, argv in checks.items()}
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._folder / f".{NAME}-{secrets.token_hex(4)}"
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps(everything, indent=2) + "\n")
            draft.replace(self._file)
        except OSError as error:
            raise _unusable(error.strerror) from None

    def _all(self) -> dict[str, Any]:
        try:
            found: Any = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise _unusable(error.strerror if isinstance(error, OSError) else "not JSON") from None
        if not isinstance(found, dict):
            raise _unusable("not a table")
        return cast("dict[str, Any]", found)


def _unusable(reason: str | None) -> Unavailable:
    return Unavailable(
        f"{NAME} in the data folder cannot be used: {reason}",
        hint="correct or remove it; `retinue config` names the data folder",
    )
