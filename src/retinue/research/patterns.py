"""The pattern finder: how it is done elsewhere. A few distinct examples, each with the code that matters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retinue.codebase import Claim, FileEntry, Place, file_kind, words_in_files
from retinue.core import RoleResult, Stop, counted, join_notes
from retinue.research.role_context import Finding, Inquiry, early, verify
from retinue.research.source_files import SourceDefinition, SourceFile
from retinue.research.tracing import uses_of

FEWEST, EXAMPLES = 2, 6
SNIPPET_LINES = 12
CANDIDATES = 8
"""Files that examples are taken from."""
PER_FILE = 2
SHORTEST = 3
"""Lines of an example: a constant or a one-line wrapper shows no pattern."""
ALIKE = 0.6
"""Two examples that share this much of their words are one example."""
SAME_SHAPE = 0.75
"""As much of their lines, names and values aside, makes two examples one as well."""
_WORD = re.compile(r"\w+")
_VALUE = re.compile(r"""(["'`])(?:(?!\1).)*\1|\w+""")


@dataclass(frozen=True, slots=True)
class Example:
    source: SourceFile
    first: int
    last: int
    line: int
    """The line that the example is about."""
    definition: SourceDefinition | None

    @property
    def entry(self) -> FileEntry:
        return self.source.entry

    @property
    def words(self) -> frozenset[str]:
        return frozenset(_WORD.findall("\n".join(self.source.lines[self.first - 1 : self.last])))

    @property
    def shape(self) -> Counter[str]:
        """Its lines of code without their names and values."""
        numbers = range(self.first, self.last + 1)
        code = (self.source.lines[number - 1] for number in numbers if number not in self.source.prose)
        shapes = ("".join(_VALUE.sub("x", line).split()) for line in code)
        return Counter(shape for shape in shapes if shape)


def find_patterns(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> RoleResult:
    examples: list[Example] = []
    with early(stop) as soon:
        _collect(examples, _candidates(inquiry, places, soon.stop))
    tests = [place for place in places if place.kind == "test"]
    shown = [_finding(inquiry, example) for example in examples]
    verified = verify(inquiry, [*shown, *_tests_of(inquiry, examples, tests, stop)], stop)
    number = sum(one.text in verified.findings for one in shown)
    return RoleResult(
        summary=f"{counted(number, 'distinct example')}." if number else "Not found: no example of it.",
        references=verified.references,
        key_findings=verified.findings,
        confidence="med" if number >= FEWEST else "low",
        notes=join_notes(
            verified.notes, soon.note, "Only one example: there may be no pattern." if number == 1 else None
        ),
    )


def _candidates(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Uses of what the question names, then the most relevant definitions, one of each file at a time."""
    near = [place.entry for place in places]
    for name in inquiry.asked.names[:2]:
        uses = uses_of(inquiry, SourceDefinition(name, 0, 0), near[0], near, CANDIDATES, stop).callers
        seen = Counter[FileEntry]()
        for use in sorted(uses, key=lambda use: _next(seen, use.entry)):
            source = inquiry.sources.open(use.entry, stop)
            if source is not None:
                yield _around(source, use.line, use.within)
    wanted = [place for place in places if place.kind not in ("test", "docs")][:CANDIDATES]
    for number in range(PER_FILE):
        for place in wanted:
            source = inquiry.sources.open(place.entry, stop)
            if source is None:
                continue
            relevant = source.by_relevance(inquiry.asked.terms)
            lasting = [one for one in relevant if one.end - one.top >= SHORTEST - 1]
            if number < len(lasting):
                yield _around(source, lasting[number].line, lasting[number])


def _next(seen: Counter[FileEntry], entry: FileEntry) -> int:
    """How many times the file came before: the first use in each file goes before the second in any."""
    seen[entry] += 1
    return seen[entry]


def _around(source: SourceFile, line: int, definition: SourceDefinition | None) -> Example:
    """At most so many lines: of the definition if the line is near its start, else around the line."""
    top, end = (definition.top, definition.end) if definition else (1, len(source.lines))
    first = top if line - top < SNIPPET_LINES - 2 else line - SNIPPET_LINES // 3
    return Example(source, first, min(end, first + SNIPPET_LINES - 1), line, definition)


def _collect(kept: list[Example], candidates: Iterator[Example]) -> None:
    """The first of those that are alike, whether copied or overlapping."""
    for one in candidates:
        if one.words and not any(_alike(one, other) for other in kept):
            kept.append(one)
        if len(kept) == EXAMPLES:
            break


def _alike(one: Example, other: Example) -> bool:
    if one.entry == other.entry and one.first <= other.last and other.first <= one.last:
        return True
    if len(one.words & other.words) / len(one.words | other.words) >= ALIKE:
        return True
    here, there = one.shape, other.shape
    return (here & there).total() >= SAME_SHAPE * max(1, (here | there).total())


def _finding(inquiry: Inquiry, example: Example) -> Finding:
    name = f" in `{example.definition.name}`" if example.definition else ""
    reference = inquiry.reference(example.entry, example.line)
    code = example.source.snippet(example.first, example.last)
    says = example.source.lines[example.line - 1].strip()
    return Finding(f"{reference}{name}\n{code}", (Claim(example.entry, example.line, (says,)),))


def _tests_of(
    inquiry: Inquiry, examples: Sequence[Example], tests: Sequence[Place], stop: Stop
) -> Iterator[Finding]:
    """For each example the first of the found tests that names it, each test once."""
    names = [
        one.definition.name for one in examples if one.definition and file_kind(one.entry.path) != "test"
    ]
    seen = words_in_files(inquiry.scope.codebase, (test.entry for test in tests), names, stop)
    told: set[FileEntry] = set()
    for name in names:
        entry = next((entry for entry, found in seen.items() if name in found and entry not in told), None)
        if entry is not None:
            told.add(entry)
            yield Finding(f"{inquiry.reference(entry)}: a test of `{name}`", (Claim(entry, None, (name,)),))
