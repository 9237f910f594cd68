"""The locator: where the answer lives. Places in rank order, grouped by kind; no excerpts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from retinue.codebase import (
    MAX_SEARCHED_BYTES,
    Bounds,
    CheckedClaims,
    Claim,
    FileEntry,
    Located,
    Place,
    SearchPattern,
    check_claims,
    words_in_files,
)
from retinue.core import Confidence, DeadlineExceeded, RoleResult, Stop, clip, counted, join_notes
from retinue.research.question import WIDER, narrowed
from retinue.research.report_builder import FINDINGS
from retinue.research.role_context import Inquiry, early
from retinue.research.tracing import DEFINES

# MERGED similar_names: Names that exist and look like one that does not: what somebody who mistyped may have meant.

NEAR = 3
ALIKE = 0.75
"""How much of two names must agree, from 0 to 1."""
SHORTEST = 4
"""Letters: anything looks like a shorter name."""
MOST_WORDS, MOST_PIECES = 3, 24
LOOK = Bounds(max_files=500, max_matches=2_000, max_matches_per_file=50, max_line_chars=300)


def near_names(inquiry: Inquiry, wanted: Iterable[str], stop: Stop) -> tuple[str, ...]:
    """Defined names, most alike first. Whatever survives a slip of the pen has a few letters in a row."""
    words = [flat for word in wanted if len(flat := _flat(word)) >= SHORTEST][:MOST_WORDS]
    pieces = sorted({word[at : at + 3] for word in words for at in range(len(word) - 2)})[:MOST_PIECES]
    if not pieces:
        return ()
    name = rf"\w*(?:{'|'.join('_?'.join(piece) for piece in pieces)})\w*"
    pattern = rf"\b{DEFINES}\s+(?:\([^)]*\)\s*)?{name}|^\s*{name}\s*(?::[^=]*)?="
    found = inquiry.scope.codebase.grep(SearchPattern(pattern, ignore_case=True), stop, bounds=LOOK).matches
    names = {name for match in found for name in re.findall(r"[^\W\d]\w*", match.text)}
    scores = {name: max(_likeness(_flat(name), word) for word in words) for name in names}
    near = sorted((name for name in scores if scores[name] >= ALIKE), key=lambda name: (-scores[name], name))
    once = {_flat(name): name for name in reversed(near)}  # of `Store` and `store` the first
    return tuple(name for name in near if name in once.values())[:NEAR]


def _flat(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _likeness(one: str, other: str) -> float:
    if abs(len(one) - len(other)) > max(len(one), len(other)) * (1 - ALIKE):
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


KINDS = {
    "implementation": "implementation",
    "entry point": "entry points",
    "types": "types",
    "config": "configuration",
    "test": "tests",
    "docs": "docs",
}
EXPLAINED, REASONS = 3, 2
"""Places that say first why they are there, and how many of their reasons. Others do after the groups, as far
as there is room."""
NAMED = 3
"""Files that each group names."""
AT_ONCE = 5
"""Places that are opened again between two looks at the clock."""
LONGEST_SHOWN = 60
DEFINITION_LINES = 100
"""How far below the line that names a definition its words may stand."""


@dataclass(slots=True)
class CheckedPlaces:
    """What became of the places: those that hold, and what happened to the others."""

    kept: list[Place] = field(default_factory=list[Place])
    present: set[str] = field(default_factory=set[str])
    """What was asked for that stands in any of them."""
    failed: int = 0
    unchecked: int = 0
    is_cut: bool = False
    """Whether the deadline came before all of them were opened again."""


def find(inquiry: Inquiry, limit: int, stop: Stop) -> tuple[RoleResult, tuple[Place, ...]]:
    """The result, and its places for the roles that start from them. A place without a line has line 0."""
    located, is_cut = _located(inquiry, limit, stop)
    places, narrowing = located.places[:limit], None
    if inquiry.earlier is not None:
        places, narrowing = narrowed(located.places, inquiry.asked.text, inquiry.earlier, limit)
    looked = _looked(inquiry, places, stop)
    if not looked.present or not (looked.kept or looked.unchecked):
        if is_cut or looked.is_cut:
            raise DeadlineExceeded("the deadline passed before all files were searched")
        return _not_found(inquiry, located, stop), ()
    kept = looked.kept
    confidence = _confidence(inquiry, located) if kept and not is_cut else "low"
    notes = join_notes(
        narrowing,
        "The deadline came before everything was searched: there may be more." if is_cut else None,
        _notes(inquiry, looked, located, stop),
    )
    return told(inquiry, kept, confidence, notes), tuple(kept)


def told(inquiry: Inquiry, kept: Sequence[Place], confidence: Confidence, notes: str | None) -> RoleResult:
    """These places in this order, as a result."""
    return RoleResult(
        summary=_summary(inquiry, kept, confidence),
        references=tuple(inquiry.reference(place.entry, place.line or None) for place in kept),
        key_findings=_findings(inquiry, kept),
        confidence=confidence,
        notes=notes,
    )


def _located(inquiry: Inquiry, limit: int, stop: Stop) -> tuple[Located, bool]:
    """What is found in most of the time, and whether the time was too short for all of it."""
    wanted = limit * WIDER if inquiry.earlier is not None else limit
    with early(stop) as soon:
        located = inquiry.scope.locator.locate(inquiry.asked.parsed, wanted, soon.stop)
        return located, soon.stop.reached
    raise DeadlineExceeded("the deadline passed before the files were searched")


def _looked(inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> CheckedPlaces:
    """Every place is opened again, a few at a time: what was seen when the deadline comes is kept."""
    looked = CheckedPlaces()
    for first in range(0, len(places), AT_ONCE):
        try:
            _look(looked, inquiry, places[first : first + AT_ONCE], stop)
        except DeadlineExceeded:
            looked.is_cut = True
            looked.unchecked += len(places) - first
            break
    return looked


def _look(looked: CheckedPlaces, inquiry: Inquiry, places: Sequence[Place], stop: Stop) -> None:
    codebase, asked = inquiry.scope.codebase, inquiry.asked
    seen = words_in_files(codebase, (place.entry for place in places), asked.aims, stop)
    kept, checked = _checked(inquiry, places, seen, stop)
    looked.present.update(*seen.values())
    looked.kept += kept
    looked.failed += len(checked.failed)
    looked.unchecked += len(checked.unchecked)


def _checked(
    inquiry: Inquiry, places: Sequence[Place], seen: Mapping[FileEntry, Collection[str]], stop: Stop
) -> tuple[list[Place], CheckedClaims]:
    """The places whose line holds; where only the line does not, the file alone if it speaks of it at all."""
    says = (*inquiry.asked.names, *inquiry.asked.terms)
    charge = inquiry.sources.ledger.charge
    claims = [Claim(place.entry, place.line, says, DEFINITION_LINES) for place in places]
    lines = check_claims(inquiry.scope.codebase, claims, stop, charge)
    speaking = [Claim(claim.entry) for claim in lines.failed if seen[claim.entry]]
    silent = tuple(claim for claim in lines.failed if not seen[claim.entry])
    whole = check_claims(inquiry.scope.codebase, speaking, stop, charge)
    with_line = {claim.entry for claim in lines.held}
    readable = with_line.union(claim.entry for claim in whole.held)
    kept = [
        place if place.entry in with_line else replace(place, line=0)
        for place in places
        if place.entry in readable
    ]
    return kept, CheckedClaims(lines.held, (*silent, *whole.failed), (*lines.unchecked, *whole.unchecked))


def _confidence(inquiry: Inquiry, located: Located) -> Confidence:
    """Calibrated for questions that stand alone: nobody knows how often a follow-up is right."""
    level = located.confidence.level
    return "med" if level == "high" and inquiry.earlier is not None else level


def _summary(inquiry: Inquiry, kept: Sequence[Place], confidence: Confidence) -> str:
    if not kept:
        return "Something was found, but the limits left no room to check any of it."
    best = inquiry.reference(kept[0].entry, kept[0].line or None)
    return f"{counted(len(kept), 'place')}, the best of them {best} ({confidence} confidence)."


def _findings(inquiry: Inquiry, kept: Sequence[Place]) -> tuple[str, ...]:
    reasons = tuple(_reasons(inquiry, kept))
    first, others = reasons[:EXPLAINED], reasons[EXPLAINED:]
    return (*first, *_groups(inquiry, kept), *others)[:FINDINGS]


def _reasons(inquiry: Inquiry, kept: Sequence[Place]) -> Iterator[str]:
    for place in kept:
        if place.why:
            yield f"{inquiry.reference(place.entry, place.line or None)}: {'; '.join(place.why[:REASONS])}"


def _groups(inquiry: Inquiry, kept: Sequence[Place]) -> Iterator[str]:
    for kind, name in KINDS.items():
        paths = [inquiry.reference(place.entry).path for place in kept if place.kind == kind]
        if paths:
            more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
            yield f"{name} ({len(paths)}): {', '.join(paths[:NAMED])}{more}"


def _notes(inquiry: Inquiry, looked: CheckedPlaces, located: Located, stop: Stop) -> str | None:
    absent = [name for name in inquiry.asked.names if name not in looked.present]
    unchecked = "the deadline came" if looked.is_cut else "a limit was reached"
    return join_notes(
        f"Not found: {', '.join(absent)}." if absent else None,
        _near(inquiry, absent, located, stop) if absent else None,
        f"{counted(looked.failed, 'reference')} dropped: not as claimed any more." if looked.failed else None,
        f"{counted(looked.unchecked, 'place')} left out: {unchecked}." if looked.unchecked else None,
    )


def _near(inquiry: Inquiry, wanted: Sequence[str], located: Located, stop: Stop) -> str | None:
    """Did they mean another name? Not worth a deadline that is near."""
    near = dict.fromkeys(name for one in located.missing for name in one.near)
    if not near:
        with early(stop) as soon:
            near = dict.fromkeys(near_names(inquiry, wanted, soon.stop))
    return f"Near names: {', '.join(near)}." if near else None


def _not_found(inquiry: Inquiry, located: Located, stop: Stop) -> RoleResult:
    """What was searched, and where; and what looks like it."""
    asked = inquiry.asked
    wanted = asked.names or [asked.parsed.spoken.get(aim, aim) for aim in asked.aims[:8]]
    shown = ", ".join(dict.fromkeys(wanted)) or f"`{clip(asked.text, LONGEST_SHOWN)}`"
    where = f"{counted(located.files, 'file')} of {counted(len(inquiry.scope.folders), 'root')}"
    near = _near(inquiry, wanted or asked.text.split(), located, stop)
    were = "was" if located.too_large == 1 else "were"
    large = (
        f"{counted(located.too_large, 'file')} larger than {MAX_SEARCHED_BYTES // 1_000} kB {were} not read."
    )
    return RoleResult(
        summary=join_notes(f"Not found: nothing in {where} fits {shown}.", near) or "",
        confidence="low",
        notes=large if located.too_large else None,
    )
