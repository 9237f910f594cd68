"""A root: a directory that the user allows Retinue to read. The policy decides which files inside it are
read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from retinue.core.errors import ConfigInvalid


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that exists and that the user allowed."""

    path: Path
    """Absolute, with all symlinks resolved."""

    @classmethod
    def at(cls, given: str | Path) -> Root:
        """Check a directory that the user named. Raises `ConfigInvalid` if it cannot be a root."""
        shown = str(given)
        if not shown or "\0" in shown:
            raise ConfigInvalid(f"not a directory name: {shown!r}", hint="give the path of a directory")
        try:
            path = Path(given).expanduser().resolve(strict=True)
        except (OSError, RuntimeError):
            raise ConfigInvalid(
                f"no such directory: {shown}", hint="create it, or correct the path"
            ) from None
        if not path.is_dir():
            raise ConfigInvalid(f"not a directory: {shown}", hint="a root is a directory, not a file")
        if not os.access(path, os.R_OK | os.X_OK):
            raise ConfigInvalid(
                f"not allowed to read: {shown}", hint="ask its owner for access, or name another directory"
            )
        if path == Path(path.anchor):
            raise ConfigInvalid(
                "the whole filesystem cannot be a root", hint="name the project's own directory instead"
            )
        return cls(path)

    def __str__(self) -> str:
        return str(self.path)
