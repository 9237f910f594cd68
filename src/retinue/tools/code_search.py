"""Finds the code that answers a question, without a model: the ranker's best places, as excerpts.

An agent on a small model starts from these excerpts, because choosing and reading places is what such models
do worst.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from retinue.codebase import Codebase, Locator, Place, outline_text
from retinue.core import (
    UNMETERED,
    BudgetKind,
    InvalidInput,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Redactor,
    Spending,
    Stop,
    Stopped,
    clip,
    run_in_thread,
)
from retinue.tools.file_tools import MAX_LINE_CHARS, RedactedLines
from retinue.tools.seen_code import SeenCode

MAX_SECONDS = 8.0
"""Limit for one search."""
MAX_RANKED = 24
"""Places of which the excerpts are chosen."""
LINES_ABOVE = 3
"""Lines above a definition that may belong to it, such as a decorator or a comment."""


@dataclass(frozen=True, slots=True)
class CodeExcerpt:
    """Some lines of a file around a definition."""

    path: str
    line: int
    """The line of the definition."""
    first: int
    """The number of the first line."""
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def __str__(self) -> str:
        numbered = [f"{number}: {line}" for number, line in enumerate(self.lines, self.first)]
        return "\n".join([f"{self.path}, lines {self.first}-{self.first + len(self.lines) - 1}", *numbered])


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSearch:
    """Searches a codebase for an agent, within its budget."""

    codebase: Codebase
    locator: Locator
    redactor: Redactor
    spending: Spending = UNMETERED
    seen: SeenCode = field(default_factory=SeenCode)
    """What the agent has seen. The caller adds the excerpts that it shows."""

    async def find(
        self, question: str, *, count: int, max_lines: int, skip: Collection[str] = ()
    ) -> tuple[CodeExcerpt, ...]:
        """Return the best excerpts, at most `count` with at most `max_lines` lines each.

        Leaves out the places in `skip`. Returns nothing if the search finds nothing, or fails.
        """

        def search(stop: Stop) -> tuple[CodeExcerpt, ...]:
            try:
                ranked = self.locator.locate(question, MAX_RANKED, stop).places
            except (InvalidInput, Stopped):
                return ()
            return tuple(self._excerpts(_code_first(ranked, question), count, max_lines, skip, stop))

        return await run_in_thread(search, MAX_SECONDS)

    def _excerpts(
        self, places: Collection[Place], count: int, max_lines: int, skip: Collection[str], stop: Stop
    ) -> Iterator[CodeExcerpt]:
        with self.codebase.opener(stop) as opener:
            redacted = RedactedLines(opener, self.redactor)
            made = 0
            for place in places:
                if made == count:
                    return
                if f"{place.path}:{place.line}" in skip:
                    continue
                try:
                    excerpt = _excerpt(place, redacted, max_lines)
                    self._charge(excerpt)
                except (PathDenied, PathMissing):
                    continue
                except LimitExceeded:
                    return
                made += 1
                yield excerpt

    def _charge(self, excerpt: CodeExcerpt) -> None:
        size = sum(len(line.encode()) + 1 for line in excerpt.lines)
        with (
            self.spending.reserve(BudgetKind.FILES, 1) as opened,
            self.spending.reserve(BudgetKind.BYTES, size) as read,
        ):
            opened.settle(1)
            read.settle(size)


def _code_first(places: Collection[Place], question: str) -> list[Place]:
    """Order implementations before tests and documents, unless the question is about tests."""
    last = () if "test" in question.lower() else ("test",)
    order = {"docs": 1, "config": 1, **dict.fromkeys(last, 2)}
    return sorted(places, key=lambda place: order.get(place.kind, 0))


def _excerpt(place: Place, redacted: RedactedLines, max_lines: int) -> CodeExcerpt:
    """Return the definition at a place, or its beginning if it is long."""
    whole = redacted.unredacted(place.entry)
    data = "\n".join(whole).encode()
    first, last = max(1, place.line - LINES_ABOVE), place.line + max_lines
    for chunk in outline_text(place.path, data).chunks:
        start = data.count(b"\n", 0, chunk.start) + 1
        end = start + data.count(b"\n", chunk.start, chunk.end) - (data[chunk.end - 1 : chunk.end] == b"\n")
        if start <= place.line <= end:
            first, last = max(start, place.line - LINES_ABOVE), end
            break
    lines = redacted.between(place.entry, first, min(last, first + max_lines - 1))
    return CodeExcerpt(place.path, place.line, first, tuple(clip(line, MAX_LINE_CHARS) for line in lines))
