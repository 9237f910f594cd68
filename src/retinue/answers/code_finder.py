"""Finds the code that a question is about, and cuts it into excerpts that fit into a prompt. Asks no model.

The places come from the locator, or from a report that has them already. Tests come last, because they use
names without explaining them, and tests inside files of code are left out. Excerpts are redacted, and charged
to the budget of the request like everything that a role reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from retinue.answers.locator import LocatorResult, locate
from retinue.answers.question_reader import asks_a_question, read_question
from retinue.answers.request import ResearchRequest
from retinue.answers.role_context import RoleContext
from retinue.answers.scope import SearchScope
from retinue.answers.source_files import FilesRead, SourceFile, SourceFiles
from retinue.codebase import Codebase, FileEntry, Locator, file_kind, parse_hints, terms_of_text
from retinue.core import (
    UNMETERED,
    InvalidInput,
    LimitExceeded,
    Reference,
    Spending,
    Stop,
    Stopped,
    estimate_tokens,
    run_in_thread,
)

EXCERPT_LINES = 40
"""Lines that are shown around a place."""
LINES_ABOVE = 3
"""Lines above a definition that may belong to it, such as a decorator."""
LINES_BEFORE_PLACE = 10
"""Lines before a place that is deep inside a long definition."""
MIN_EXCERPT_LINES = 8
"""Excerpts are not cut below so many lines: fewer excerpts are shown then."""
MAX_CANDIDATES = 24
SEARCHED_LINES = 60
"""How far into a definition the words of another search are looked for."""
MAX_SECONDS = 8.0
"""Limit for one search."""
FITTING_EXCERPTS, FITTING_SHARE = 3, 0.5
"""A project has code for a question if so many excerpts contain this share of its words."""


@dataclass(frozen=True, slots=True)
class CodeExcerpt:
    """Some lines of a file, as a model sees them."""

    path: str
    """The path as the report names it."""
    line: int
    """The line that the search found."""
    first: int
    """The number of the first line."""
    lines: tuple[str, ...]
    symbol: str = ""
    """The definition that the place is in; empty if there is none."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def numbered(self) -> tuple[tuple[int, str], ...]:
        """The lines, each with its number."""
        return tuple(enumerate(self.lines, self.first))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def __str__(self) -> str:
        return "\n".join([f"{self.path}:", *(f"{number}: {text}" for number, text in self.numbered)])

    def holds(self, path: str, line: int) -> bool:
        """Return whether a line is among the shown ones."""
        return path == self.path and self.first <= line <= self.last

    def line_at(self, number: int) -> str:
        return self.lines[number - self.first] if self.first <= number <= self.last else ""

    def around(self, number: int, most: int) -> CodeExcerpt:
        """Return at most so many of its lines, those around one of them."""
        if len(self.lines) <= most:
            return self
        start = max(0, min(number - self.first - most // 4, len(self.lines) - most))
        return replace(self, first=self.first + start, lines=self.lines[start : start + most])


@dataclass(slots=True, kw_only=True)
class CodeFinder:
    """Finds code for one question: the best places, the next ones, and those of a search in other words."""

    context: RoleContext
    spending: Spending = UNMETERED
    references: Sequence[Reference] | None = None
    """The places that are known to answer, best first; None to search for them."""
    known: frozenset[str] = frozenset()
    """Places that a report names already. A search in other words leaves them out."""
    result: LocatorResult | None = field(default=None, init=False)
    """What the locator has found, once it has searched."""
    shown: list[CodeExcerpt] = field(default_factory=list[CodeExcerpt], init=False)
    """All excerpts so far, in the order in which they were made."""
    further: list[Reference] = field(default_factory=list[Reference], init=False)
    """What only the search in other words has found."""

    @classmethod
    def of_agent(
        cls,
        question: str,
        codebase: Codebase,
        locator: Locator,
        redact: Callable[[str], str],
        spending: Spending,
    ) -> CodeFinder:
        """Return a finder for a question of an agent, which pays only for the code that is shown."""
        scope = SearchScope(codebase, locator, tuple(FileEntry(root, "") for root in codebase.roots))
        context = RoleContext(
            ResearchRequest(question=question),
            read_question(question),
            scope,
            SourceFiles(codebase, FilesRead(), redact),
        )
        return cls(context=context, spending=spending)

    @property
    def _searched(self) -> RoleContext:
        """The context of a search, which costs a report, but not an agent."""
        if self.known:
            return self.context.with_spending(self.spending)
        return replace(self.context, sources=replace(self.context.sources, files_read=FilesRead()))

    async def search(self, seconds: float = MAX_SECONDS) -> None:
        """Search for the places, if they are not given. A search that fails finds none."""
        if self.references is not None:
            return

        def find(stop: Stop) -> LocatorResult | None:
            try:
                return locate(self._searched, MAX_CANDIDATES, stop)
            except (InvalidInput, LimitExceeded, Stopped):
                return None

        self.result = await run_in_thread(find, seconds)
        self.references = () if self.result is None else self.result.references

    @property
    def absence(self) -> str:
        """The locator's sentence that the project does not have this; empty if it may have it."""
        told = "" if self.result is None or self.result.places else self.result.summary
        return told if self.context.question.intent == "exists" and told.startswith("No") else ""

    def fits(self, excerpts: Sequence[CodeExcerpt]) -> bool:
        """Return whether some code has the words of the question, or those that code uses for them."""
        question = self.context.question
        known = set(terms_of_text("\n".join(f"{one.path} {one.text}" for one in excerpts)).split())
        text = "\n".join(one.text for one in excerpts)
        paths = {one.path for one in excerpts}
        if any(name in text for name in question.names) or not paths.isdisjoint(question.parsed.paths):
            return True
        wanted = [term for term in question.subject_terms if term not in question.parsed.kept_stop_terms]
        related = {source for term, source in question.parsed.related_to.items() if term in known}
        found = [term for term in wanted if term in known or term in related]
        return bool(found) and len(found) >= FITTING_SHARE * len(wanted)

    async def is_asked_about_code(self) -> bool:
        """Return whether the text is a question that this project's code can answer."""
        await self.search()
        question = self.context.question
        if not asks_a_question(self.context.request.question):
            return False
        shown = self.shown or await self.show(FITTING_EXCERPTS)
        if self.absence or question.needs_project:
            return True
        return bool(shown) and self.fits(shown)

    async def show(self, count: int, lines: int = EXCERPT_LINES) -> list[CodeExcerpt]:
        """Return the code of the next places, at most `count` excerpts. Leaves out what is shown already."""
        await self.search()
        return await self._show(self.references or (), count, lines)

    async def search_again(self, words: Sequence[str], count: int) -> list[CodeExcerpt]:
        """Return the code of places that only a search with some more words finds."""
        context = self._searched
        wider = replace(context, question=context.question.with_hints((*context.request.also, *words)))
        known = {*self.known, *map(str, self.references or ())}

        def find(stop: Stop) -> list[Reference]:
            try:
                found = locate(wider, MAX_CANDIDATES, stop, context.sources.spending).references
            except (InvalidInput, LimitExceeded, Stopped):
                return []
            new = [one for one in found if one.line and str(one) not in known]
            new = [one for one in new if not is_beside_question(context, one.path)]
            return [one for one in new if mentions(context, one, words, stop)]

        self.further = await run_in_thread(find, MAX_SECONDS)
        return await self._show(self.further, count, EXCERPT_LINES)

    async def _show(self, references: Sequence[Reference], count: int, lines: int) -> list[CodeExcerpt]:
        def show(stop: Stop) -> list[CodeExcerpt]:
            try:
                return show_code(self.context, references, count, lines, self.shown, stop, self.spending)
            except Stopped:
                return []

        code = [one for one in references if file_kind(one.path) != "docs"]
        if code and self.context.question.prefers_code:
            references = code
        made = await run_in_thread(show, MAX_SECONDS)
        self.shown += made
        return made


def show_code(
    context: RoleContext,
    references: Sequence[Reference],
    count: int,
    max_lines: int,
    skip: Sequence[CodeExcerpt],
    stop: Stop,
    spending: Spending = UNMETERED,
) -> list[CodeExcerpt]:
    """Return the code at the first places, at most `count` excerpts. Leaves out what `skip` shows already."""
    context = context.with_spending(spending)
    shown: list[CodeExcerpt] = []
    for reference in _code_first(references[:MAX_CANDIDATES], context):
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


def fit_excerpts(excerpts: Sequence[CodeExcerpt], tokens: int) -> list[CodeExcerpt]:
    """Shorten the excerpts around their places until all fit into `tokens`, then leave out the last ones."""
    fitting = list(excerpts)
    most = max((len(one.lines) for one in fitting), default=0)
    while fitting and sum(estimate_tokens(str(one)) for one in fitting) > tokens:
        if most > MIN_EXCERPT_LINES:
            most -= 2
            fitting = [one.around(one.line, most) for one in excerpts]
        else:
            fitting.pop()
    return fitting


def mentions(context: RoleContext, reference: Reference, words: Sequence[str], stop: Stop) -> bool:
    """Return whether the definition at a place contains one of some words, or a part of one."""
    entry, line = entry_of(context, reference), reference.line or 1
    source = None if entry is None else context.sources.peek(entry, stop)
    if source is None:
        return False
    around = source.definition_around(line)
    last = min(around.end if around else line, line + SEARCHED_LINES)
    text = "\n".join(source.lines[line - 1 : last])
    terms = {term for hint in parse_hints(words) for term in hint.terms}
    return not terms.isdisjoint(terms_of_text(text).split())


def entry_of(context: RoleContext, reference: Reference) -> FileEntry | None:
    """Return the file that a reference of the report names."""
    number = context.root_of.get(str(reference), 0)
    before = len(context.before.folders) if context.before else 0
    if not 0 <= number - before < len(context.scope.folders) or reference.path.startswith("../"):
        return None
    folder = context.scope.folders[number - before]
    return FileEntry(folder.root, f"{folder.path}/{reference.path}" if folder.path else reference.path)


def _code_first(references: Collection[Reference], context: RoleContext) -> Iterator[Reference]:
    """Yield references to code before those to documents and declarations, and those to tests last."""

    def order(reference: Reference) -> int:
        if is_beside_question(context, reference.path):
            return 2
        declares = reference.path.endswith((".d.ts", ".d.cts", ".d.mts", ".pyi"))
        return int(declares or file_kind(reference.path) in ("docs", "config"))

    yield from sorted(references, key=order)


def is_beside_question(context: RoleContext, path: str) -> bool:
    """Return whether a file is a test and the question is not about tests."""
    return file_kind(path) == "test" and not context.question.is_about_tests


def _is_inline_test(source: SourceFile, line: int, context: RoleContext) -> bool:
    """Return whether a line belongs to tests inside a file of code, and the question is not about tests."""
    return not context.question.is_about_tests and source.is_inline_test(source.definition_around(line))


def _excerpt(source: SourceFile, path: str, line: int, max_lines: int) -> CodeExcerpt:
    """Return the definition around a line, or a part of it around the line, with code around a short one."""
    around = source.definition_around(line)
    first = max(1, line - LINES_ABOVE if around is None else max(around.top, around.line - LINES_ABOVE))
    end = line if around is None else around.end
    if line >= first + max_lines:
        first = max(first, line - LINES_BEFORE_PLACE)
    elif (room := max_lines - (end - first + 1)) > 0:
        first, end = max(1, first - room // 3), end + room
    while first < line and not source.lines[first - 1].strip():
        first += 1
    last = min(end, first + max_lines - 1, len(source.lines))
    lines = tuple(source.snippet(first, last).split("\n"))
    return CodeExcerpt(path, line, first, lines, "" if around is None else around.qualified_name)
