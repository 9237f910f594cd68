"""The analyzer: how it works. Where a component is defined, what leads to it, what it calls, what it reads.

Every finding carries its evidence as `path:line`. Starts from the places that the locator found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from retinue.codebase import Claim, FileEntry, Place
from retinue.core import Confidence, RoleResult, Stop, counted, join_notes
from retinue.research.role_context import Finding, Inquiry, early, verify
from retinue.research.source_files import SourceDefinition, SourceFile
from retinue.research.tracing import Use, Uses, callees_of, constants_of, definitions_of, uses_of

COMPONENTS = 2
"""Definitions that are traced."""
SOURCES = 6
"""Files in which components are looked for."""
CALLERS, CALLEES, CONSTANTS, TESTS = 3, 3, 3, 1
"""Findings of each sort for one component."""
RANKS = ("definition", "path", "use", "call", "constant")
CALLER_FILES, PATH_FILES = 8, 3
"""Files that are read to see who uses a component, and who uses one that leads to it."""
LINKS = 3
"""How far up a call path goes."""


@dataclass(frozen=True, slots=True)
class Component:
    source: SourceFile
    definition: SourceDefinition

    @property
    def name(self) -> str:
        return self.definition.shown

    @property
    def entry(self) -> FileEntry:
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
    with early(stop) as soon:
        near = [place.entry for place in places]
        for component in components:
            _trace(trace, component, near, soon.stop)
        if not components:
            _add_telling_lines(trace, places, soon.stop)
    verified = verify(inquiry, trace.findings, stop)
    return RoleResult(
        summary=" ".join(trace.sentences) or "The time was too short to trace anything.",
        references=verified.references,
        key_findings=verified.findings,
        confidence=_confidence(inquiry, components),
        notes=join_notes(verified.notes, soon.note),
    )


def _components(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> list[Component]:
    """What the question names as `Owner.name`, else what it names, else the most relevant."""
    asked = inquiry.asked.parsed
    dotted = {tuple(re.split(r"\W+", name)[-2:]) for name in asked.dotted}
    whole: list[Component] = []
    named: list[Component] = []
    relevant: list[Component] = []
    for place in places[:SOURCES]:
        source = inquiry.sources.open(place.entry, stop)
        if source is None or place.kind == "docs":
            continue
        at_place = [one for one in source.definitions if one.line == place.line]
        best = at_place or source.by_relevance(inquiry.asked.terms)
        relevant += [Component(source, one) for one in best[:1]]
        for definition in source.definitions:
            if (definition.owner, definition.name) in dotted:
                whole.append(Component(source, definition))
            elif definition.name in inquiry.asked.names or definition.name == asked.text:
                named.append(Component(source, definition))
    return _with_bodies(whole or named or relevant)[:COMPONENTS]


def _with_bodies(components: Sequence[Component]) -> list[Component]:
    """Of several definitions of one thing in a file, such as overloads, the longest: it does the work."""
    longest: dict[tuple[FileEntry, str], Component] = {}
    for one in components:
        known = longest.get((one.entry, one.name))
        if known is None or one.definition.length > known.definition.length:
            longest[one.entry, one.name] = one
    return list(longest.values())


def _trace(trace: Trace, component: Component, near: Sequence[FileEntry], stop: Stop) -> None:
    source, definition, name = component.source, component.definition, component.name
    here = Claim(source.entry, definition.line, (definition.name,))
    trace.add("definition", f"{{0}}: `{name}` is defined: {_code(source.quote(definition.line))}", here)
    sentence = [f"`{name}` is defined at {trace.inquiry.reference(source.entry, definition.line)}"]
    try:
        uses = uses_of(trace.inquiry, definition, source.entry, near, CALLER_FILES, stop)
        if uses.callers:
            sentence.append(f"named in {counted(uses.files, 'file')}")
        _add_uses(trace, component, uses)
        _add_call_path(trace, component, uses.callers, near, stop)
        if source.is_type(definition):
            sentence += _listed("holds", _add_members(trace, component))
        else:
            sentence += _listed("calls", _add_callees(trace, component, stop))
            sentence += _listed("reads", _add_constants(trace, component, stop))
    finally:
        trace.sentences.append(", ".join(sentence) + ".")


def _add_uses(trace: Trace, component: Component, uses: Uses) -> None:
    name = component.definition.name
    for use in uses.callers[:CALLERS]:
        by = f"`{use.within.shown}`" if use.within is not None else "the file itself"
        entry_point = ", an entry point," if use.is_entry_point else ""
        verb = "uses" if use.is_sure else "may use"
        claim = Claim(use.entry, use.line, (name,))
        trace.add("use", f"{{0}}: {by}{entry_point} {verb} `{component.name}`", claim)
    for use in uses.tests[:TESTS]:
        trace.add("use", f"{{0}}: a test of `{component.name}`", Claim(use.entry, use.line, (name,)))


def _add_members(trace: Trace, component: Component) -> list[str]:
    """Of a class and the like: what of it the question is about."""
    source = component.source
    members = source.inside(component.definition)
    relevant = [one for one in source.by_relevance(trace.inquiry.asked.terms) if one in members]
    for member in (relevant or members)[:CALLEES]:
        text = f"{{0}}: `{component.name}` has {_code(source.quote(member.line))}"
        trace.add("call", text, Claim(source.entry, member.line, (member.name,)))
    return [member.name for member in relevant or members]


def _code(text: str) -> str:
    """Braces doubled, because the text of a finding is a format."""
    return "`" + text.replace("{", "{{").replace("}", "}}") + "`"


def _listed(verb: str, names: Sequence[str]) -> list[str]:
    return [f"{verb} {', '.join(f'`{name}`' for name in names[:3])}"] if names else []


def _add_call_path(
    trace: Trace, component: Component, callers: Sequence[Use], near: Sequence[FileEntry], stop: Stop
) -> None:
    """From as far up as can be told down to the component."""
    links: list[tuple[str, Claim]] = []
    below = component.definition
    seen = {below.name}
    while len(links) < LINKS:
        use = next((use for use in callers if use.within is not None and use.within.name not in seen), None)
        if use is None or use.within is None or not use.is_sure:
            break
        links.insert(0, (use.within.shown, Claim(use.entry, use.line, (below.name,))))
        below = use.within
        seen.add(below.name)
        if use.is_entry_point or below.name.startswith("__"):
            break
        callers = uses_of(trace.inquiry, below, use.entry, near, PATH_FILES, stop).callers
    if len(links) > 1:
        shown = " -> ".join(f"`{name}` ({{{number}}})" for number, (name, _) in enumerate(links))
        trace.add("path", f"Call path: {shown} -> `{component.name}`", *(claim for _, claim in links))


def _add_callees(trace: Trace, component: Component, stop: Stop) -> list[str]:
    source, user = component.source, component.name
    calls = callees_of(source, component.definition)
    receivers = {name: call.receiver for name, call in calls.items()}
    defined = definitions_of(trace.inquiry, receivers, source, stop)
    called = _asked_for_first(trace.inquiry, component, [name for name in calls if name in defined])
    for name in called[:CALLEES]:
        call = Claim(source.entry, calls[name].line, (name,))
        target = Claim(*defined[name], (name,))
        trace.add("call", f"{{0}}: `{user}` calls `{name}`, defined at {{1}}", call, target)
    return called


def _add_constants(trace: Trace, component: Component, stop: Stop) -> list[str]:
    source, user = component.source, component.name
    read = constants_of(source, component.definition)
    defined = definitions_of(trace.inquiry, dict.fromkeys(read, ""), source, stop)
    names = _asked_for_first(trace.inquiry, component, list(read))
    for name in names[:CONSTANTS]:
        claims = [Claim(source.entry, read[name], (name,))]
        text = f"{{0}}: `{user}` reads `{name}`"
        if name in defined:
            claims.append(Claim(*defined[name], (name,)))
            text += ", set at {1}"
        trace.add("constant", text, *claims)
    return names


def _asked_for_first(inquiry: Inquiry, component: Component, names: list[str]) -> list[str]:
    """Names that say what the component's own does not, then the others in their order."""
    own = component.name.casefold()
    further = {term: weight for term, weight in inquiry.asked.terms.items() if term not in own}

    def worth(name: str) -> float:
        return sum(weight for term, weight in further.items() if term in name.casefold())

    return sorted(names, key=worth, reverse=True)


def _confidence(inquiry: Inquiry, components: Sequence[Component]) -> Confidence:
    if any(one.definition.name in inquiry.asked.parsed.names for one in components):
        return "high"
    return "med" if components else "low"


def _add_telling_lines(trace: Trace, places: Sequence[Place], stop: Stop) -> None:
    """For prose and configuration: the line of each place that has most of what was asked for."""
    words = [word.casefold() for word in trace.inquiry.asked.aims]
    for place in places[:SOURCES]:
        source = trace.inquiry.sources.open(place.entry, stop)
        if source is None:
            continue
        scores = [sum(word in line.casefold() for word in words) for line in source.lines]
        best = max(range(len(scores)), key=lambda number: (scores[number], -number))
        if scores[best]:
            claim = Claim(place.entry, best + 1, trace.inquiry.asked.aims)
            trace.add("definition", f"{{0}}: {_code(source.quote(best + 1))}", claim)
    lines = len(trace.findings)
    trace.sentences.append(f"{counted(lines, 'line')} that speak of it." if lines else "Nothing to trace.")
