"""The places that answer a question, best first."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.codebase.evidence import Past
from retinue.codebase.kinds import Kind, kind_of
from retinue.codebase.question import parse
from retinue.codebase.rank import rank
from retinue.codebase.scan import Scan
from retinue.core.errors import InvalidInput
from retinue.core.stop import Stop


@dataclass(frozen=True, slots=True)
class Place:
    entry: Entry
    line: int
    """The definition that answers best, counted from 1."""
    score: float
    """Between 0 and 1, comparable within one answer."""
    why: tuple[str, ...]
    kind: Kind

    @property
    def path(self) -> str:
        return self.entry.path


def locate(codebase: Codebase, question: str, limit: int, stop: Stop) -> list[Place]:
    if not question.strip():
        raise InvalidInput("the question is empty", hint="ask where or how something is done")
    if limit < 1:
        raise InvalidInput(f"the limit must be at least 1, not {limit}")
    asked = parse(question)
    scan = Scan(codebase, asked.terms, stop)
    ranked = rank(asked, scan, Past())[:limit]
    return [
        Place(scan.entries[one.file], one.line, one.score, one.why, kind_of(scan.paths[one.file]))
        for one in ranked
    ]
