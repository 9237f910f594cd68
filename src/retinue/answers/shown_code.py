"""Chooses the code that a model is shown for a question: the first places of the search, as excerpts.

Tests come last, because they use names without explaining them, and tests inside files of code are left out.
Excerpts are redacted, and charged to the
budget of the request like everything that a role reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from retinue.answers.role_context import RoleContext
from retinue.answers.source_files import SourceFile
from retinue.codebase import FileEntry, file_kind
from retinue.core import UNMETERED, LimitExceeded, Reference, Spending, Stop
from retinue.tools import first_inline_test

LINES_ABOVE = 3
"""Lines above a definition that may belong to it, such as a decorator."""
LINES_BEFORE_FOCUS = 10
"""Lines before the best line of a long definition."""
MAX_CANDIDATES = 24
SEARCHED_LINES = 60
"""How far into a definition its words are looked for."""


@dataclass(frozen=True, slots=True)
class ShownCode:
    """Some lines of a file, as a model sees them."""

    path: str
    """The path as the report names it."""
    first: int
    """The number of the first line."""
    lines: tuple[str, ...]
    prose: frozenset[int]
    """Numbers of the lines that are only comments or documentation."""
    name: str = ""
    """The definition that the lines show from its beginning; empty if there is none."""
    line: int = 0
    """The line of its name."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def holds(self, path: str, line: int) -> bool:
        """Return whether a line is among the shown ones."""
        return path == self.path and self.first <= line <= self.last

    def cut(self, max_lines: int) -> ShownCode:
        """Return the first lines of it."""
        return self if len(self.lines) <= max_lines else replace(self, lines=self.lines[:max_lines])


def show_code(
    context: RoleContext,
    references: Sequence[Reference],
    count: int,
    max_lines: int,
    skip: Sequence[ShownCode],
    stop: Stop,
    spending: Spending = UNMETERED,
) -> list[ShownCode]:
    """Return the code at the first places, at most `count` excerpts. Leaves out what `skip` shows already."""
    context = context.with_spending(spending)
    shown: list[ShownCode] = []
    for reference in _code_first(references[:MAX_CANDIDATES], context.request.question):
        if len(shown) == count:
            break
        line = reference.line or 1
        if any(one.holds(reference.path, line) for one in (*skip, *shown)):
            continue
        entry = entry_of(context, reference)
        source = None if entry is None else context.sources.peek(entry, stop)
        if source is None or line > len(source.lines) or _is_inline_test(source, line, context):
            continue
        excerpt = _excerpt(source, reference.path, line, max_lines)
        try:
            context.sources.charge(source.entry, sum(len(one.encode()) + 1 for one in excerpt.lines))
        except LimitExceeded:
            break
        shown.append(excerpt)
    return shown


def mentions(context: RoleContext, reference: Reference, words: Sequence[str], stop: Stop) -> bool:
    """Return whether the definition at a place contains one of some words."""
    entry, line = entry_of(context, reference), reference.line or 1
    source = None if entry is None else context.sources.peek(entry, stop)
    if source is None:
        return False
    around = source.definition_around(line)
    last = min(around.end if around else line, line + SEARCHED_LINES)
    text = "\n".join(source.lines[line - 1 : last]).casefold()
    return any(word.casefold() in text for word in words)


def entry_of(context: RoleContext, reference: Reference) -> FileEntry | None:
    """Return the file that a reference of the report names."""
    number = context.root_of.get(str(reference), 0)
    before = len(context.before.folders) if context.before else 0
    if not 0 <= number - before < len(context.scope.folders) or reference.path.startswith("../"):
        return None
    folder = context.scope.folders[number - before]
    return FileEntry(folder.root, f"{folder.path}/{reference.path}" if folder.path else reference.path)


def _code_first(references: Collection[Reference], question: str) -> Iterator[Reference]:
    """Yield references to code before those to documents and declarations, and those to tests last."""

    def order(reference: Reference) -> int:
        if is_test(reference.path, question):
            return 2
        declares = reference.path.endswith((".d.ts", ".d.cts", ".d.mts", ".pyi"))
        return int(declares or file_kind(reference.path) in ("docs", "config"))

    yield from sorted(references, key=order)


def is_test(path: str, question: str) -> bool:
    """Return whether a file is a test and the question is not about tests."""
    return file_kind(path) == "test" and "test" not in question.lower()


def _is_inline_test(source: SourceFile, line: int, context: RoleContext) -> bool:
    """Return whether a line belongs to tests inside a file of code, and the question is not about tests."""
    is_about_tests = "test" in context.request.question.lower()
    return not is_about_tests and line >= first_inline_test(source.entry.path, source.lines)


def _excerpt(source: SourceFile, path: str, line: int, max_lines: int) -> ShownCode:
    """Return the definition around a line, or the part of it around the line if it is long."""
    around = source.definition_around(line)
    if around is None:
        first, end = max(1, line - LINES_ABOVE), len(source.lines)
    else:
        first, end = max(around.top, around.line - LINES_ABOVE), around.end
        if line >= first + max_lines:
            first = max(first, line - LINES_BEFORE_FOCUS)
    while first < line and not source.lines[first - 1].strip():
        first += 1
    last = min(end, first + max_lines - 1)
    lines = source.snippet(first, last).split("\n")
    prose = frozenset(number for number in source.prose_lines if first <= number <= last)
    shown = [one for one in source.definitions if first <= one.line <= last]
    named = around if around in shown else next(iter(shown), None)
    if named is None:
        return ShownCode(path, first, tuple(lines), prose)
    return ShownCode(path, first, tuple(lines), prose, named.name, named.line)
