"""The analyzer: how it works. Where a component is defined, what leads to it, what it calls, what it reads.

Every finding carries its evidence as `path:line`. Starts from the places that the locator found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retinue.codebase.entry import Entry
from retinue.codebase.locate import Place
from retinue.core.reference import Reference
from retinue.core.report import Confidence, RoleResult
from retinue.core.stop import Stop
from retinue.core.words import counted
from retinue.research.inquiry import Inquiry
from retinue.research.sources import Definition, Source
from retinue.research.tracing import Use, callees_of, constants_of, definitions_of, uses_of

COMPONENTS = 2
"""Definitions that are traced."""
SOURCES = 6
"""Files in which components are looked for."""
CALLERS, CALLEES, CONSTANTS, TESTS = 4, 4, 4, 1
"""Findings of each sort for one component."""
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
    """What was found out, in the order in which it matters."""

    inquiry: Inquiry
    references: dict[Reference, None] = field(default_factory=dict[Reference, None])
    defined: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    callers: list[str] = field(default_factory=list[str])
    callees: list[str] = field(default_factory=list[str])
    constants: list[str] = field(default_factory=list[str])
    summaries: list[str] = field(default_factory=list[str])

    def at(self, entry: Entry, line: int) -> Reference:
        """The evidence of a finding."""
        reference = self.inquiry.reference(entry, line)
        self.references[reference] = None
        return reference

    @property
    def findings(self) -> tuple[str, ...]:
        return (*self.defined, *self.paths, *self.callers, *self.callees, *self.constants)


def analyze(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> RoleResult:
    components = _components(inquiry, places, stop)
    if not components:
        return _most_telling_lines(inquiry, places, stop)
    trace = Trace(inquiry)
    near = [place.entry for place in places]
    for component in components:
        _trace(trace, component, near, stop)
    return RoleResult(
        summary=" ".join(trace.summaries),
        references=tuple(trace.references),
        key_findings=trace.findings,
        confidence=_confidence(inquiry, components),
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
    return list({one.name: one for one in (*named, *pointed)}.values())[:COMPONENTS]


def _trace(trace: Trace, component: Component, near: Sequence[Entry], stop: Stop) -> None:
    name, source, definition = component.name, component.source, component.definition
    here = trace.at(source.entry, definition.line)
    trace.defined.append(f"{here}: `{name}` is defined: `{source.quote(definition.line)}`")
    uses, files = uses_of(trace.inquiry, name, source.entry, near, stop)
    callers = [use for use in uses if not use.is_test]
    if path := _call_path(trace, component, callers, near, stop):
        trace.paths.append(path)
    for use in callers[:CALLERS]:
        trace.callers.append(_use(trace, name, use))
    for use in [use for use in uses if use.is_test][:TESTS]:
        trace.callers.append(f"{trace.at(use.entry, use.line)}: a test of `{name}`")
    called = _add_callees(trace, component, stop)
    read = _add_constants(trace, component, stop)
    trace.summaries.append(_sentence(name, here, callers, files, called, read))


def _use(trace: Trace, name: str, use: Use) -> str:
    by = f"`{use.within.name}`" if use.within is not None else "the file itself"
    entry_point = ", an entry point" if use.is_entry_point else ""
    return f"{trace.at(use.entry, use.line)}: {by}{entry_point} uses `{name}`"


def _call_path(
    trace: Trace, component: Component, callers: Sequence[Use], near: Sequence[Entry], stop: Stop
) -> str | None:
    """From as far up as can be told down to the component."""
    links = [f"`{component.name}`"]
    seen = {component.name}
    while callers and len(links) <= LINKS:
        use = next((use for use in callers if use.within is not None and use.within.name not in seen), None)
        if use is None or use.within is None:
            break
        seen.add(use.within.name)
        links.insert(0, f"`{use.within.name}` ({trace.at(use.entry, use.line)})")
        if use.is_entry_point:
            break
        above, _ = uses_of(trace.inquiry, use.within.name, use.entry, near, stop)
        callers = [one for one in above if not one.is_test]
    return f"Call path: {' -> '.join(links)}" if len(links) > 2 else None


def _add_callees(trace: Trace, component: Component, stop: Stop) -> list[str]:
    source = component.source
    calls = callees_of(source, component.definition)
    defined = definitions_of(trace.inquiry, list(calls), source, stop)
    for name in [name for name in calls if name in defined][:CALLEES]:
        entry, line = defined[name]
        at = trace.at(source.entry, calls[name])
        trace.callees.append(f"{at}: `{component.name}` calls `{name}`, defined at {trace.at(entry, line)}")
    return [name for name in calls if name in defined]


def _add_constants(trace: Trace, component: Component, stop: Stop) -> list[str]:
    source = component.source
    read = constants_of(source, component.definition)
    defined = definitions_of(trace.inquiry, list(read), source, stop)
    for name, line in list(read.items())[:CONSTANTS]:
        finding = f"{trace.at(source.entry, line)}: `{component.name}` reads `{name}`"
        if name in defined:
            entry, where = defined[name]
            finding += f", set at {trace.at(entry, where)}"
        trace.constants.append(finding)
    return list(read)


def _sentence(
    name: str, here: Reference, callers: Sequence[Use], files: int, called: Sequence[str], read: Sequence[str]
) -> str:
    parts = [f"`{name}` is defined at {here}"]
    if callers:
        parts.append(f"used in {counted(files, 'file')}")
    if called:
        parts.append(f"calls {', '.join(f'`{one}`' for one in called[:3])}")
    if read:
        parts.append(f"reads {', '.join(f'`{one}`' for one in read[:3])}")
    return ", ".join(parts) + "."


def _confidence(inquiry: Inquiry, components: Sequence[Component]) -> Confidence:
    return "high" if any(one.name in inquiry.asked.names for one in components) else "med"


def _most_telling_lines(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> RoleResult:
    """For prose and configuration: the line of each place that has most of what was asked for."""
    trace = Trace(inquiry)
    words = [word.casefold() for word in inquiry.asked.keywords]
    for place in places[:SOURCES]:
        source = inquiry.sources.open(place.entry, stop)
        if source is None:
            continue
        scores = [sum(word in line.casefold() for word in words) for line in source.lines]
        best = max(range(len(scores)), key=lambda number: (scores[number], -number), default=None)
        if best is not None and scores[best]:
            trace.defined.append(f"{trace.at(place.entry, best + 1)}: {source.quote(best + 1)}")
    found = counted(len(trace.defined), "line")
    return RoleResult(
        summary=f"Nothing to trace; {found} that speak of it." if trace.defined else "Nothing to trace.",
        references=tuple(trace.references),
        key_findings=trace.findings,
        confidence="low",
    )
