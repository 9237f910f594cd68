"""Creates files and stops for the tests of the codebase room."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retinue.codebase import Codebase, Policy
from retinue.codebase.index.evidence import MAX_UNFILTERED_BYTES
from retinue.codebase.parse import MAX_SEARCHED_BYTES
from retinue.core import Root, Stop

SECRET = "hunter2-do-not-show"
WAIT_SECONDS = 5.0


def create_root(folder: Path, files: Mapping[str, str | bytes]) -> Root:
    """Create a root with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Root.at(folder)


def make_large(folder: Path) -> None:
    """Add empty bytes to a root, so that a scan of it uses ripgrep. They take no room on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(MAX_UNFILTERED_BYTES // MAX_SEARCHED_BYTES + 1):
        with (folder / f"zeros_{number}.txt").open("wb") as file:
            file.truncate(MAX_SEARCHED_BYTES)


def bounded_stop() -> Stop:
    """Return a stop with a deadline that working code never reaches."""
    return Stop(WAIT_SECONDS * 6)


class ManualDeadline(Stop):
    """A stop whose deadline passes when the test says so."""

    time_is_up = False

    def remaining(self) -> float:
        return 0.0 if self.time_is_up else 60.0


def visible_files(root: Root, policy: Policy | None = None) -> list[str]:
    return [entry.path for entry in Codebase([root], policy).files(bounded_stop()).entries]


def read_lines(codebase: Codebase, path: str) -> str:
    return "\n".join(codebase.read(path, bounded_stop()).lines)
