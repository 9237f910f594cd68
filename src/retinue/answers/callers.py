"""Lists who calls or uses a definition: every site, grouped by the function that contains it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from retinue.answers.components import Component, find_components, quote_lines
from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition
from retinue.answers.tracing import Use, Uses, find_uses
from retinue.codebase import Bounds, Claim, FileEntry, Place, SearchPattern, file_kind
from retinue.core import UNMETERED, Confidence, RoleResult, Spending, Stop, counted, join_notes

MAX_CALLER_FILES = 50
"""How many files are read. The files that hold the name but were not read are counted."""
MAX_TARGETS = 2
NAME_BOUNDS = Bounds(max_files=50, max_matches=150, max_matches_per_file=10, max_line_chars=300)
_DECLARES = re.compile(
    r"\s*(?:import|from|use|using|#\s*include|extern|export)\b|[A-Za-z][\w *]*\([^;]*\);\s*$"
)
MAX_GROUPS = 36
"""How many callers are listed."""

NOT_DEFINED = "The project defines nothing with the name that the question asks for. The nearest follow."


def list_callers(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """List all uses of the definitions that the question names, those in tests last."""
    context = context.with_spending(spending)
    targets = find_components(context, places, stop)[:MAX_TARGETS]
    if not targets:
        return quote_lines(context, places, stop, spending)
    findings: list[Finding] = []
    sentences: list[str] = []
    confidence: Confidence = "low"
    with soft_deadline(stop) as soft:
        for target in targets:
            read_first = [place.entry for place in places]
            uses = find_uses(
                context,
                target.definition,
                target.entry,
                read_first,
                MAX_CALLER_FILES,
                soft.stop,
                recursive=True,
            )
            if not uses.uses:
                uses = _possible_uses(context, target, soft.stop)
            findings += _grouped(context, target, uses, soft.stop)
            sentences.append(_sentence(target, uses, is_cut=bool(context.sources.files_read.refused)))
            if any(use.is_sure for use in uses.uses):
                confidence = "high"
    verified = verify_findings(context, findings[:MAX_GROUPS], stop)
    left = len(findings) - MAX_GROUPS
    if not any(_is_asked_for(context, target) for target in targets):
        sentences.insert(0, NOT_DEFINED)
        confidence = "low"
    return RoleResult(
        summary=" ".join(sentences),
        references=verified.references,
        key_findings=verified.texts,
        confidence=confidence,
        notes=join_notes(
            verified.note, soft.note, f"{counted(left, 'caller')} not listed." if left > 0 else None
        ),
    )


def _is_asked_for(context: RoleContext, target: Component) -> bool:
    """Return whether the question contains the name of a definition, perhaps in several words."""
    asked = re.sub(r"\W|_", "", context.question.text).casefold()
    return target.definition.name.replace("_", "").casefold() in asked


def _possible_uses(context: RoleContext, target: Component, stop: Stop) -> Uses:
    """Return the other lines with the name, for code that the parser does not understand. None is sure."""
    name = target.definition.name
    found = context.scope.codebase.grep(SearchPattern(name, fixed=True, word=True), stop, bounds=NAME_BOUNDS)
    stop.check()
    uses: list[Use] = []
    for match in found.matches:
        source = context.sources.peek(match.entry, stop)
        kind = file_kind(match.entry.path)
        if source is None or kind == "docs" or match.line > len(source.lines):
            continue
        if match.line in source.prose_lines or _DECLARES.match(match.text):
            continue
        if any(one.line == match.line and one.name == name for one in source.definitions):
            continue
        within = source.definition_around(match.line)
        uses.append(Use(match.entry, match.line, within, source.is_test(within), is_sure=False))
    is_complete = not {"files", "matches", "time"} & set(found.omitted.limits)
    return Uses(tuple(uses), len({use.entry for use in uses}), is_complete=is_complete)


def _sentence(target: Component, uses: Uses, *, is_cut: bool) -> str:
    """Count the sites of a target. `is_cut` says whether a limit refused to read more."""
    if not uses.uses and is_cut:
        return f"A limit left no room to look for all uses of `{target.name}`."
    if not uses.uses:
        return f"No use of `{target.name}` was found outside of its definition."
    code, tests = uses.callers, uses.tests
    callers = {(use.entry, use.within) for use in code}
    files = {use.entry for use in code}
    verb = "is used" if any(use.is_sure for use in uses.uses) else "may be used"
    unread = uses.files - len({use.entry for use in uses.uses})
    parts: list[str] = []
    if code:
        parts.append(
            f"at {counted(len(code), 'place')} in {counted(len(callers), 'caller')} "
            f"of {counted(len(files), 'file')}"
        )
    if tests:
        parts.append(f"at {counted(len(tests), 'place')} in tests")
    more = f"; {counted(unread, 'more file')} with the name not read" if unread > 0 else ""
    more += f"; {counted(uses.left_out, 'more place')} may use it" if uses.left_out else ""
    at_least = "" if uses.is_complete and not more and not is_cut else " at least"
    return f"`{target.name}` {verb}{at_least} {' and '.join(parts)}{more}."


def _grouped(context: RoleContext, target: Component, uses: Uses, stop: Stop) -> list[Finding]:
    """Return a finding for each caller with all of its sites; lines outside of any, then tests, come last."""
    groups: defaultdict[tuple[bool, FileEntry, SourceDefinition | None], list[Use]] = defaultdict(list)
    for use in uses.uses:
        groups[use.is_test, use.entry, use.within].append(use)
    in_order = sorted(groups, key=lambda group: (group[0], group[2] is None))
    return [_finding(context, target, groups[group], stop) for group in in_order]


def _finding(context: RoleContext, target: Component, sites: Sequence[Use], stop: Stop) -> Finding:
    first = sites[0]
    source = context.sources.peek(first.entry, stop)
    code = f": `{source.quote(first.line)}`" if source is not None else ""
    by = f"`{first.within.qualified_name}`" if first.within is not None else "the file itself"
    verb = _verb(first)
    lines = list(dict.fromkeys(use.line for use in sites))[1:]
    also = f"; also on line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" if lines else ""
    text = f"{context.reference(first.entry, first.line)}: {by} {verb} `{target.name}`{code}{also}"
    name = target.definition.name
    return Finding(text, tuple(Claim(use.entry, use.line, (name,)) for use in sites))


def _verb(use: Use) -> str:
    """Say what is certain about a site."""
    if not use.is_sure:
        return "may use"
    if use.is_type:
        return "names the type"
    return "calls" if use.is_call else "uses"
