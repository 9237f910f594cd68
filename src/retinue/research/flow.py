"""Tells how something works as a flow: what starts it, its steps in order, what they call, and how it ends.

Each step is a short sentence with its reference, its line of code, and what the code itself says about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from retinue.codebase import Claim, FileEntry, Place
from retinue.core import UNMETERED, Confidence, RoleResult, Spending, Stop, clip, join_notes
from retinue.research.analyzer import Component, analyze, find_components
from retinue.research.question import heaviest_terms
from retinue.research.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.research.source_files import SourceDefinition, SourceFile
from retinue.research.tracing import Callee, CodeNames, find_callees, find_uses

MAX_STEPS, MAX_INNER_STEPS = 6, 4
"""How many calls of the main function are told, and of the most relevant function that it calls."""
MAX_ENTRIES = 2
"""How many callers lead to the main function."""
ENTRY_FILES = 8
MAX_SAID_CHARS = 140
_RETURN = re.compile(r"\s*(?:return|raise|throw|yield|panic!?)\b")
_MARKS = re.compile(r"^(?:/\*+|\*+/?|//+!?|#+|\"\"\"|'''|r\"\"\"|--+|;+)\s?|(?:\*/|\"\"\"|''')$")
_SENTENCE = re.compile(r"(?<=[a-z)`'\"])[.!](?:\s|$)")


@dataclass(slots=True)
class Flow:
    """The sentences of a flow in order. A place is told once."""

    context: RoleContext
    stop: Stop
    findings: list[Finding] = field(default_factory=list[Finding])
    names: list[str] = field(default_factory=list[str])
    told: set[tuple[FileEntry, int]] = field(default_factory=set[tuple[FileEntry, int]])

    def add(self, source: SourceFile, line: int, what: str, *further: Claim) -> bool:
        """Add a sentence about a line of code. Returns whether the line was not told before."""
        if (source.entry, line) in self.told:
            return False
        self.told.add((source.entry, line))
        text = source.lines[line - 1].strip()
        code = f": `{source.quote(line)}`" if text else ""
        reference = self.context.reference(source.entry, line)
        claims = (Claim(source.entry, line, (text,) if text else ()), *further)
        self.findings.append(Finding(f"{reference}: {what}{code}", claims))
        return True

    def open(self, entry: FileEntry) -> SourceFile | None:
        return self.context.sources.open(entry, self.stop)


def tell_flow(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Tell the flow through what the question names, or through the most relevant definition."""
    context = context.with_spending(spending)
    components = find_components(context, places, stop)
    if not components:
        return analyze(context, places, stop, spending)
    flow = Flow(context, stop)
    with soft_deadline(stop) as soft:
        flow.stop = soft.stop
        names = CodeNames(context, soft.stop)
        for number, component in enumerate(components):
            _tell_component(flow, component, places, names, is_main=number == 0)
    verified = verify_findings(context, flow.findings, stop)
    return RoleResult(
        summary=_summary(flow, components),
        references=verified.references,
        key_findings=verified.texts,
        confidence=_confidence(context, components),
        notes=join_notes(verified.note, soft.note),
    )


def _summary(flow: Flow, components: Sequence[Component]) -> str:
    """Name the main function and its steps."""
    main = components[0]
    said = _what_it_says(main.source, main.definition)
    steps = ", then ".join(f"`{name}`" for name in dict.fromkeys(flow.names))
    sentence = f"`{main.name}`" + (f" calls {steps}" if steps else " does it")
    return f"{sentence}. It says of itself: “{said}”" if said else f"{sentence}."


def _confidence(context: RoleContext, components: Sequence[Component]) -> Confidence:
    return "high" if any(one.definition.name in context.question.names for one in components) else "med"


def _tell_component(
    flow: Flow, component: Component, places: Sequence[Place], names: CodeNames, *, is_main: bool
) -> None:
    source, definition = component.source, component.definition
    is_type = source.is_type(definition)
    if is_main and not is_type:
        _tell_entry(flow, component, places, names)
    _tell_definition(flow, source, definition, component.name)
    if is_type:
        _tell_members(flow, component, names, is_main=is_main)
    else:
        callees = _tell_steps(flow, source, definition, names, MAX_STEPS if is_main else MAX_INNER_STEPS)
        if is_main:
            flow.names += [one.name for one in callees][:4]
            _tell_inner_steps(flow, callees, names)
    _tell_ending(flow, source, definition)


def _tell_entry(flow: Flow, component: Component, places: Sequence[Place], names: CodeNames) -> None:
    """Tell which callers lead to the component, the outermost first."""
    read_first = [place.entry for place in places]
    below, home = component.definition, component.entry
    chain: list[tuple[SourceFile, int, str, str]] = []
    seen = {below.name}
    while len(chain) < MAX_ENTRIES:
        uses = find_uses(flow.context, below, home, read_first, ENTRY_FILES, flow.stop, names).callers
        use = next(
            (
                one
                for one in uses
                if one.is_sure and one.is_call and one.within is not None and one.within.name not in seen
            ),
            None,
        )
        source = flow.open(use.entry) if use is not None else None
        if use is None or use.within is None or source is None:
            break
        chain.insert(0, (source, use.line, use.within.qualified_name, below.qualified_name))
        below, home = use.within, use.entry
        seen.add(below.name)
        if use.is_entry_point:
            break
    for source, line, caller, called in chain:
        flow.add(source, line, f"`{caller}` calls `{called}`")


def _tell_definition(flow: Flow, source: SourceFile, definition: SourceDefinition, name: str) -> None:
    said = _what_it_says(source, definition)
    flow.add(source, definition.line, f"`{name}`" + (f", “{said}”" if said else " starts"))


def _tell_steps(
    flow: Flow, source: SourceFile, definition: SourceDefinition, names: CodeNames, limit: int
) -> list[Callee]:
    """Tell the most relevant calls of a body in the order of its lines. Returns them."""
    callees = find_callees(flow.context, source, definition, flow.stop, names)
    scores = {one: _relevance(flow, one) for one in callees}
    chosen = set(sorted(callees, key=lambda one: (-scores[one], one.line))[:limit])
    told: list[Callee] = []
    for callee in callees:
        if callee not in chosen:
            continue
        verb = "calls" if callee.is_sure else "seems to call"
        target = flow.open(callee.entry)
        said = _what_it_says(target, callee.defined) if target is not None else ""
        where = flow.context.reference(callee.entry, callee.defined.line)
        claim = Claim(callee.entry, callee.defined.line, (callee.name,))
        what = f"{verb} `{callee.defined.qualified_name}` ({where}{f', “{said}”' if said else ''})"
        if (callee.entry, callee.defined.line) in flow.told:
            what, claim = f"{verb} `{callee.defined.qualified_name}`", Claim(callee.entry)
        if flow.add(source, callee.line, what, claim):
            flow.told.add((callee.entry, callee.defined.line))
            told.append(callee)
    return told


def _relevance(flow: Flow, callee: Callee) -> float:
    """Score a callee by the words of the question in its name and in what it says of itself."""
    source = flow.open(callee.entry)
    name = callee.defined.qualified_name.casefold()
    said = _what_it_says(source, callee.defined).casefold() if source is not None else ""
    terms = heaviest_terms(flow.context.question)
    return sum(weight * (2 * (term in name) + (term in said)) for term, weight in terms.items())


def _tell_inner_steps(flow: Flow, callees: Sequence[Callee], names: CodeNames) -> None:
    """Go one call further, into the most relevant function that was called."""
    longest = [one for one in callees if one.defined.length > 2]
    best = max(longest, key=lambda one: (_relevance(flow, one), one.defined.length), default=None)
    source = flow.open(best.entry) if best is not None else None
    if best is not None and source is not None:
        flow.names += [
            one.name for one in _tell_steps(flow, source, best.defined, names, MAX_INNER_STEPS)
        ][:2]


def _tell_members(flow: Flow, component: Component, names: CodeNames, *, is_main: bool) -> None:
    """Tell the members of a type that the question is about, then what the best of them calls."""
    source = component.source
    members = source.members_of(component.definition)
    terms = heaviest_terms(flow.context.question)
    relevant = [one for one in source.definitions_by_relevance(terms) if one in members] or members
    for member in sorted(relevant[:MAX_INNER_STEPS], key=lambda one: one.line):
        said = _what_it_says(source, member)
        if flow.add(source, member.line, f"has `{member.name}`" + (f", “{said}”" if said else "")):
            flow.names.append(member.name)
    if is_main and relevant:
        _tell_steps(flow, source, relevant[0], names, MAX_INNER_STEPS)


def _tell_ending(flow: Flow, source: SourceFile, definition: SourceDefinition) -> None:
    """Tell the last line that returns or raises something."""
    endings = [number for number, text in source.code_lines(definition) if _RETURN.match(text)]
    inner = source.members_of(definition)
    own = [number for number in endings if not any(one.line <= number <= one.end for one in inner)]
    if own:
        flow.add(source, own[-1], f"`{definition.qualified_name}` ends")


def _what_it_says(source: SourceFile, definition: SourceDefinition) -> str:
    """Return the first sentence of the documentation of a definition; empty if there is none."""
    above = range(definition.top or definition.line, definition.line)
    is_python = source.entry.path.endswith((".py", ".pyi"))
    lines = _docstring_lines(source, definition) if is_python else above
    text = ""
    for number in lines:
        if number not in source.prose_lines:
            continue
        line = source.quote(number)
        while (shorter := _MARKS.sub("", line).strip()) != line:
            line = shorter
        text = f"{text} {line}".strip()
        if _SENTENCE.search(text) or (not line and text):
            break
    first = _SENTENCE.split(text)[0].strip()
    if len(re.findall(r"[A-Za-z]{2,}", first)) < 2 or first.startswith(("@", "#[", "noqa", "type:", "eslint")):
        return ""
    return clip(first.rstrip("."), MAX_SAID_CHARS)


def _docstring_lines(source: SourceFile, definition: SourceDefinition) -> range:
    """Return the lines of a Python docstring: prose directly below the signature."""
    number = definition.line
    while number < definition.end and not source.lines[number - 1].rstrip().endswith(":"):
        number += 1
    first = number + 1
    if first > definition.end or not source.lines[first - 1].strip().startswith(('"""', "'''", 'r"""')):
        return range(0)
    last = first
    while last < definition.end and last + 1 in source.prose_lines:
        last += 1
    return range(first, last + 1)
