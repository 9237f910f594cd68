"""How a report names files: relative to the folder that was searched, and no two files alike."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase import FileEntry
from retinue.core import Reference, Stop
from retinue.research.scope import SearchScope


@dataclass(frozen=True, slots=True)
class Naming:
    scope: SearchScope
    before: SearchScope | None = None
    """What the report names before this scope: its roots come first, and so do its references."""

    def of(self, entry: FileEntry, line: int | None = None) -> tuple[Reference, int]:
        """A reference, and the place of its root among the report's.

        Where an earlier root has the same path it is told from the first root on, through `..`.
        """
        number, path = self.scope.below(entry)
        if self._is_taken(path, number):
            return Reference(self._from_first_root(entry), line), 0
        roots_before = len(self.before.folders) if self.before else 0
        return Reference(path, line), roots_before + number

    def _is_taken(self, path: str, number: int) -> bool:
        stop = Stop()
        if number and self.scope.shows(path, stop, number):
            return True
        return self.before is not None and self.before.shows(path, stop)

    def _from_first_root(self, entry: FileEntry) -> str:
        first = (self.before or self.scope).searched[0]
        whole = str(entry.root.path / entry.path)
        try:
            return Path(os.path.relpath(whole, first)).as_posix()
        except ValueError:  # on Windows there may be no way from one drive to the other
            return Path(whole).as_posix()
