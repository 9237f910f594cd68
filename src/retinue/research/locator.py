"""The locator: where the answer lives. Places in rank order, grouped by kind; no excerpts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from retinue.codebase.entry import Entry
from retinue.codebase.locate import Place, locate
from retinue.codebase.references import Checked, Claim, check, words_in
from retinue.core.report import Confidence, RoleResult
from retinue.core.stop import Stop
from retinue.core.words import counted
from retinue.research.inquiry import Inquiry

KINDS = {
    "implementation": "implementation",
    "entry point": "entry points",
    "types": "types",
    "config": "configuration",
    "test": "tests",
    "docs": "docs",
}
EXPLAINED = 5
"""Places that say why they are there."""
NAMED = 3
"""Files that each group names."""
DEFINITION_LINES = 100
"""How far below the line that names a definition its words may stand."""


def find(inquiry: Inquiry, limit: int, stop: Stop) -> tuple[RoleResult, tuple[Place, ...]]:
    """The result, and its places for the roles that start from them. A place without a line has line 0."""
    asked, codebase = inquiry.asked, inquiry.scope.codebase
    places = locate(codebase, asked.parsed.text, limit, stop)
    seen = words_in(codebase, (place.entry for place in places), asked.aims, stop)
    present = frozenset[str]().union(*seen.values())
    if not present:
        return _not_found(inquiry), ()
    kept, checked = _checked(inquiry, places, stop)
    if not kept and not checked.unchecked:
        return _not_found(inquiry), ()
    confidence = _confidence(inquiry, kept, seen)
    result = RoleResult(
        summary=_summary(inquiry, kept, confidence),
        references=tuple(inquiry.reference(place.entry, place.line or None) for place in kept),
        key_findings=(*_reasons(inquiry, kept), *_groups(inquiry, kept)),
        confidence=confidence,
        notes=_notes(inquiry, checked, present),
    )
    return result, tuple(kept)


def _checked(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> tuple[list[Place], Checked]:
    """The places whose line holds; where only the line does not, the file alone."""
    says = (*inquiry.asked.parsed.names, *inquiry.asked.parsed.terms)
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


def _confidence(inquiry: Inquiry, kept: Sequence[Place], seen: dict[Entry, frozenset[str]]) -> Confidence:
    if not kept:
        return "low"
    share = len(seen[kept[0].entry]) / len(inquiry.asked.aims)
    lead = kept[0].score / kept[1].score if len(kept) > 1 and kept[1].score > 0 else 2.0
    if share >= 0.5 and lead >= 1.25:
        return "high"
    return "med" if share >= 0.3 else "low"


def _summary(inquiry: Inquiry, kept: Sequence[Place], confidence: Confidence) -> str:
    if not kept:
        return "Something was found, but the limits left no room to check any of it."
    best = inquiry.reference(kept[0].entry, kept[0].line or None)
    return f"{counted(len(kept), 'place')}, the best of them {best} ({confidence} confidence)."


def _reasons(inquiry: Inquiry, kept: Sequence[Place]) -> Iterator[str]:
    for place in kept[:EXPLAINED]:
        if place.why:
            yield f"{inquiry.reference(place.entry, place.line or None)}: {'; '.join(place.why)}"


def _groups(inquiry: Inquiry, kept: Sequence[Place]) -> Iterator[str]:
    for kind, name in KINDS.items():
        paths = [inquiry.reference(place.entry).path for place in kept if place.kind == kind]
        if paths:
            more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
            yield f"{name} ({len(paths)}): {', '.join(paths[:NAMED])}{more}"


def _notes(inquiry: Inquiry, checked: Checked, present: frozenset[str]) -> str | None:
    notes: list[str] = []
    if missing := [name for name in inquiry.asked.names if name not in present]:
        notes.append(f"Not found: {', '.join(missing)}.")
    if checked.failed:
        notes.append(f"{counted(len(checked.failed), 'reference')} dropped: they did not hold.")
    if checked.unchecked:
        notes.append(f"{counted(len(checked.unchecked), 'place')} left out: a limit was reached.")
    return " ".join(notes) or None


def _not_found(inquiry: Inquiry) -> RoleResult:
    searched = ", ".join(inquiry.asked.aims[:8])
    where = counted(len(inquiry.scope.folders), "root")
    return RoleResult(summary=f"Not found: nothing in {where} fits {searched}.", confidence="low")
