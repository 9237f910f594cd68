"""The places that answer a question, best first."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.codebase.history import History, past
from retinue.codebase.kinds import Kind, kind_of
from retinue.codebase.question import parse
from retinue.codebase.rank import rank, why
from retinue.codebase.ripgrep import find_ripgrep
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
    scan = Scan(codebase, asked, find_ripgrep(), stop)
    history = past(History(codebase.roots[0].path, stop), asked.terms)
    ranking = rank(asked, scan, history)
    return [
        Place(scan.entries[one.file], one.line, one.score, one.why, kind_of(scan.paths[one.file]))
        for one in ranked
    ]
