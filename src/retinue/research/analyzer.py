"""The analyzer: how it works. Where a component is defined, what leads to it, what it calls, what it reads.

Every finding carries its evidence as `path:line`. Starts from the places that the locator found.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        return self.definition.name

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
    """Definitions that the question names, then those that the best places point at."""
    named: list[Component] = []
    pointed: list[Component] = []
    names = inquiry.asked.parsed.names
    for place in places[:SOURCES]:
        source = inquiry.sources.open(place.entry, stop)
        if source is None or place.kind == "docs":
            continue
        for definition in source.definitions:
            if definition.name in names:
                named.append(Component(source, definition))
            elif definition.line == place.line:
                pointed.append(Component(source, definition))
    named.sort(key=lambda one: -names[one.name])
    first_of_name = {one.name: one for one in reversed((*named, *pointed))}
    return list(reversed(first_of_name.values()))[:COMPONENTS]


def _trace(trace: Trace, component: Component, near: Sequence[Entry], stop: Stop) -> None:
    name, source, definition = component.name, component.source, component.definition
    here = Claim(source.entry, definition.line, (name,))
    trace.add("definition", f"{{0}}: `{name}` is defined: {_code(source.quote(definition.line))}", here)
    uses, files = uses_of(trace.inquiry, name, source.entry, near, stop)
    callers = [use for use in uses if not use.is_test]
    _add_call_path(trace, component, callers, near, stop)
    for use in callers[:CALLERS]:
        by = f"`{use.within.name}`" if use.within is not None else "the file itself"
        entry_point = ", an entry point," if use.is_entry_point else ""
        trace.add("use", f"{{0}}: {by}{entry_point} uses `{name}`", Claim(use.entry, use.line, (name,)))
    for use in [use for use in uses if use.is_test][:TESTS]:
        trace.add("use", f"{{0}}: a test of `{name}`", Claim(use.entry, use.line, (name,)))
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
    below = component.name
    seen = {below}
    while len(links) < LINKS:
        use = next((use for use in callers if use.within is not None and use.within.name not in seen), None)
        if use is None or use.within is None:
            break
        links.insert(0, (use.within.name, Claim(use.entry, use.line, (below,))))
        below = use.within.name
        seen.add(below)
        if use.is_entry_point:
            break
        callers = [one for one in uses_of(trace.inquiry, below, use.entry, near, stop)[0] if not one.is_test]
    if len(links) > 1:
        shown = " -> ".join(f"`{name}` ({{{number}}})" for number, (name, _) in enumerate(links))
        claims = (claim for _, claim in links)
        trace.add("path", f"Call path: {shown} -> `{component.name}`", *claims)


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
    if any(one.name in inquiry.asked.names for one in components):
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
