"""The analyzer role: explains how a component works.

Finds where a component is defined, what leads to it, what it calls and what it reads. Starts from the places
that the locator found. Every finding carries its evidence as `path:line`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from retinue.codebase import Claim, FileEntry, Place, best_definitions, file_category
from retinue.core import UNMETERED, Confidence, RoleResult, Spending, Stop, counted, join_notes
from retinue.research.question import code_names, heaviest_terms, required_words
from retinue.research.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.research.source_files import SourceDefinition, SourceFile
from retinue.research.tracing import CodeNames, Use, Uses, find_callees, find_constants, find_uses

MAX_COMPONENTS = 2
"""How many definitions are traced."""
MAX_SOURCES = 6
"""How many files are searched for components."""
MAX_CALLERS, MAX_CALLEES, MAX_CONSTANTS, MAX_TESTS = 3, 3, 3, 1
"""How many findings of each kind one component gets."""
FINDING_KINDS = ("definition", "path", "use", "call", "constant")
"""The kinds of findings, most important first."""
CALLER_FILES, PATH_FILES = 8, 3
"""How many files are read to find the users of a component, and the users of one of its callers."""
_DECLARATION = re.compile(r"^\s*(?:export\s+)?(?:declare\s+)?(?:interface|type|typedef|trait)\b")
MAX_ACCESSOR_LINES, MAX_HELPER_LINES = 4, 12
LATER_CATEGORIES = {"test": 2, "example": 1, "vendored": 1}
"""Files of these categories show how something is used. How it works is in the project's own code."""
_TEST_MARK = re.compile(r"\s*(?:#\[(?:\w+::)?test\b|@Test\b|#\[cfg\(test\)\])")
MAX_PATH_LINKS = 3
"""How many callers a call path shows."""


@dataclass(frozen=True, slots=True)
class Component:
    """A definition that is traced, with its file."""

    source: SourceFile
    definition: SourceDefinition

    @property
    def name(self) -> str:
        return self.definition.qualified_name

    @property
    def entry(self) -> FileEntry:
        return self.source.entry


@dataclass(slots=True)
class Trace:
    """Collects findings by kind, and sentences for the summary."""

    context: RoleContext
    ranked: tuple[list[Finding], ...] = field(default_factory=lambda: tuple([] for _ in FINDING_KINDS))
    sentences: list[str] = field(default_factory=list[str])

    def add(self, kind: str, text: str, *claims: Claim) -> None:
        """Add a finding. `{0}`, `{1}` and so on in the text are replaced by the places of the claims."""
        places = [self.context.reference(claim.entry, claim.line) for claim in claims]
        self.ranked[FINDING_KINDS.index(kind)].append(Finding(text.format(*places), claims))

    @property
    def findings(self) -> list[Finding]:
        return [finding for findings in self.ranked for finding in findings]


def analyze(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Trace the components that the question names, or else the most relevant ones at these places."""
    context = context.with_spending(spending)
    components = find_components(context, places, stop)
    trace = Trace(context)
    with soft_deadline(stop) as soft:
        read_first = [place.entry for place in places]
        names = CodeNames(context, soft.stop)
        for component in components:
            _trace_component(trace, component, read_first, names, soft.stop)
        if not components:
            _quote_relevant_lines(trace, places, soft.stop)
    verified = verify_findings(context, trace.findings, stop)
    return RoleResult(
        summary=" ".join(trace.sentences) or "The time was too short to trace anything.",
        references=verified.references,
        key_findings=verified.texts,
        confidence=_confidence(context, components),
        notes=join_notes(verified.note, soft.note),
    )


def find_components(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[Component]:
    """Return the definitions to trace.

    These are the ones that the question names as `Owner.name`, else those that it names, else the most
    relevant ones.
    """
    question = context.question
    names, terms = code_names(question), heaviest_terms(question)
    dotted = {tuple(re.split(r"\W+", name)[-2:]) for name in question.dotted}
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
            elif definition.name in names or definition.name == question.text:
                named.append(Component(source, definition))
    if not (qualified or named):
        relevant = [*_best_components(context, places, stop), *relevant]
    return _drop_overloads(qualified or named or relevant)[:MAX_COMPONENTS]


def _best_components(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[Component]:
    """Return the best definitions of the places; those that do work come first, then types, then tests."""
    found: list[Component] = []
    for place, best in best_definitions(places)[:MAX_SOURCES]:
        source = context.sources.open(place.entry, stop) if place.kind != "docs" else None
        if source is not None and (definition := _working_definition(source, best.line)) is not None:
            found.append(Component(source, definition))
    return sorted(
        found,
        key=lambda one: (
            2 if _is_test(one) else LATER_CATEGORIES.get(file_category(one.entry.path), 0),
            one.definition.length < 1 or _only_declares(one),
            _only_returns(one),
        ),
    )


def _working_definition(source: SourceFile, line: int) -> SourceDefinition | None:
    """Return the definition at a line or, for a short helper inside a function, the function around it.

    The ranker splits files by regular expressions, so that a line may also be inside a definition.
    """
    here = source.definition_around(line)
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


def _is_test(component: Component) -> bool:
    """Return whether a function is a test among other code: it is marked as one, or in a module of tests."""
    source, definition = component.source, component.definition
    marks = source.lines[max(0, definition.top - 1) : definition.line]
    if definition.name.startswith("test_") or any(_TEST_MARK.match(text) for text in marks):
        return True
    around = [one for one in source.definitions if one.line < definition.line <= one.end]
    return any(one.name in ("tests", "test") for one in around)


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


def _trace_component(
    trace: Trace, component: Component, read_first: Sequence[FileEntry], names: CodeNames, stop: Stop
) -> None:
    """Add what is found about one component, and a sentence about it."""
    source, definition, name = component.source, component.definition, component.name
    here = Claim(source.entry, definition.line, (definition.name,))
    trace.add(
        "definition", f"{{0}}: `{name}` is defined: {_format_code(source.quote(definition.line))}", here
    )
    sentence = [f"`{name}` is defined at {trace.context.reference(source.entry, definition.line)}"]
    try:
        uses = find_uses(trace.context, definition, source.entry, read_first, CALLER_FILES, stop, names)
        if uses.callers:
            sentence.append(f"named in {counted(uses.files, 'file')}")
        _add_uses(trace, component, uses)
        _add_call_path(trace, component, uses.callers, read_first, names, stop)
        if source.is_type(definition):
            sentence += _list_names("holds", _add_members(trace, component))
        else:
            sentence += _list_names("calls", _add_callees(trace, component, names, stop))
            sentence += _list_names("reads", _add_constants(trace, component, names, stop))
    finally:
        trace.sentences.append(", ".join(sentence) + ".")


def _add_uses(trace: Trace, component: Component, uses: Uses) -> None:
    """Add where the component is used, and a test of it."""
    name = component.definition.name
    for use in uses.callers[:MAX_CALLERS]:
        by = f"`{use.within.qualified_name}`" if use.within is not None else "the file itself"
        entry_point = ", an entry point," if use.is_entry_point else ""
        verb = "uses" if use.is_sure else "may use"
        as_type = " as a type" if use.is_type else ""
        claim = Claim(use.entry, use.line, (name,))
        trace.add("use", f"{{0}}: {by}{entry_point} {verb} `{component.name}`{as_type}", claim)
    for use in uses.tests[:MAX_TESTS]:
        trace.add("use", f"{{0}}: a test of `{component.name}`", Claim(use.entry, use.line, (name,)))


def _add_members(trace: Trace, component: Component) -> list[str]:
    """Add the members of a class that the question is about, or its first ones. Return their names."""
    source = component.source
    members = source.members_of(component.definition)
    terms = heaviest_terms(trace.context.question)
    relevant = [one for one in source.definitions_by_relevance(terms) if one in members]
    for member in (relevant or members)[:MAX_CALLEES]:
        text = f"{{0}}: `{component.name}` has {_format_code(source.quote(member.line))}"
        trace.add("call", text, Claim(source.entry, member.line, (member.name,)))
    return [member.name for member in relevant or members]


def _format_code(text: str) -> str:
    """Return code in backticks. Doubles the braces, because `Trace.add` formats the text."""
    return "`" + text.replace("{", "{{").replace("}", "}}") + "`"


def _list_names(verb: str, names: Sequence[str]) -> list[str]:
    return [f"{verb} {', '.join(f'`{name}`' for name in names[:3])}"] if names else []


def _add_call_path(
    trace: Trace,
    component: Component,
    callers: Sequence[Use],
    read_first: Sequence[FileEntry],
    names: CodeNames,
    stop: Stop,
) -> None:
    """Add the chain of callers that leads to the component, as far up as it can be followed."""
    links: list[tuple[str, Claim]] = []
    below = component.definition
    seen = {below.name}
    while len(links) < MAX_PATH_LINKS:
        use = next(
            (use for use in callers if use.is_call and use.within and use.within.name not in seen), None
        )
        if use is None or use.within is None:
            break
        links.insert(0, (use.within.qualified_name, Claim(use.entry, use.line, (below.name,))))
        below = use.within
        seen.add(below.name)
        if use.is_entry_point or below.name.startswith("__"):
            break
        callers = find_uses(trace.context, below, use.entry, read_first, PATH_FILES, stop, names).callers
    if len(links) > 1:
        shown = " -> ".join(f"`{name}` ({{{number}}})" for number, (name, _) in enumerate(links))
        trace.add("path", f"Call path: {shown} -> `{component.name}`", *(claim for _, claim in links))


def _add_callees(trace: Trace, component: Component, names: CodeNames, stop: Stop) -> list[str]:
    """Add the functions that the component calls. Return the names of those that are certain."""
    source, user = component.source, component.name
    callees = find_callees(trace.context, source, component.definition, stop, names)
    by_name = {callee.name: callee for callee in reversed(callees)}
    ordered = [
        by_name[name] for name in _order_by_question(trace.context, component, list(reversed(by_name)))
    ]
    for callee in ordered[:MAX_CALLEES]:
        call = Claim(source.entry, callee.line, (callee.name,))
        defined = callee.defined
        target = Claim(callee.entry, defined.line, (defined.name,))
        verb, name = ("calls", defined.name) if callee.is_sure else ("uses", defined.qualified_name)
        alias = f" as `{callee.name}`" if callee.name != defined.name else ""
        trace.add("call", f"{{0}}: `{user}` {verb} `{name}`{alias}, defined at {{1}}", call, target)
    return [callee.name for callee in ordered if callee.is_sure]


def _add_constants(trace: Trace, component: Component, names: CodeNames, stop: Stop) -> list[str]:
    """Add the constants, variables and settings that the component reads. Return their names."""
    source, user = component.source, component.name
    read = {one.name: one for one in find_constants(trace.context, source, component.definition, stop, names)}
    ordered = _order_by_question(trace.context, component, list(read))
    for name in ordered[:MAX_CONSTANTS]:
        one = read[name]
        claims = [Claim(source.entry, one.line, (name,))]
        text = f"{{0}}: `{user}` reads `{name}`"
        if one.set_at is not None:
            claims.append(Claim(*one.set_at, (name,)))
            text += ", set at {1}"
        trace.add("constant", text, *claims)
    return ordered


def _order_by_question(context: RoleContext, component: Component, names: list[str]) -> list[str]:
    """Sort names: those with terms of the question first. Terms in the component's own name do not count."""
    own = component.name.casefold()
    further = {term: weight for term, weight in heaviest_terms(context.question).items() if term not in own}

    def weight_of(name: str) -> float:
        return sum(weight for term, weight in further.items() if term in name.casefold())

    return sorted(names, key=weight_of, reverse=True)


def _confidence(context: RoleContext, components: Sequence[Component]) -> Confidence:
    """Return high confidence if the question names a traced definition, and low if nothing was traced."""
    if any(one.definition.name in context.question.names for one in components):
        return "high"
    return "med" if components else "low"


def _quote_relevant_lines(trace: Trace, places: Sequence[Place], stop: Stop) -> None:
    """Quote the best line of each place, for prose and configuration, which have no components."""
    required = required_words(trace.context.question)
    words = [word.casefold() for word in required]
    for place in places[:MAX_SOURCES]:
        source = trace.context.sources.open(place.entry, stop)
        if source is None:
            continue
        scores = [sum(word in line.casefold() for word in words) for line in source.lines]
        best = max(range(len(scores)), key=lambda number: (scores[number], -number))
        if scores[best]:
            claim = Claim(place.entry, best + 1, required)
            trace.add("definition", f"{{0}}: {_format_code(source.quote(best + 1))}", claim)
    lines = len(trace.findings)
    trace.sentences.append(f"{counted(lines, 'relevant line')}." if lines else "Nothing to trace.")
