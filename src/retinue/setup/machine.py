"""The machine as far as finding other programs' files goes. Knows nothing of what stands in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

System = Literal["linux", "macos", "windows"]

DEFAULT_FOLDERS = {
    "XDG_CONFIG_HOME": "~/.config",
    "APPDATA": "~/AppData/Roaming",
    "CLAUDE_CONFIG_DIR": "~",
    "LMSTUDIO_HOME": "~/.lmstudio",
}
"""The folders a path may begin with, and where each is unless its program says otherwise."""

LMSTUDIO_POINTER = ".lmstudio-home-pointer"
"""LM Studio writes the place of a moved home folder into this file, not into a variable."""


@dataclass(frozen=True, slots=True)
class Machine:
    system: System
    home: Path
    project: Path
    """The folder that project-scoped files lie in."""
    environment: Mapping[str, str] = field(repr=False)
    """Only looked into for folders and for programs' search path; never shown."""

    @classmethod
    def here(cls, project: Path | None = None) -> Machine:
        systems: dict[str, System] = {"darwin": "macos", "win32": "windows"}
        return cls(
            system=systems.get(sys.platform, "linux"),
            home=Path.home(),
            project=(project or Path.cwd()).absolute(),
            environment=dict(os.environ),
        )

    def locate(self, template: str) -> Path:
        """The path for `~/x`, `$FOLDER/x` or, in the project, `x`."""
        first, _, rest = template.partition("/")
        if first == "~":
            return self.home / rest
        if first.startswith("$"):
            return self._folder(first[1:]) / rest
        return self.project / template

    def shown(self, path: Path) -> str:
        """The path as a person writes it; a user's name is not in it where that can be helped."""
        bases = [(self.home, "~/"), (self.project, "")]
        for base, prefix in sorted(bases, key=lambda each: len(each[0].parts), reverse=True):
            if path.is_relative_to(base) and path != base:
                return prefix + path.relative_to(base).as_posix()
        return str(path)

    def _folder(self, name: str) -> Path:
        moved = self._lmstudio_home() if name == "LMSTUDIO_HOME" else self.environment.get(name, "")
        # A relative value means something else to each program that reads it: only an absolute one counts.
        if moved and Path(moved).is_absolute():
            return Path(moved)
        return self.locate(DEFAULT_FOLDERS[name])

    def _lmstudio_home(self) -> str:
        try:
            named = (self.home / LMSTUDIO_POINTER).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return named if Path(named).is_dir() else ""
