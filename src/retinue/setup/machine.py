"""Resolves the paths of other programs' files on this machine. Knows nothing of their content."""

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
    "CLAUDE_ROAMING": "$APPDATA",
    "CODEX_HOME": "~/.codex",
    "COPILOT_HOME": "~/.copilot",
    "GEMINI_CLI_HOME": "~",
    "LMSTUDIO_HOME": "~/.lmstudio",
    "QWEN_HOME": "~/.qwen",
}
"""The folders that a path template may start with, and their defaults."""

CLAUDE_PACKAGE = "~/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming"
"""What `$APPDATA` is for Claude Desktop on Windows if it was installed as a package (Store, WinGet, MSIX)."""

LMSTUDIO_POINTER = ".lmstudio-home-pointer"
"""LM Studio stores the location of a moved home folder in this file, not in an environment variable."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The operating system, home folder, project folder and environment to work with."""

    system: System
    home: Path
    project: Path
    """The folder that contains project-scoped files."""
    environment: Mapping[str, str] = field(repr=False)
    """Used only to find folders and programs. Never shown."""
    backups: Path
    """The folder that contains backups of hosts' files, and how to undo each change."""

    @classmethod
    def current(cls, backups: Path, project: Path | None = None) -> Machine:
        """Describe this machine. `project` defaults to the current folder."""
        systems: dict[str, System] = {"darwin": "macos", "win32": "windows"}
        return cls(
            system=systems.get(sys.platform, "linux"),
            home=Path.home(),
            project=(project or Path.cwd()).absolute(),
            environment=dict(os.environ),
            backups=backups,
        )

    def expand(self, template: str) -> Path:
        """Expand `~/x` and `$FOLDER/x`. Any other path is relative to the project folder."""
        first, _, rest = template.partition("/")
        if first == "~":
            return self.home / rest
        if first.startswith("$"):
            return self._base_folder(first[1:]) / rest
        return self.project / template

    def display_path(self, path: Path) -> str:
        """Shorten a path to `~/x` or a project-relative path, which also hides the user's name."""
        bases = [(self.home, "~/"), (self.project, "")]
        for base, prefix in sorted(bases, key=lambda each: len(each[0].parts), reverse=True):
            if path.is_relative_to(base) and path != base:
                return prefix + path.relative_to(base).as_posix()
        return str(path)

    def _base_folder(self, name: str) -> Path:
        """Return the folder that the variable or pointer file names, or its default."""
        match name:
            case "LMSTUDIO_HOME":
                moved = self._lmstudio_home()
            case "CLAUDE_ROAMING":
                package = self.expand(CLAUDE_PACKAGE)
                moved = str(package) if package.is_dir() else ""
            case _:
                moved = self.environment.get(name, "")
        # Programs disagree on what a relative path means, so only an absolute path is used.
        if moved and Path(moved).is_absolute():
            return Path(moved)
        return self.expand(DEFAULT_FOLDERS[name])

    def _lmstudio_home(self) -> str:
        try:
            named = (self.home / LMSTUDIO_POINTER).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return named if Path(named).is_dir() else ""
