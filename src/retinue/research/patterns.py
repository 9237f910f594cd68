"""The pattern finder role: shows how something is done elsewhere, in a few distinct examples with code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retinue.codebase import Claim, FileEntry, Place, file_kind, words_in_files
from retinue.core import UNMETERED, RoleResult, Spending, Stop, counted, join_notes
from retinue.research.question import code_names, heaviest_terms
from retinue.research.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.research.source_files import SourceDefinition, SourceFile
from retinue.research.tracing import find_uses

MIN_EXAMPLES, MAX_EXAMPLES = 2, 6
SNIPPET_LINES = 12
MAX_SOURCE_FILES = 8
"""How many files provide examples."""
EXAMPLES_PER_FILE = 2
MIN_EXAMPLE_LINES = 3
"""A constant or a one-line wrapper shows no pattern."""
SAME_WORDS_SHARE = 0.6
"""Two examples that share this much of their words are duplicates."""
SAME_SHAPE_SHARE = 0.75
"""Two examples that share this much of their lines, apart from names and values, are duplicates too."""
_WORD = re.compile(r"\w+")
_VALUE = re.compile(r"""(["'`])(?:(?!\1).)*\1|\w+""")


@dataclass(frozen=True, slots=True)
class Example:
    """Some lines of a file that show how something is done."""

    source: SourceFile
    first: int
    last: int
    line: int
    """The most relevant line."""
    definition: SourceDefinition | None

    @property
    def entry(self) -> FileEntry:
        return self.source.entry

    @property
    def words(self) -> frozenset[str]:
        return frozenset(_WORD.findall("\n".join(self.source.lines[self.first - 1 : self.last])))

    @property
    def shape(self) -> Counter[str]:
        """The lines of code with names and values replaced by `x`."""
        numbers = range(self.first, self.last + 1)
        code = (self.source.lines[number - 1] for number in numbers if number not in self.source.prose_lines)
        shapes = ("".join(_VALUE.sub("x", line).split()) for line in code)
        return Counter(shape for shape in shapes if shape)


def find_examples(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Find distinct examples of what the question asks for, and tests of them."""
    context = context.with_spending(spending)
    examples: list[Example] = []
    with soft_deadline(stop) as soft:
        _collect_distinct(examples, _candidates(context, places, soft.stop))
    tests = [place for place in places if place.kind == "test"]
    shown = [_example_finding(context, example) for example in examples]
    verified = verify_findings(context, [*shown, *_test_findings(context, examples, tests, stop)], stop)
    number = sum(one.text in verified.texts for one in shown)
    return RoleResult(
        summary=f"{counted(number, 'distinct example')}." if number else "Not found: no example of it.",
        references=verified.references,
        key_findings=verified.texts,
        confidence="med" if number >= MIN_EXAMPLES else "low",
        notes=join_notes(
            verified.note, soft.note, "Only one example: there may be no pattern." if number == 1 else None
        ),
    )


def _candidates(context: RoleContext, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield uses of what the question names, then the most relevant definitions, file by file in turn."""
    entries = [place.entry for place in places]
    for name in code_names(context.question)[:2]:
        named = SourceDefinition(name, 0, 0)
        uses = find_uses(context, named, entries[0], entries, MAX_SOURCE_FILES, stop).callers
        seen = Counter[FileEntry]()
        for use in sorted(uses, key=lambda use: _count_in_file(seen, use.entry)):
            source = context.sources.open(use.entry, stop)
            if source is not None:
                yield _example_around(source, use.line, use.within)
    wanted = [place for place in places if place.kind not in ("test", "docs")][:MAX_SOURCE_FILES]
    terms = heaviest_terms(context.question)
    for number in range(EXAMPLES_PER_FILE):
        for place in wanted:
            source = context.sources.open(place.entry, stop)
            if source is None:
                continue
            relevant = source.definitions_by_relevance(terms)
            long_enough = [one for one in relevant if one.end - one.top >= MIN_EXAMPLE_LINES - 1]
            if number < len(long_enough):
                yield _example_around(source, long_enough[number].line, long_enough[number])


def _count_in_file(seen: Counter[FileEntry], entry: FileEntry) -> int:
    """Count the uses in a file. As a sort key, this puts the first use in each file before second uses."""
    seen[entry] += 1
    return seen[entry]


def _example_around(source: SourceFile, line: int, definition: SourceDefinition | None) -> Example:
    """Return an example that starts with the definition, or around the line if the definition is long."""
    top, end = (definition.top, definition.end) if definition else (1, len(source.lines))
    first = top if line - top < SNIPPET_LINES - 2 else line - SNIPPET_LINES // 3
    return Example(source, first, min(end, first + SNIPPET_LINES - 1), line, definition)


def _collect_distinct(kept: list[Example], candidates: Iterator[Example]) -> None:
    """Add candidates to `kept` that neither duplicate nor overlap one that is already there."""
    for one in candidates:
        if one.words and not any(_are_duplicates(one, other) for other in kept):
            kept.append(one)
        if len(kept) == MAX_EXAMPLES:
            break


def _are_duplicates(one: Example, other: Example) -> bool:
    """Return whether two examples overlap, share most words, or have the same shape."""
    if one.entry == other.entry and one.first <= other.last and other.first <= one.last:
        return True
    if len(one.words & other.words) / len(one.words | other.words) >= SAME_WORDS_SHARE:
        return True
    here, there = one.shape, other.shape
    return (here & there).total() >= SAME_SHAPE_SHARE * max(1, (here | there).total())


def _example_finding(context: RoleContext, example: Example) -> Finding:
    """Return a finding that shows the code of an example."""
    name = f" in `{example.definition.name}`" if example.definition else ""
    reference = context.reference(example.entry, example.line)
    code = example.source.snippet(example.first, example.last)
    line = example.source.lines[example.line - 1].strip()
    return Finding(f"{reference}{name}\n{code}", (Claim(example.entry, example.line, (line,)),))


def _test_findings(
    context: RoleContext, examples: Sequence[Example], tests: Sequence[Place], stop: Stop
) -> Iterator[Finding]:
    """Yield for each example the first test file that names it. A test file is listed once."""
    names = [
        one.definition.name for one in examples if one.definition and file_kind(one.entry.path) != "test"
    ]
    words = words_in_files(context.scope.codebase, (test.entry for test in tests), names, stop)
    listed: set[FileEntry] = set()
    for name in names:
        entry = next((entry for entry, found in words.items() if name in found and entry not in listed), None)
        if entry is not None:
            listed.add(entry)
            yield Finding(f"{context.reference(entry)}: a test of `{name}`", (Claim(entry, None, (name,)),))
