"""The locator: where the answer lives. Places in rank order, grouped by kind; no excerpts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from retinue.codebase.locate import Located, Place
from retinue.codebase.missing import Missing
from retinue.codebase.references import Checked, Claim, check, words_in
from retinue.core.report import Confidence, RoleResult
from retinue.core.stop import Stop
from retinue.core.words import counted, joined
from retinue.research.inquiry import Inquiry

KINDS = {
    "implementation": "implementation",
    "entry point": "entry points",
    "types": "types",
    "config": "configuration",
    "test": "tests",
    "docs": "docs",
}
EXPLAINED, REASONS = 3, 2
"""Places that say why they are there, and how many of their reasons."""
NAMED = 3
"""Files that each group names."""
DEFINITION_LINES = 100
"""How far below the line that names a definition its words may stand."""


def find(inquiry: Inquiry, limit: int, stop: Stop) -> tuple[RoleResult, tuple[Place, ...]]:
    """The result, and its places for the roles that start from them. A place without a line has line 0."""
    asked, scope = inquiry.asked, inquiry.scope
    located = scope.locator.locate(asked.parsed.text, limit, stop)
    stop.check()  # a walk that time cut short must not pass for "not found"
    seen = words_in(scope.codebase, (place.entry for place in located.places), asked.aims, stop)
    present = frozenset[str]().union(*seen.values())
    if not present:
        return _not_found(inquiry, located), ()
    kept, checked = _checked(inquiry, located.places, stop)
    if not kept and not checked.unchecked:
        return _not_found(inquiry, located), ()
    confidence = located.confidence.level if kept else "low"
    result = RoleResult(
        summary=_summary(inquiry, kept, confidence),
        references=tuple(inquiry.reference(place.entry, place.line or None) for place in kept),
        key_findings=(*_reasons(inquiry, kept), *_groups(inquiry, kept)),
        confidence=confidence,
        notes=_notes(inquiry, checked, present, located.missing),
    )
    return result, tuple(kept)


def _checked(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> tuple[list[Place], Checked]:
    """The places whose line holds; where only the line does not, the file alone."""
    says = (*inquiry.asked.names, *inquiry.asked.terms)
    charge = inquiry.sources.ledger.charge
    claims = [Claim(place.entry, place.line, says, DEFINITION_LINES) for place in places]
    lines = check(inquiry.scope.codebase, claims, stop, charge)
    whole = check(inquiry.scope.codebase, (Claim(claim.entry) for claim in lines.failed), stop, charge)
    with_line = {claim.entry for claim in lines.held}
    readable = with_line.union(claim.entry for claim in whole.held)
    kept = [
        place if place.entry in with_line else replace(place, line=0)
        for place in places
        if place.entry in readable
    ]
    return kept, Checked(lines.held, whole.failed, (*lines.unchecked, *whole.unchecked))


def _summary(inquiry: Inquiry, kept: Sequence[Place], confidence: Confidence) -> str:
    if not kept:
        return "Something was found, but the limits left no room to check any of it."
    best = inquiry.reference(kept[0].entry, kept[0].line or None)
    return f"{counted(len(kept), 'place')}, the best of them {best} ({confidence} confidence)."


def _reasons(inquiry: Inquiry, kept: Sequence[Place]) -> Iterator[str]:
    for place in kept[:EXPLAINED]:
        if place.why:
            yield f"{inquiry.reference(place.entry, place.line or None)}: {'; '.join(place.why[:REASONS])}"


def _groups(inquiry: Inquiry, kept: Sequence[Place]) -> Iterator[str]:
    for kind, name in KINDS.items():
        paths = [inquiry.reference(place.entry).path for place in kept if place.kind == kind]
        if paths:
            more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
            yield f"{name} ({len(paths)}): {', '.join(paths[:NAMED])}{more}"


def _notes(
    inquiry: Inquiry, checked: Checked, present: frozenset[str], missing: Sequence[Missing]
) -> str | None:
    absent = [name for name in inquiry.asked.names if name not in present]
    dropped, unchecked = len(checked.failed), len(checked.unchecked)
    return joined(
        f"Not found: {', '.join(absent)}." if absent else None,
        _near(missing),
        f"{counted(dropped, 'reference')} dropped: they did not hold." if dropped else None,
        f"{counted(unchecked, 'place')} left out: a limit was reached." if unchecked else None,
    )


def _near(missing: Sequence[Missing]) -> str | None:
    near = dict.fromkeys(name for one in missing for name in one.near)
    return f"Near names: {', '.join(near)}." if near else None


def _not_found(inquiry: Inquiry, located: Located) -> RoleResult:
    """What was searched, and where; and what looks like it."""
    asked = inquiry.asked
    wanted = ", ".join(asked.names or [asked.parsed.spoken.get(aim, aim) for aim in asked.aims[:8]])
    where = f"{counted(located.files, 'file')} of {counted(len(inquiry.scope.folders), 'root')}"
    near = _near(located.missing)
    return RoleResult(
        summary=joined(f"Not found: nothing in {where} fits {wanted}.", near) or "", confidence="low"
    )
