"""The pattern finder role: shows how something is done elsewhere, in a few distinct examples with code."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition, SourceFile
from retinue.answers.tracing import find_uses
from retinue.codebase import (
    Bounds,
    Claim,
    FileEntry,
    LineMatch,
    Place,
    SearchPattern,
    best_definitions,
    file_category,
    split_identifier,
    stem,
)
from retinue.core import UNMETERED, RoleResult, Spending, Stop, counted, join_notes

MIN_EXAMPLES, MAX_EXAMPLES = 2, 6
SNIPPET_LINES = 12
MAX_SOURCE_FILES = 8
"""How many files provide examples."""
EXAMPLES_PER_FILE = 2
MIN_FAMILY, MAX_FAMILY = 2, 4
"""How many siblings make a family of definitions, and how many of them are shown."""
MIN_EXAMPLE_LINES = 3
"""A constant or a one-line wrapper shows no pattern."""
MAX_SHOWN_COMMENT = 3
"""A longer comment above an example is left out, so that its code is seen."""
MAX_NAMES = 2
IMPLEMENTER_BOUNDS = Bounds(max_files=60, max_matches=120, max_matches_per_file=4, max_line_chars=300)
MIN_RELATIVES = 2
"""How many types must have a base or an ending in common to be shown as a kind."""
BLOCK_INTRODUCTION = 6
"""How many lines before a block of code in the documentation tell what it shows."""
MIN_BLOCK_SHARE, MAX_BLOCKS = 0.5, 2
"""Which share of the words of the question a block of code needs, and how many blocks are shown."""
HINT_WEIGHT = 2.0
"""The weight of a hint in choosing the kind; a word of the question has 1."""
FOLDER_BOUNDS, MAX_FOLDER_FILES = Bounds(max_entries=500), 2 * MAX_EXAMPLES
"""How many files in folders that are named like a kind are listed, and how many are looked at."""
RELATIVE_BOUNDS = Bounds(max_files=200, max_matches=400, max_matches_per_file=30, max_line_chars=300)
ORDER = {"example": 0, "own": 1, "package": 1, "docs": 2, "config": 2, "test": 3, "vendored": 4}
_DECLARATION = re.compile(
    r"\b(?:interface|trait|protocol|abstract|typedef)\b|^\s*(?:export\s+)?type\b(?!.*\bstruct\b)|\b(?:TypedDict|Protocol|ABC)\b"
)
_ASKED_KIND = re.compile(
    r"\b(?:existing|different|examples? of|all(?: the)?|built-in|the)\s+(?:[A-Za-z][\w-]*\s+){0,3}?"
    r"(?P<noun>[A-Za-z][\w-]*s)\b(?=\s+(?:that|which|who|for|in|of|to|on|from|with|are|so|I)\b|\s*[,.;:?!]|\s*$)"
)
"""The plural noun that a question asks for, such as the plugins in "existing plugins that change a query"."""
_TYPE_LINE = re.compile(
    r"^(?P<before>[\w\s@().,\"'-]*?)\b(?:class|struct|object|record|enum|type)\s+(?P<name>[A-Za-z_]\w*)(?P<rest>.*)$"
)
_IMPLEMENTED = re.compile(
    r"^\s*(?:unsafe\s+)?impl\b(?:<[^{]*?>)?\s+(?P<base>[\w:]+)[^{]*?\sfor\s+&?(?:mut )?(?P<name>[\w:]+)"
)
_BASE = re.compile(r"[A-Za-z_][\w.]*")
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
    is_relative: bool = False
    """Whether it is one of several types of a kind, which may look alike."""

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
    names = context.question.names
    uses = [one for one in examples if one.definition is None or one.definition.name not in names]
    examples = uses or examples  # a definition is not an example of itself
    verified = verify_findings(context, [_example_finding(context, example) for example in examples], stop)
    number = len(verified.texts)
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
    """Yield what implements or uses the names of the question, then the most relevant definitions.

    Examples come from the examples of the project first, then from its code, its documentation and its tests.
    """
    terms = context.question.terms
    hints = {hint.flat: HINT_WEIGHT for hint in context.question.parsed.hints}
    names = context.question.names[:MAX_NAMES]
    asks_for_kind = not names and asked_kind(context.request.question) is not None
    if asks_for_kind:
        yield from _relatives(context, terms | hints, places, stop)
        yield from _in_folder_of_kind(context, stop)
    for name in names or _names_made_of_words(context, places, stop):
        yield from _implementers(context, name, stop)
        yield from _uses(context, name, places, stop)
        yield from _documented(context, name, places, stop)
    if not asks_for_kind:
        yield from _relatives(context, terms | hints, places, stop)
    wanted = [place for place in places if place.kind not in ("test", "docs")][:MAX_SOURCE_FILES]
    if "docs" in context.question.parsed.wanted_categories:  # examples in the narrow sense
        wanted.sort(key=lambda place: file_category(place.path) != "example")
    yield from _families(context, wanted, stop)
    yield from _documented_like(context, places, stop)
    for number in range(EXAMPLES_PER_FILE):
        for place in wanted:
            source = context.sources.open(place.entry, stop)
            if source is None:
                continue
            relevant = source.definitions_by_relevance(terms)
            telling = [one for one in relevant if _shows_something(source, one)]
            if number < len(telling):
                yield _example_around(source, telling[number].line, telling[number])
    yield from _relatives(context, context.question.parsed.related, places, stop)


def _families(context: RoleContext, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield the siblings of the best definitions: names that end alike, as `JsonWriter` and `XmlWriter`."""
    for place, best in best_definitions(places)[:MAX_SOURCE_FILES]:
        source = context.sources.open(place.entry, stop)
        found = [one for one in source.definitions if one.line == best.line] if source is not None else []
        if source is None or not found:
            continue
        definition = found[0]
        if definition.owner and not source.is_type(definition):
            owners = [one for one in source.definitions if one.name == definition.owner]
            definition = owners[0] if owners else definition
        family = [one for one in source.definitions if _are_siblings(source, definition, one)]
        if len(family) > MIN_FAMILY:
            telling = [one for one in family if _shows_something(source, one)]
            for one in telling[:MAX_FAMILY]:
                yield _example_around(source, one.line, one)


def _are_siblings(source: SourceFile, one: SourceDefinition, other: SourceDefinition) -> bool:
    """Return whether two definitions of a file are of one kind and have names that end with the same word."""
    if one.owner != other.owner or source.is_type(one) != source.is_type(other):
        return False
    words, others = split_identifier(one.name), split_identifier(other.name)
    return len(words) > 1 and len(others) > 1 and words[-1] == others[-1]


def asked_kind(question: str) -> str | None:
    """Return the stem of the plural noun that a question asks for, as "plugin" for "existing plugins"."""
    found = _ASKED_KIND.search(question)
    return stem(found["noun"].casefold()) if found else None


def _names_made_of_words(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[str]:
    """Return the name of the first place if the words of the question make it."""
    terms = context.question.subject_terms
    for place in places[:1]:
        source = context.sources.peek(place.entry, stop) if place.line else None
        within = source.definition_around(place.line) if source is not None else None
        if within is not None and all(term in within.name.casefold().replace("_", "") for term in terms):
            return [within.name]
    return []


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
        if (example := _example_at(context, match, stop)) is not None:
            yield replace(example, is_relative=True)


def _example_at(context: RoleContext, match: LineMatch, stop: Stop) -> Example | None:
    """Return the definition at a line of code as an example, or what is around the line."""
    source = context.sources.peek(match.entry, stop)
    if source is None or match.line > len(source.lines) or match.line in source.prose_lines:
        return None
    here = [one for one in source.definitions if one.line == match.line]
    return _example_around(source, match.line, here[0] if here else source.definition_around(match.line))


def _relatives(
    context: RoleContext, weights: Mapping[str, float], places: Sequence[Place], stop: Stop
) -> Iterator[Example]:
    """Yield the types of one kind: those with a base, or with an end of their names, that some terms mean.

    "existing converters" means what extends `Converter.Factory`, or what is called `GsonConverter`. The base
    itself only declares. A kind that the question asks for comes first, then the one with most of the terms,
    the rarest ones, and most types. One of its types must be in the best files, unless the question asks for
    the kind or the caller guessed its name.
    """
    terms = [term for term in weights if len(term) > 2]
    if not terms:
        return
    kinds = _types_by_kind(context, terms, stop)
    ranks = {place.entry: rank for rank, place in enumerate(places)}
    scores = _score_kinds(kinds, asked_kind(context.request.question), weights, ranks)
    seen = Counter[FileEntry]()
    best = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:MAX_NAMES]
    rows = [
        sorted(
            kinds[kind].values(),
            key=lambda one: (
                _order(one.entry),
                _count_in_file(seen, one.entry),
                ranks.get(one.entry, len(ranks)),
            ),
        )
        for kind in best
    ]
    for match in filter(None, chain.from_iterable(zip_longest(*rows))):
        example = None if _DECLARATION.search(match.text) else _example_at(context, match, stop)
        if example is not None:
            yield replace(example, is_relative=True)


def _in_folder_of_kind(context: RoleContext, stop: Stop) -> Iterator[Example]:
    """Yield the longest definition of each file in a folder that is named like the kind, as `reporters/`."""
    asked = _ASKED_KIND.search(context.request.question)
    if asked is None:
        return
    plural = asked["noun"].casefold()
    globs = [f"**/{folder}/*" for folder in (plural, plural.removesuffix("s"))]
    files = [
        entry
        for entry in context.scope.codebase.glob(globs, stop, bounds=FOLDER_BOUNDS).entries
        if file_category(entry.path) == "own"
    ]
    found: list[Example] = []
    for entry in files[:MAX_FOLDER_FILES]:
        source = context.sources.peek(entry, stop)
        telling = [one for one in source.definitions if _shows_something(source, one)] if source else []
        if source is not None and telling:
            longest = max(telling, key=lambda one: one.length)
            found.append(replace(_example_around(source, longest.line, longest), is_relative=True))
    if len(found) > MIN_FAMILY:
        yield from found


def _types_by_kind(context: RoleContext, terms: Sequence[str], stop: Stop) -> dict[str, dict[str, LineMatch]]:
    """Return for each kind the names of its types, with the lines that define them."""
    either = "|".join(re.escape(term) for term in terms)
    found = context.scope.codebase.grep(
        SearchPattern(
            rf"\b(?:class|struct|object|record|enum|type)\s.*(?:{either})|\bimpl\b.*(?:{either}).*\bfor\b",
            ignore_case=True,
        ),
        stop,
        bounds=RELATIVE_BOUNDS,
    ).matches
    stop.check()
    kinds: dict[str, dict[str, LineMatch]] = {}
    for match in found:
        if file_category(match.entry.path) == "vendored":
            continue
        for kind, name in _kinds_of(match.text):
            kinds.setdefault(kind, {}).setdefault(name, match)
    return kinds


def _score_kinds(
    kinds: Mapping[str, Mapping[str, LineMatch]],
    asked: str | None,
    weights: Mapping[str, float],
    ranks: Mapping[FileEntry, int],
) -> dict[str, tuple[bool, float]]:
    """Score the kinds that have enough types and one of the terms in their names.

    A score says first whether the question asks for the kind.
    """
    terms = [term for term in weights if len(term) > 2]
    flat_kinds = {kind: kind.replace("_", "").replace(".", "").lower() for kind in kinds}
    having = {term: sum(term in flat for flat in flat_kinds.values()) for term in terms}
    scores: dict[str, tuple[bool, float]] = {}
    for kind, members in kinds.items():
        own = [one for one in members.values() if file_category(one.entry.path) != "test"]
        fitting = [term for term in terms if term in flat_kinds[kind]]
        is_near = any(ranks.get(one.entry, MAX_SOURCE_FILES) < MAX_SOURCE_FILES for one in own)
        is_asked = asked in fitting and asked in map(stem, split_identifier(kind))
        is_meant = is_near or is_asked or any(weights[one] > 1 for one in fitting)
        if len(own) >= MIN_RELATIVES and fitting and is_meant:
            fit = sum(weights[term] / math.log(1 + having[term] + 1) for term in fitting)
            is_base = not kind.startswith("*")
            scores[kind] = is_asked, fit * math.log(1 + len(own)) * (1 + is_near) * (1 + is_base)
    return scores


def _kinds_of(line: str) -> Iterator[tuple[str, str]]:
    """Yield the kinds that a type belongs to, with the name of the type: its bases, and its last word."""
    if found := _IMPLEMENTED.match(line):
        yield found["base"].rpartition("::")[2], found["name"].rpartition("::")[2]
        return
    found = _TYPE_LINE.match(line)
    if found is None:
        return
    name = found["name"]
    for base in dict.fromkeys(_BASE.findall(_without_type_arguments(found["rest"].partition("{")[0]))):
        if base not in _BASE_KEYWORDS and base != name:
            yield base, name
    words = split_identifier(name)
    if len(words) > 1:
        yield f"*{words[-1]}", name


_BASE_KEYWORDS = frozenset(
    [
        "extends",
        "implements",
        "with",
        "where",
        "struct",
        "interface",
        "public",
        "private",
        "protected",
        "virtual",
    ]
)


def _without_type_arguments(text: str) -> str:
    """Return a text without what is in angle or square brackets."""
    while (shorter := re.sub(r"<[^<>]*>|\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return text


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


def _documented(context: RoleContext, name: str, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield code of the documentation that has a name."""
    for place in places:
        source = context.sources.peek(place.entry, stop) if place.kind == "docs" else None
        if source is None:
            continue
        for first, last in _code_blocks(source):
            lines = [number for number in range(first, last + 1) if name in source.lines[number - 1]]
            if lines:
                yield Example(source, first, min(last, first + SNIPPET_LINES - 1), lines[0], None)
                break


def _documented_like(context: RoleContext, places: Sequence[Place], stop: Stop) -> Iterator[Example]:
    """Yield the blocks of code in the documentation with most words of the question in and before them."""
    terms = context.question.terms
    found: list[tuple[float, Example]] = []
    for place in [place for place in places if place.kind == "docs"][:MAX_SOURCE_FILES]:
        source = context.sources.peek(place.entry, stop)
        if source is None:
            continue
        for first, last in _code_blocks(source):
            text = "\n".join(source.lines[max(0, first - BLOCK_INTRODUCTION) : last]).casefold()
            worth = sum(weight for term, weight in terms.items() if term in text)
            if worth >= MIN_BLOCK_SHARE * sum(terms.values()):
                shown = min(last, first + SNIPPET_LINES - 1)
                found.append((worth, Example(source, first, shown, first, None)))
    for _, example in sorted(found, key=lambda one: -one[0])[:MAX_BLOCKS]:
        yield example


def _code_blocks(source: SourceFile) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of the blocks of code of a page: fenced, or indented in rst."""
    opened = 0
    for number, line in enumerate(source.lines, 1):
        if line.lstrip().startswith("```"):
            if opened and number - 1 > opened:
                yield opened + 1, number - 1
            opened = 0 if opened else number
    if source.entry.path.endswith(".rst"):
        yield from _indented_blocks(source.lines)


def _indented_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of the indented blocks below a directive or a line that ends in `::`."""
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        is_code = re.match(r"\s*\.\. (?:code|code-block|testcode|sourcecode)::", line) is not None
        if not is_code and (not line.rstrip().endswith("::") or line.lstrip().startswith("..")):
            continue
        indent = len(line) - len(line.lstrip())
        first = last = 0
        while number < len(lines) and (
            not lines[number].strip() or len(lines[number]) - len(lines[number].lstrip()) > indent
        ):
            if lines[number].strip() and not (not first and lines[number].strip().startswith(":")):
                first, last = first or number + 1, number + 1
            number += 1
        if first:
            yield first, last


def _order(entry: FileEntry) -> int:
    """Return where examples of a file come: examples, own code, documentation, tests."""
    return ORDER.get(file_category(entry.path), 1)


def _count_in_file(seen: Counter[FileEntry], entry: FileEntry) -> int:
    """Count the uses in a file. As a sort key, this puts the first use in each file before second uses."""
    seen[entry] += 1
    return seen[entry]


def _example_around(source: SourceFile, line: int, definition: SourceDefinition | None) -> Example:
    """Return an example that starts with the definition, or around the line if the definition is long."""
    top, end = (definition.top, definition.end) if definition else (1, len(source.lines))
    comment = next((at for at in range(top, line) if at not in source.prose_lines), line) - top
    if comment > MAX_SHOWN_COMMENT:
        top += comment
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
    if one.is_relative and other.is_relative:
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
