"""One question at work: what was asked, where to look, and with what. What roles are given, and hand on."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.codebase.entry import Entry
from retinue.core.reference import Reference
from retinue.research.question import Asked
from retinue.research.scope import Scope
from retinue.research.sources import Sources


@dataclass(frozen=True, slots=True)
class Inquiry:
    asked: Asked
    scope: Scope
    sources: Sources

    def reference(self, entry: Entry, line: int | None = None) -> Reference:
        return self.scope.reference(entry, line)
