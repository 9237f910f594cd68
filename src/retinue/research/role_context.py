"""One question at work: what was asked, where to look, and with what. What every role is given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from retinue.codebase import FileEntry
from retinue.core import Reference
from retinue.research.followup import Earlier
from retinue.research.ledger import Books
from retinue.research.naming import Naming
from retinue.research.question import ResearchQuestion
from retinue.research.scope import SearchScope
from retinue.research.sources import SourceFiles


@dataclass(frozen=True, slots=True)
class Inquiry:
    asked: ResearchQuestion
    scope: SearchScope
    sources: SourceFiles
    before: SearchScope | None = None
    """What the report names before this scope: its roots come first, and so do its references."""
    earlier: Earlier | None = None
    """The report that is followed up, if one is."""
    root_of: dict[str, int] = field(default_factory=dict[str, int])
    """Where each reference that was made belongs, by its place among the report's roots."""

    def booked_by(self, books: Books) -> Inquiry:
        return replace(self, sources=self.sources.booked_by(books))

    def reference(self, entry: FileEntry, line: int | None = None) -> Reference:
        reference, root = Naming(self.scope, self.before).of(entry, line)
        self.root_of.setdefault(str(reference), root)
        return reference
