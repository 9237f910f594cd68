"""One question at work: what was asked, where to look, and with what. What every role is given."""

from __future__ import annotations

import os.path
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.codebase.entry import Entry
from retinue.core.reference import Reference
from retinue.core.stop import Stop
from retinue.research.followup import Earlier
from retinue.research.ledger import Books
from retinue.research.question import Asked
from retinue.research.scope import Scope
from retinue.research.sources import Sources


@dataclass(frozen=True, slots=True)
class Inquiry:
    asked: Asked
    scope: Scope
    sources: Sources
    before: Scope | None = None
    """What the report names before this scope: its roots come first, and so do its references."""
    earlier: Earlier | None = None
    """The report that is followed up, if one is."""
    root_of: dict[str, int] = field(default_factory=dict[str, int])
    """Where each reference that was made belongs, by its place among the report's roots."""

    def booked_by(self, books: Books) -> Inquiry:
        return replace(self, sources=self.sources.booked_by(books))

    def reference(self, entry: Entry, line: int | None = None) -> Reference:
        """A place, relative to the folder that was searched.

        Where an earlier root has the same path it is told from the first root on, through `..`: two files
        never share a reference.
        """
        number, path = self.scope.below(entry)
        if self._is_taken(path, number):
            reference, root = Reference(self._from_first_root(entry), line), 0
        else:
            roots_before = len(self.before.folders) if self.before else 0
            reference, root = Reference(path, line), roots_before + number
        self.root_of.setdefault(str(reference), root)
        return reference

    def _is_taken(self, path: str, number: int) -> bool:
        stop = Stop()
        if number and self.scope.shows(path, stop, number):
            return True
        return self.before is not None and self.before.shows(path, stop)

    def _from_first_root(self, entry: Entry) -> str:
        first = (self.before or self.scope).searched[0]
        whole = str(entry.root.path / entry.path)
        try:
            return Path(os.path.relpath(whole, first)).as_posix()
        except ValueError:  # on Windows there may be no way from one drive to the other
            return Path(whole).as_posix()
