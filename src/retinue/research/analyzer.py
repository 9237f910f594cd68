"""The analyzer: how it works. Where a component is defined, what leads to it, what it calls, what it reads.

Every finding carries its evidence as `path:line`. Starts from the places that the locator found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retinue.codebase.entry import Entry
from retinue.codebase.locate import Place
from retinue.codebase.references import Claim
from retinue.core.report import Confidence, RoleResult
from retinue.core.stop import Stop
from retinue.core.words import counted
from retinue.research.findings import Finding, verify
from retinue.research.inquiry import Inquiry
from retinue.research.sources import Definition, Source
from retinue.research.tracing import Use, callees_of, constants_of, definitions_of, uses_of

COMPONENTS = 2
"""Definitions that are traced."""
SOURCES = 6
"""Files in which components are looked for."""
CALLERS, CALLEES, CONSTANTS, TESTS = 4, 4, 4, 1
"""Findings of each sort for one component."""
RANKS = ("definition", "path", "use", "call", "constant")
LINKS = 3
"""How far up a call path goes."""


@dataclass(frozen=True, slots=True)
class Component:
    source: Source
    definition: Definition

    @property
    def name(self) -> str:
        return self.definition.shown

    @property
    def entry(self) -> Entry:
        return self.source.entry


@dataclass(slots=True)
class Trace:
    """What was found out, by how much it matters: definitions, call paths, what is called, what is read."""

    inquiry: Inquiry
    found: tuple[list[Finding], ...] = field(default_factory=lambda: tuple([] for _ in RANKS))
    sentences: list[str] = field(default_factory=list[str])

    def add(self, rank: str, text: str, *claims: Claim) -> None:
        """`{0}` and so on in the text stand for the places of the claims."""
        places = [self.inquiry.reference(claim.entry, claim.line) for claim in claims]
        self.found[RANKS.index(rank)].append(Finding(text.format(*places), claims))

    @property
    def findings(self) -> list[Finding]:
        return [finding for ranked in self.found for finding in ranked]


def analyze(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> RoleResult:
    components = _components(inquiry, places, stop)
    trace = Trace(inquiry)
    near = [place.entry for place in places]
    for component in components:
        _trace(trace, component, near, stop)
    if not components:
        _add_telling_lines(trace, places, stop)
    verified = verify(inquiry, trace.findings, stop)
    return RoleResult(
        summary=" ".join(trace.sentences),
        references=verified.references,
        key_findings=verified.findings,
        confidence=_confidence(inquiry, components),
        notes=verified.notes,
    )


def _components(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> list[Component]:
    """Definitions that the question names, then those of the best places that answer it best."""
    asked = inquiry.asked.parsed
    ends = {tuple(re.split(r"\W+", dotted)[-2:]) for dotted in asked.dotted}
    scored: list[tuple[float, Component]] = []
    for rank, place in enumerate(places[:SOURCES]):
        source = inquiry.sources.open(place.entry, stop)
        if source is None or place.kind == "docs":
            continue
        best = _best_definition(source, place, asked.terms)
        for definition in source.definitions:
            named = asked.names.get(definition.name, 0.0) + 10 * ((definition.owner, definition.name) in ends)
            if named or definition is best:
                scored.append((named - rank / SOURCES, Component(source, definition)))
    scored.sort(key=lambda one: -one[0])
    exact = [one for _, one in scored if (one.definition.owner, one.definition.name) in ends]
    return exact[:COMPONENTS] or [one for _, one in scored][:COMPONENTS]


def _best_definition(source: Source, place: Place, terms: Mapping[str, float]) -> Definition | None:
    """The one at the place; else the one that speaks of most of the terms, its name counting most."""
    scores: dict[Definition, float] = {}
    for definition in source.definitions:
        if definition.line == place.line:
            return definition
        name = definition.name.casefold()
        body = " ".join(text for _, text in source.code(definition)).casefold()
        scores[definition] = sum(
            weight * (3 * (term in name) + (term in body)) for term, weight in terms.items()
        )
    best = max(scores, key=lambda one: (scores[one], -one.line), default=None)
    return best if best is not None and scores[best] > 0 else None


def _trace(trace: Trace, component: Component, near: Sequence[Entry], stop: Stop) -> None:
    source, definition, name = component.source, component.definition, component.name
    here = Claim(source.entry, definition.line, (definition.name,))
    trace.add("definition", f"{{0}}: `{name}` is defined: {_code(source.quote(definition.line))}", here)
    uses, files = uses_of(trace.inquiry, definition, source.entry, near, stop)
    callers = [use for use in uses if not use.is_test]
    _add_call_path(trace, component, callers, near, stop)
    for use in callers[:CALLERS]:
        by = f"`{use.within.shown}`" if use.within is not None else "the file itself"
        entry_point = ", an entry point," if use.is_entry_point else ""
        claim = Claim(use.entry, use.line, (definition.name,))
        trace.add("use", f"{{0}}: {by}{entry_point} uses `{name}`", claim)
    for use in [use for use in uses if use.is_test][:TESTS]:
        trace.add("use", f"{{0}}: a test of `{name}`", Claim(use.entry, use.line, (definition.name,)))
    called = _add_callees(trace, component, stop)
    read = _add_constants(trace, component, stop)
    parts = [f"`{name}` is defined at {trace.inquiry.reference(source.entry, definition.line)}"]
    parts += [f"used in {counted(files, 'file')}"] if callers else []
    parts += [f"calls {_listed(called)}"] if called else []
    parts += [f"reads {_listed(read)}"] if read else []
    trace.sentences.append(", ".join(parts) + ".")


def _code(text: str) -> str:
    """Braces doubled, because the text of a finding is a format."""
    return "`" + text.replace("{", "{{").replace("}", "}}") + "`"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:3])


def _add_call_path(
    trace: Trace, component: Component, callers: Sequence[Use], near: Sequence[Entry], stop: Stop
) -> None:
    """From as far up as can be told down to the component."""
    links: list[tuple[str, Claim]] = []
    below = component.definition
    seen = {below.name}
    while len(links) < LINKS:
        use = next((use for use in callers if use.within is not None and use.within.name not in seen), None)
        if use is None or use.within is None:
            break
        links.insert(0, (use.within.shown, Claim(use.entry, use.line, (below.name,))))
        below = use.within
        seen.add(below.name)
        if use.is_entry_point or below.name.startswith("__"):
            break
        callers = [one for one in uses_of(trace.inquiry, below, use.entry, near, stop)[0] if not one.is_test]
    if len(links) > 1:
        shown = " -> ".join(f"`{name}` ({{{number}}})" for number, (name, _) in enumerate(links))
        trace.add("path", f"Call path: {shown} -> `{component.name}`", *(claim for _, claim in links))


def _add_callees(trace: Trace, component: Component, stop: Stop) -> list[str]:
    source, user = component.source, component.name
    calls = callees_of(source, component.definition)
    defined = definitions_of(trace.inquiry, list(calls), source, stop)
    called = [name for name in calls if name in defined]
    for name in called[:CALLEES]:
        call = Claim(source.entry, calls[name], (name,))
        target = Claim(*defined[name], (name,))
        trace.add("call", f"{{0}}: `{user}` calls `{name}`, defined at {{1}}", call, target)
    return called


def _add_constants(trace: Trace, component: Component, stop: Stop) -> list[str]:
    source, user = component.source, component.name
    read = constants_of(source, component.definition)
    defined = definitions_of(trace.inquiry, list(read), source, stop)
    for name, line in list(read.items())[:CONSTANTS]:
        claims = [Claim(source.entry, line, (name,))]
        text = f"{{0}}: `{user}` reads `{name}`"
        if name in defined:
            claims.append(Claim(*defined[name], (name,)))
            text += ", set at {1}"
        trace.add("constant", text, *claims)
    return list(read)


def _confidence(inquiry: Inquiry, components: Sequence[Component]) -> Confidence:
    if any(one.definition.name in inquiry.asked.parsed.names for one in components):
        return "high"
    return "med" if components else "low"


def _add_telling_lines(trace: Trace, places: Sequence[Place], stop: Stop) -> None:
    """For prose and configuration: the line of each place that has most of what was asked for."""
    words = [word.casefold() for word in trace.inquiry.asked.keywords]
    for place in places[:SOURCES]:
        source = trace.inquiry.sources.open(place.entry, stop)
        if source is None:
            continue
        scores = [sum(word in line.casefold() for word in words) for line in source.lines]
        best = max(range(len(scores)), key=lambda number: (scores[number], -number))
        if scores[best]:
            claim = Claim(place.entry, best + 1, tuple(trace.inquiry.asked.keywords))
            trace.add("definition", f"{{0}}: {_code(source.quote(best + 1))}", claim)
    lines = len(trace.findings)
    trace.sentences.append(f"{counted(lines, 'line')} that speak of it." if lines else "Nothing to trace.")
