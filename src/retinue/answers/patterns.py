"""The pattern finder role: shows how something is done elsewhere, in a few distinct examples with code.

Examples are what implements or uses a name of the question. Without a name they are the most relevant
definitions and their siblings, which are told as possible examples. Knows nothing of how places are found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition, SourceFile
from retinue.answers.tracing import find_uses
from retinue.codebase import (
    Bounds,
    Claim,
    FileEntry,
    Place,
    SearchPattern,
    best_definitions,
    file_category,
    split_identifier,
)
from retinue.core import UNMETERED, RoleResult, Spending, Stop, counted, join_notes

MIN_EXAMPLES, MAX_EXAMPLES = 2, 6
SNIPPET_LINES = 12
MAX_SOURCE_FILES = 8
"""How many files provide examples."""
EXAMPLES_PER_FILE = 2
MIN_SIBLINGS, MAX_SIBLINGS = 3, 4
"""How many definitions of a file with alike names are siblings, and how many of them are shown."""
MIN_EXAMPLE_LINES = 3
"""A constant or a one-line wrapper shows no pattern."""
MAX_SHOWN_COMMENT = 3
"""A longer comment above an example is left out, so that its code is seen."""
MAX_NAMES = 2
IMPLEMENTER_BOUNDS = Bounds(max_files=60, max_matches=120, max_matches_per_file=4, max_line_chars=300)
ORDER = {"example": 0, "own": 1, "package": 1, "docs": 2, "config": 2, "test": 3, "vendored": 4}
_DECLARATION = re.compile(
    r"\b(?:interface|trait|protocol|abstract|typedef|TypedDict|Protocol|ABC)\b"
    r"|^\s*(?:export\s+)?type\b(?!.*\bstruct\b)"
)
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
    implements: bool = False
    """Whether it implements a name of the question. Implementers may look alike."""

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
    """Find distinct examples of what the question asks for. Each has one reference."""
    context = context.with_spending(spending)
    examples: list[Example] = []
    with soft_deadline(stop) as soft:
        _collect_distinct(examples, _candidates(context, places, soft.stop))
    names = context.question.names[:MAX_NAMES]
    uses = [one for one in examples if one.definition is None or one.definition.name not in names]
    examples = uses or examples  # a definition is not an example of itself
    with_name = [one for one in examples if not one.words.isdisjoint(names)]
    examples = with_name or examples
    verified = verify_findings(context, [_example_finding(context, example) for example in examples], stop)
    number = len(verified.texts)
    return RoleResult(
        summary=_summary(number, has_names=bool(with_name)),
        references=verified.references,
        key_findings=verified.texts,
        confidence="med" if number >= MIN_EXAMPLES and names else "low",
        notes=join_notes(
            verified.note, soft.note, "Only one example: there may be no pattern." if number == 1 else None
        ),
    )


def _summary(number: int, *, has_names: bool) -> str:
    """Count the examples. What has only words of the question, and no name, may show something else."""
    if not number:
        return "Not found: no example of it."
    if has_names:
        return f"{counted(number, 'distinct example')}."
    return f"{counted(number, 'definition')} with words of the question, which may be examples."


def _candidates(context: RoleContext, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield what implements or uses the names of the question, then siblings, then relevant definitions."""
    for name in context.question.names[:MAX_NAMES]:
        yield from _implementers(context, name, stop)
        yield from _uses(context, name, places, stop)
    wanted = [place for place in places if place.kind not in ("test", "docs")][:MAX_SOURCE_FILES]
    wanted.sort(key=lambda place: file_category(place.path) != "example")
    yield from _siblings(context, wanted, stop)
    for number in range(EXAMPLES_PER_FILE):
        for place in wanted:
            source = context.sources.open(place.entry, stop)
            if source is None:
                continue
            relevant = source.definitions_by_relevance(context.question.terms)
            telling = [one for one in relevant if _shows_something(source, one)]
            if number < len(telling):
                yield _example_around(source, telling[number].line, telling[number])


def _siblings(context: RoleContext, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield definitions beside the best ones whose names end alike, as `JsonWriter` and `XmlWriter`."""
    for place, best in best_definitions(places)[:MAX_SOURCE_FILES]:
        source = context.sources.open(place.entry, stop)
        found = [one for one in source.definitions if one.line == best.line] if source is not None else []
        if source is None or not found:
            continue
        alike = [one for one in source.definitions if _are_siblings(source, found[0], one)]
        telling = [one for one in alike if _shows_something(source, one)]
        for one in telling[:MAX_SIBLINGS] if len(alike) >= MIN_SIBLINGS else ():
            yield _example_around(source, one.line, one)


def _are_siblings(source: SourceFile, one: SourceDefinition, other: SourceDefinition) -> bool:
    """Return whether two definitions of a file are of one kind and have names that end with the same word."""
    if one.owner != other.owner or source.is_type(one) != source.is_type(other):
        return False
    words, others = split_identifier(one.name), split_identifier(other.name)
    return len(words) > 1 and len(others) > 1 and words[-1] == others[-1]


def _shows_something(source: SourceFile, definition: SourceDefinition) -> bool:
    """Return whether a definition has code of its own: an interface only declares."""
    if definition.end - definition.top < MIN_EXAMPLE_LINES - 1:
        return False
    return _DECLARATION.search(source.lines[definition.line - 1]) is None


def _implementers(context: RoleContext, name: str, stop: Stop) -> Iterator[Example]:
    """Yield the types that extend or implement a type, and functions that create it anonymously."""
    wanted = re.escape(name)
    found = context.scope.codebase.grep(
        SearchPattern(
            rf"\b(?:class|struct|object|record|enum)\b[^=]*[(:,<\s]{wanted}\b|\bimpl\b.*\b{wanted}\b.*\bfor\b"
            rf"|\bnew {wanted}\b.*\{{\s*$"
        ),
        stop,
        bounds=IMPLEMENTER_BOUNDS,
    ).matches
    stop.check()
    own = re.compile(rf"\b(?:class|struct|object|record|enum|interface|trait)\s+{wanted}\b")
    seen = Counter[FileEntry]()
    matches = [match for match in found if not own.search(match.text)]
    for match in sorted(matches, key=lambda match: (_order(match.entry), _count_in_file(seen, match.entry))):
        source = context.sources.peek(match.entry, stop)
        if source is None or match.line > len(source.lines) or match.line in source.prose_lines:
            continue
        here = [one for one in source.definitions if one.line == match.line]
        definition = here[0] if here else source.definition_around(match.line)
        yield _example_around(source, match.line, definition, implements=True)


def _uses(context: RoleContext, name: str, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield calls and other uses of a name. A parameter or a field of its type shows nothing."""
    entries = [place.entry for place in places]
    home, definition = entries[0], SourceDefinition(name, 0, 0)
    for entry in entries[:MAX_SOURCE_FILES]:
        source = context.sources.peek(entry, stop)
        known = source.find_definition(name) if source is not None else None
        if known is not None:
            home, definition = entry, known
            break
    uses = find_uses(context, definition, home, entries, MAX_SOURCE_FILES, stop).uses
    seen = Counter[FileEntry]()
    telling = [use for use in uses if not use.is_type]
    for use in sorted(telling, key=lambda use: (_count_in_file(seen, use.entry), _order(use.entry))):
        source = context.sources.open(use.entry, stop)
        if source is not None:
            yield _example_around(source, use.line, use.within)


def _order(entry: FileEntry) -> int:
    """Return where examples of a file come: examples, own code, documentation, tests."""
    return ORDER.get(file_category(entry.path), 1)


def _count_in_file(seen: Counter[FileEntry], entry: FileEntry) -> int:
    """Count the examples of a file, so that first uses come before second uses."""
    seen[entry] += 1
    return seen[entry]


def _example_around(
    source: SourceFile, line: int, definition: SourceDefinition | None, *, implements: bool = False
) -> Example:
    """Return an example that starts with the definition, or around the line if the definition is long."""
    top, end = (definition.top, definition.end) if definition else (1, len(source.lines))
    comment = next((at for at in range(top, line) if at not in source.prose_lines), line) - top
    if comment > MAX_SHOWN_COMMENT:
        top += comment
    first = top if line - top < SNIPPET_LINES - 2 else line - SNIPPET_LINES // 3
    return Example(source, first, min(end, first + SNIPPET_LINES - 1), line, definition, implements)


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
    if one.implements and other.implements:
        return False
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
