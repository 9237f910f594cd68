"""Finds the components that a question is about: the definitions that the answer starts from.

Where there are none, as in prose and configuration, `quote_lines` quotes the lines that fit best.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition, SourceFile
from retinue.codebase import Claim, FileEntry, Place, best_definitions
from retinue.core import UNMETERED, RoleResult, Spending, Stop, counted, join_notes

MAX_COMPONENTS = 2
"""How many definitions an answer starts from."""
MAX_SOURCES = 6
"""How many files are searched for components, or quoted."""


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
    """Return the best definitions of the places, those in tests last."""
    found: list[Component] = []
    for place, best in best_definitions(places)[:MAX_SOURCES]:
        source = context.sources.open(place.entry, stop) if place.kind != "docs" else None
        definition = source.definition_around(best.line) if source is not None else None
        if source is not None and definition is not None:
            found.append(Component(source, definition))
    return sorted(found, key=lambda one: one.source.is_inline_test(one.definition))


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
