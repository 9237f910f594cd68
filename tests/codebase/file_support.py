"""Trees of files for the tests of the codebase room."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retinue.codebase import Codebase, Policy
from retinue.core import Root, Stop

SECRET = "hunter2-do-not-show"
LONG_ENOUGH = 5.0


def plant(folder: Path, files: Mapping[str, str | bytes]) -> Root:
    """Create a root with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Root.at(folder)


def soon() -> Stop:
    """Return a stop with a deadline that working code never reaches."""
    return Stop(LONG_ENOUGH * 6)


class Clockwork(Stop):
    """A stop whose deadline passes when the test says so."""

    time_is_up = False

    def remaining(self) -> float:
        return 0.0 if self.time_is_up else 60.0


def shown_files(root: Root, policy: Policy | None = None) -> list[str]:
    return [entry.path for entry in Codebase([root], policy).files(soon()).entries]


def text_of(codebase: Codebase, path: str) -> str:
    return "\n".join(codebase.read(path, soon()).lines)
