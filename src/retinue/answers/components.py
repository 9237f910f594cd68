"""Finds the components that a question is about: the definitions that the answer starts from.

Where there are none, as in prose and configuration, `quote_lines` quotes the lines that fit best.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition, SourceFile
from retinue.codebase import Claim, FileEntry, Place, best_definitions, file_category
from retinue.core import UNMETERED, RoleResult, Spending, Stop, counted, join_notes

MAX_COMPONENTS = 2
"""How many definitions an answer starts from."""
MAX_SOURCES = 6
"""How many files are searched for components, or quoted."""
_DECLARATION = re.compile(r"^\s*(?:export\s+)?(?:declare\s+)?(?:interface|type|typedef|trait)\b")
MAX_ACCESSOR_LINES, MAX_HELPER_LINES = 4, 12
MAX_TYPE_LINES = 150
"""A longer type holds the words of almost any question, so its member that has them stands for it."""
LATER_CATEGORIES = {"test": 2, "config": 2, "example": 1, "vendored": 1}
"""Files of these categories use something or set it up. How it works is in the project's own code."""


@dataclass(frozen=True, slots=True)
class Component:
    """A definition that the question is about, with its file."""

    source: SourceFile
    definition: SourceDefinition

    @property
    def name(self) -> str:
        return self.definition.qualified_name

    @property
    def entry(self) -> FileEntry:
        return self.source.entry


def find_components(
    context: RoleContext, places: Sequence[Place], stop: Stop, guesses: int = MAX_COMPONENTS
) -> list[Component]:
    """Return the definitions that an answer starts from.

    These are the ones that the question names as `Owner.name`, else those that it names, else the most
    relevant ones, at most `guesses` of them.
    """
    question = context.question
    names, terms = question.definition_names, question.terms
    dotted = {tuple(re.split(r"\W+", name)[-2:]) for name in question.parsed.dotted}
    qualified: list[Component] = []
    named: list[Component] = []
    relevant: list[Component] = []
    for place in places[:MAX_SOURCES]:
        source = context.sources.open(place.entry, stop)
        if source is None or place.kind == "docs":
            continue
        if not place.definitions:
            at_place = [one for one in source.definitions if one.line == place.line]
            best = at_place or source.definitions_by_relevance(terms)
            relevant += [Component(source, one) for one in best[:1]]
        for definition in source.definitions:
            if (definition.owner, definition.name) in dotted:
                qualified.append(Component(source, definition))
            elif definition.name in names or definition.name == question.parsed.text:
                named.append(Component(source, definition))
    if qualified or named:
        return _drop_overloads(qualified or named)[:MAX_COMPONENTS]
    return _drop_overloads([*_best_components(context, places, stop), *relevant])[:guesses]


def _best_components(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[Component]:
    """Return the best definitions of the places; those that do work come first, then types, then tests."""
    found: list[Component] = []
    for place, best in best_definitions(places)[:MAX_SOURCES]:
        source = context.sources.open(place.entry, stop) if place.kind != "docs" else None
        if (
            source is not None
            and (definition := _working_definition(source, best.line, best.focus)) is not None
        ):
            found.append(Component(source, definition))
    return sorted(
        found,
        key=lambda one: (
            2
            if one.source.is_test(one.definition)
            else LATER_CATEGORIES.get(file_category(one.entry.path), 0),
            one.definition.length < 1 or _only_declares(one),
            _only_returns(one),
        ),
    )


def _working_definition(source: SourceFile, line: int, focus: int) -> SourceDefinition | None:
    """Return the definition at a line or, for a short helper inside a function, the function around it.

    For a long type, returns its member that has the words of the question, or has them in the comment above.
    The ranker splits files by regular expressions, so that a line may also be inside a definition.
    """
    here = source.definition_around(line)
    if here is not None and source.is_type(here) and here.length > MAX_TYPE_LINES:
        while focus in source.prose_lines:
            focus += 1
        member = source.definition_around(focus)
        return member if member is not None and member.end <= here.end else here
    while here is not None and here.is_local and here.length <= MAX_HELPER_LINES:
        around = [one for one in source.definitions if one.line < here.line and one.end >= here.end]
        outer = max(around, key=lambda one: one.line, default=None)
        if outer is None or source.is_type(outer):
            break
        here = outer
    return here


def _only_declares(component: Component) -> bool:
    """Return whether a definition is a type without a member that has a body: it shows no work being done."""
    source, definition = component.source, component.definition
    return (
        source.is_type(definition) or _DECLARATION.search(source.lines[definition.line - 1]) is not None
    ) and not any(one.length > 0 for one in source.members_of(definition))


def _only_returns(component: Component) -> bool:
    """Return whether a function is an accessor: its only line returns something without a call."""
    source, definition = component.source, component.definition
    if source.is_type(definition) or definition.length > MAX_ACCESSOR_LINES:
        return False
    rows = [text.strip() for number, text in source.code_lines(definition) if number > definition.line]
    code = [row for row in rows if row.strip("{}();, ")]
    return len(code) == 1 and code[0].startswith("return") and "(" not in code[0]


def _drop_overloads(components: Sequence[Component]) -> list[Component]:
    """Keep the longest of several definitions with the same name in a file: it has the body."""
    longest: dict[tuple[FileEntry, str], Component] = {}
    for one in components:
        known = longest.get((one.entry, one.name))
        if known is None or one.definition.length > known.definition.length:
            longest[one.entry, one.name] = one
    return list(longest.values())


def quote_lines(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Quote the best line of each place: for prose and configuration, which have no components."""
    context = context.with_spending(spending)
    required = context.question.required_words
    words = [word.casefold() for word in required]
    findings: list[Finding] = []
    with soft_deadline(stop) as soft:
        for place in places[:MAX_SOURCES]:
            source = context.sources.open(place.entry, soft.stop)
            if source is None:
                continue
            scores = [sum(word in line.casefold() for word in words) for line in source.lines]
            best = max(range(len(scores)), key=lambda number: (scores[number], -number))
            if scores[best]:
                claim = Claim(place.entry, best + 1, required)
                reference = context.reference(place.entry, best + 1)
                findings.append(Finding(f"{reference}: `{source.quote(best + 1)}`", (claim,)))
    verified = verify_findings(context, findings, stop)
    shown = len(verified.texts)
    summary = "No line has the words of the question."
    if shown:
        summary = f"{counted(shown, 'relevant line')}."
    elif context.sources.files_read.refused:
        summary = "A limit left no room to read the files that were found."
    return RoleResult(
        summary=summary,
        references=verified.references,
        key_findings=verified.texts,
        confidence="low",
        notes=join_notes(verified.note, soft.note),
    )
