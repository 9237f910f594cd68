"""Tells how something works as a flow: what calls it, some of its code, and its steps in order.

Each step is a short sentence with its reference, its line of code, and what the code itself says about it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retinue.answers.components import Component, find_components, quote_lines
from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import MAX_BODY_LINES, SourceDefinition, SourceFile, indentation
from retinue.answers.tracing import Callee, CodeNames, find_callees, find_uses
from retinue.codebase import Claim, FileEntry, Place
from retinue.core import UNMETERED, Confidence, RoleResult, Spending, Stop, clip, join_notes

MAX_STEPS, OTHER_STEPS = 6, 4
"""How many calls of the main function are told, and of any other or guessed one."""
MAX_GUESSES = 3
"""How many functions a flow covers if the question names none."""
CALLER_FILES = 8
SHOWN_LINES, OTHER_SHOWN_LINES = 10, 5
"""How many lines of the main function are shown, and of each further or guessed one."""
MAX_SAID_CHARS = 100
_MARKS = re.compile(r"^(?:/\*+|\*+/?|//+!?|#+|\"\"\"|'''|r\"\"\"|--+|;+)\s?|\\$|(?:\*/|\"\"\"|''')$")
_MARKUP = re.compile(r"</?(?:p|i|b|em|code|pre|li|ul|br)\s?/?>|\{@\w+ #?([^{}]*)\}")
"""Markup of Javadoc, which is left out of what a definition says of itself."""
_SENTENCE = re.compile(r"(?<=[a-z)`'\"])[.!](?:\s|$)")


@dataclass(slots=True)
class Flow:
    """The sentences of a flow in order. A place is told once."""

    context: RoleContext
    stop: Stop
    is_guess: bool = False
    """Whether the question names nothing in the flow, so that it covers other candidates, too."""
    findings: list[Finding] = field(default_factory=list[Finding])
    names: list[str] = field(default_factory=list[str])
    told: set[tuple[FileEntry, int]] = field(default_factory=set[tuple[FileEntry, int]])
    shown: set[tuple[FileEntry, int]] = field(default_factory=set[tuple[FileEntry, int]])
    """The lines whose code is shown. Sentences about them do not quote it again."""

    def add(
        self, source: SourceFile, line: int, what: str, *further: Claim, body: Sequence[int] = ()
    ) -> bool:
        """Add a sentence about a line of code. Returns whether the line was not told before.

        If there are lines of a `body`, the code of the line and of the body follows the sentence.
        """
        if (source.entry, line) in self.told:
            return False
        self.told.add((source.entry, line))
        text = source.lines[line - 1].strip()
        if body:
            code = f"\n{_code(source, line, body)}"
            self.shown.update((source.entry, number) for number in (line, *body))
        else:
            code = f": `{source.quote(line)}`" if text and (source.entry, line) not in self.shown else ""
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
    components = find_components(context, places, stop, MAX_GUESSES)
    if not components:
        return quote_lines(context, places, stop, spending)
    confidence = _confidence(context, components)
    flow = Flow(context, stop, is_guess=confidence != "high")
    own = [one for one in components if not one.source.is_test(one.definition)]
    main, *others = own or components
    with soft_deadline(stop) as soft:
        flow.stop = soft.stop
        names = CodeNames(context, soft.stop)
        _tell_main(flow, main, places, names)
        for other in others:
            _tell_other(flow, other, names)
    verified = verify_findings(context, flow.findings, stop)
    return RoleResult(
        summary=_summary(flow, main, others, confidence),
        references=verified.references,
        key_findings=verified.texts,
        confidence=confidence,
        notes=join_notes(verified.note, soft.note),
    )


def _summary(flow: Flow, main: Component, others: Sequence[Component], confidence: Confidence) -> str:
    """Name the main function and what it calls or has, in its own words if it has any.

    Unless the question names the function, the sentence says that it is a guess, and names the other guesses.
    """
    said = _what_it_says(main.source, main.definition)
    verb, then = ("has", ", ") if main.source.is_type(main.definition) else ("calls", ", then ")
    steps = then.join(f"`{name}`" for name in dict.fromkeys(flow.names))
    sentence = f"`{main.name}`{f' (“{said}”)' if said else ''}"
    if confidence == "high":
        return f"{sentence} {verb} {steps}." if steps else f"{sentence} is where to start."
    names = dict.fromkeys(f"`{one.name}`" for one in others if one.name != main.name)
    if confidence == "med":
        sentence = f"Probably {sentence}{f', which {verb} {steps}' if steps else ''}"
        return f"{sentence}; otherwise {' or '.join(names)}." if names else f"{sentence}."
    return (
        f"A guess, because the words of the question fit several places: {' or '.join((sentence, *names))}."
    )


def _confidence(context: RoleContext, components: Sequence[Component]) -> Confidence:
    """Return high if the question names a component. A guess is no surer than the search for places."""
    if any(one.definition.name in context.question.parsed.names for one in components):
        return "high"
    return "low" if context.found_with == "low" else "med"


def _tell_main(flow: Flow, main: Component, places: Sequence[Place], names: CodeNames) -> None:
    """Tell who calls the main function, its code and its steps; of a type, those of its best member."""
    source, definition = main.source, main.definition
    shown_lines = OTHER_SHOWN_LINES if flow.is_guess else SHOWN_LINES
    if source.is_type(definition):
        _tell_definition(flow, source, definition)
        flow.names, working = _tell_members(flow, main, shown_lines)
        for member in working[:1]:
            _tell_caller(flow, Component(source, member), places, names)
            _tell_steps(flow, source, member, names, OTHER_STEPS)
        return
    _tell_caller(flow, main, places, names)
    _tell_definition(flow, source, definition, shown_lines)
    flow.names += _tell_steps(flow, source, definition, names, OTHER_STEPS if flow.is_guess else MAX_STEPS)


def _tell_other(flow: Flow, other: Component, names: CodeNames) -> None:
    """Tell what a further function calls, or the best member of a further type."""
    if not other.source.is_type(other.definition):
        _tell_definition(flow, other.source, other.definition, OTHER_SHOWN_LINES)
        limit = OTHER_STEPS // 2 if flow.is_guess else OTHER_STEPS
        _tell_steps(flow, other.source, other.definition, names, limit, only_relevant=True)
        return
    _tell_definition(flow, other.source, other.definition)
    _, working = _tell_members(flow, other)
    for member in working[:1]:
        _tell_steps(flow, other.source, member, names, OTHER_STEPS)


def _tell_caller(flow: Flow, component: Component, places: Sequence[Place], names: CodeNames) -> None:
    """Tell one function that certainly calls the component."""
    definition, read_first = component.definition, [place.entry for place in places]
    uses = find_uses(flow.context, definition, component.entry, read_first, CALLER_FILES, flow.stop, names)
    for use in uses.callers:
        source = flow.open(use.entry)
        within = use.within
        if source and within and use.is_sure and use.is_call and within.name != definition.name:
            flow.add(source, use.line, f"`{within.qualified_name}` calls `{definition.qualified_name}`")
            return


def _tell_definition(
    flow: Flow, source: SourceFile, definition: SourceDefinition, shown_lines: int = 0
) -> None:
    """Add a definition with the first sentence of its documentation and some lines of its body."""
    said = _what_it_says(source, definition)
    what = f"`{definition.qualified_name}`" + (f", “{said}”" if said else "")
    body = _relevant_lines(source, definition, flow.context.question.terms, shown_lines)
    flow.add(source, definition.line, what, body=body)


def _tell_steps(
    flow: Flow,
    source: SourceFile,
    definition: SourceDefinition,
    names: CodeNames,
    limit: int,
    *,
    only_relevant: bool = False,
) -> list[str]:
    """Tell the most relevant calls of a body in its order, and return the names of the certain ones."""
    callees = find_callees(flow.context, source, definition, flow.stop, names)
    scores = _relevance(flow, definition, callees)
    relevant = [one for one in callees if scores[one] > 0] if only_relevant else callees
    chosen = set(sorted(relevant, key=lambda one: (-scores[one], -one.defined.length, one.line))[:limit])
    told = [one for one in callees if one in chosen and _tell_call(flow, source, definition, one)]
    return [one.name for one in told if one.is_sure]


def _tell_call(flow: Flow, source: SourceFile, caller: SourceDefinition, callee: Callee) -> bool:
    """Add one call, with the place and the documentation of the callee. A callee is shown once."""
    verb = "calls" if callee.is_sure else "uses" if callee.is_likely else "may use"
    alias = f" as `{callee.name}`" if callee.name != callee.defined.name else ""
    what = f"`{caller.qualified_name}` {verb} `{callee.defined.qualified_name}`{alias}"
    place = callee.entry, callee.defined.line
    if place in flow.told:
        return flow.add(source, callee.line, what)
    target = flow.open(callee.entry)
    said = _what_it_says(target, callee.defined) if target is not None else ""
    where = flow.context.reference(*place)
    claim = Claim(callee.entry, callee.defined.line, (callee.defined.name,))
    is_new = flow.add(source, callee.line, f"{what} ({where}{f', “{said}”' if said else ''})", claim)
    if is_new:
        flow.told.add(place)
    return is_new


def _relevance(flow: Flow, caller: SourceDefinition, callees: Sequence[Callee]) -> dict[Callee, float]:
    """Score callees by the words of the question in their names and in what they say of themselves.

    A word that most of them have, or the type that the caller belongs to, says nothing.
    """
    texts: dict[Callee, tuple[str, str]] = {}
    for callee in callees:
        source = flow.open(callee.entry)
        said = _what_it_says(source, callee.defined).casefold() if source is not None else ""
        texts[callee] = callee.defined.name.casefold(), said
    scores = dict.fromkeys(callees, 0.0)
    for term, weight in flow.context.question.terms.items():
        if term in (caller.owner or "").casefold():
            continue
        fits = {callee: 2 * (term in name) + (term in said) for callee, (name, said) in texts.items()}
        having = sum(fit > 0 for fit in fits.values())
        rarity = math.log(len(callees) / (1 + having)) if 2 * having < len(callees) else 0.0
        for callee, fit in fits.items():
            scores[callee] += weight * rarity * fit
    return scores


def _tell_members(
    flow: Flow, component: Component, shown_lines: int = 0
) -> tuple[list[str], list[SourceDefinition]]:
    """Tell the members of a type that the question is about, and show some lines of the best one.

    Returns their names in order, and those that do some work, best first.
    """
    source = component.source
    members = source.members_of(component.definition)
    terms = flow.context.question.terms
    relevant = [one for one in source.definitions_by_relevance(terms) if one in members]
    relevant += [one for one in members if one not in relevant]
    chosen = relevant[:OTHER_STEPS]
    working = [one for one in chosen if one.length > 0 and one.name != component.definition.name]
    told: list[str] = []
    for member in sorted(chosen, key=lambda one: one.line):
        said = _what_it_says(source, member)
        body = _relevant_lines(source, member, terms, shown_lines) if member in working[:1] else ()
        if flow.add(source, member.line, f"has `{member.name}`" + (f", “{said}”" if said else ""), body=body):
            told.append(member.name)
    return told, working


def _code(source: SourceFile, line: int, body: Sequence[int]) -> str:
    """Return a line with lines of the body that belongs to it. `...` stands for what is left out between."""
    if body[0] == line + 1:
        return source.snippet(line, body[-1])
    first, *rest = source.snippet(line, body[-1]).split("\n")
    rest = rest[body[0] - line - 1 :]
    return "\n".join((first, " " * indentation(rest[0]) + "...", *rest))


def _relevant_lines(
    source: SourceFile, definition: SourceDefinition, terms: Mapping[str, float], limit: int
) -> Sequence[int]:
    """Return the lines of a body, or those of a long one that have most of the question's words."""
    first = _docstring_lines(source, definition).stop or definition.line + 1
    lines = range(first, min(definition.end, definition.line + MAX_BODY_LINES) + 1) if limit else ()
    if len(lines) > limit:
        words = [{term for term in terms if term in source.lines[number - 1].casefold()} for number in lines]
        scores: list[tuple[float, int]] = []
        for start in range(len(lines) - limit + 1):
            within = words[start : start + limit]
            scores.append((sum(terms[term] for term in set[str]().union(*within)), sum(map(len, within))))
        best = scores.index(max(scores))
        end = next((n for n in range(best, len(scores)) if scores[n] != scores[best]), len(scores))
        # Shows as much before the words as after them; the beginning, if there are none.
        middle = (best + end) // 2 if scores[best][1] else 0
        lines = lines[middle : middle + limit]
    filled = [number for number in lines if source.lines[number - 1].strip()]
    return range(filled[0], filled[-1] + 1) if filled else ()


def _what_it_says(source: SourceFile, definition: SourceDefinition) -> str:
    """Return the first sentence of the comment above a definition or of its docstring; empty without one."""
    docstring = _docstring_lines(source, definition)
    numbers = docstring or range(definition.top or definition.line, definition.line)
    lines = [source.quote(number) for number in numbers if number in source.prose_lines]
    text = " ".join(_MARKS.sub("", _MARKUP.sub(r"\1", line).strip()).strip() for line in lines)
    first = _SENTENCE.split(_MARKS.sub("", text).strip())[0].strip()
    says_something = len(re.findall(r"[A-Za-z]{2,}", first)) > 1 and not first.startswith(("@", "#[", "noqa"))
    return clip(first.rstrip("."), MAX_SAID_CHARS) if says_something else ""


def _docstring_lines(source: SourceFile, definition: SourceDefinition) -> range:
    """Return the lines of a docstring: quoted prose directly below the signature."""
    first = definition.line + 1
    while first <= definition.end and source.lines[first - 2].rstrip()[-1:] not in (":", "{"):
        first += 1
    if first > definition.end or not source.lines[first - 1].lstrip("r \t").startswith(('"""', "'''")):
        return range(0)
    last = first
    while last < definition.end and last + 1 in source.prose_lines:
        last += 1
    return range(first, last + 1)
