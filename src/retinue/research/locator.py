"""The locator role: finds the places that answer a question, ranked and grouped by kind.

If a name does not exist, the locator suggests similar names that do.
"""

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
from retinue.core import (
    UNMETERED,
    Confidence,
    DeadlineExceeded,
    Reference,
    RoleResult,
    Spending,
    Stop,
    clip,
    counted,
    join_notes,
)
from retinue.research.cited_lines import cited_lines, files_for
from retinue.research.question import (
    FOLLOW_UP_FACTOR,
    code_names,
    heaviest_terms,
    narrow_places,
    required_words,
)
from retinue.research.report_builder import MAX_FINDINGS
from retinue.research.role_context import RoleContext, soft_deadline
from retinue.research.tracing import DEFINITION_KEYWORD

KIND_TITLES = {
    "implementation": "implementation",
    "entry point": "entry points",
    "types": "types",
    "config": "configuration",
    "test": "tests",
    "docs": "docs",
}
EXPLAINED_FIRST, MAX_REASONS = 3, 2
"""How many places are explained before the groups, and how many reasons each gets. Other places are explained
after the groups if there is room."""
FILES_PER_GROUP = 3
"""How many files each group lists."""
CHECKED_AT_ONCE = 5
"""How many places are checked before the deadline is checked again."""
MAX_SHOWN_QUESTION_CHARS = 60
DEFINITION_LINES = 100
"""How far below the name of a definition the words of the question may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatorResult(RoleResult):
    """The result of the locator, with the places from which the other roles start."""

    places: tuple[Place, ...] = ()
    """Best first. A place without a line has line 0."""


@dataclass(slots=True)
class CheckedPlaces:
    """The places that still hold, and what happened to the others."""

    kept: list[Place] = field(default_factory=list[Place])
    present_words: set[str] = field(default_factory=set[str])
    """The required words that occur in any of the places."""
    failed: int = 0
    unchecked: int = 0
    is_cut: bool = False
    """Whether the deadline passed before all places were checked."""


def locate(context: RoleContext, limit: int, stop: Stop, spending: Spending = UNMETERED) -> LocatorResult:
    """Find at most `limit` places that answer the question, and check each of them (P3)."""
    context = context.with_spending(spending)
    files = files_for(limit)
    located, is_cut = _rank(context, files, stop)
    places, narrowing = located.places[:files], None
    if context.earlier is not None:
        places, narrowing = narrow_places(located.places, context.request.question, context.earlier, files)
    checked = _check_places(context, places, stop)
    if not checked.present_words or not (checked.kept or checked.unchecked):
        if is_cut or checked.is_cut:
            raise DeadlineExceeded("the deadline passed before all files were searched")
        return _not_found(context, located, stop)
    confidence = _confidence(context, located) if checked.kept and not is_cut else "low"
    notes = join_notes(
        narrowing,
        "The deadline came before everything was searched: there may be more." if is_cut else None,
        _check_notes(context, checked, located, stop),
    )
    references = cited_lines(context, checked.kept, limit, stop)
    return locator_result(context, checked.kept, references, confidence, notes)


def locator_result(
    context: RoleContext,
    places: Sequence[Place],
    references: tuple[Reference, ...],
    confidence: Confidence,
    notes: str | None,
) -> LocatorResult:
    """Return a result with these places and references in this order."""
    return LocatorResult(
        summary=_summary(context, places, confidence),
        references=references,
        key_findings=_key_findings(context, places),
        confidence=confidence,
        notes=notes,
        places=tuple(places),
    )


def _rank(context: RoleContext, limit: int, stop: Stop) -> tuple[Located, bool]:
    """Search and rank places, within most of the remaining time. Also return whether that was too short."""
    wanted = limit * FOLLOW_UP_FACTOR if context.earlier is not None else limit
    with soft_deadline(stop) as soft:
        located = context.scope.locator.locate(context.question, wanted, soft.stop)
        return located, soft.stop.reached
    raise DeadlineExceeded("the deadline passed before the files were searched")


def _check_places(context: RoleContext, places: Sequence[Place], stop: Stop) -> CheckedPlaces:
    """Open the file of every place again, a few at a time. At the deadline, keep what was checked."""
    checked = CheckedPlaces()
    for first in range(0, len(places), CHECKED_AT_ONCE):
        try:
            _check_batch(checked, context, places[first : first + CHECKED_AT_ONCE], stop)
        except DeadlineExceeded:
            checked.is_cut = True
            checked.unchecked += len(places) - first
            break
    return checked


def _check_batch(checked: CheckedPlaces, context: RoleContext, places: Sequence[Place], stop: Stop) -> None:
    """Check some places and add the result to `checked`."""
    words = required_words(context.question)
    seen = words_in_files(context.scope.codebase, (place.entry for place in places), words, stop)
    kept, claims = _keep_valid(context, places, seen, stop)
    checked.present_words.update(*seen.values())
    checked.kept += kept
    checked.failed += len(claims.failed)
    checked.unchecked += len(claims.unchecked)


def _keep_valid(
    context: RoleContext, places: Sequence[Place], seen: Mapping[FileEntry, Collection[str]], stop: Stop
) -> tuple[list[Place], CheckedClaims]:
    """Return the places that still hold, and the checked claims.

    A place whose line is wrong keeps its file, if the file is relevant, and loses its line.
    """
    words = (*code_names(context.question), *heaviest_terms(context.question))
    codebase, charge = context.scope.codebase, context.sources.charge
    claims = [Claim(place.entry, place.line, words, DEFINITION_LINES) for place in places]
    lines = check_claims(codebase, claims, stop, charge)
    relevant = [Claim(claim.entry) for claim in lines.failed if seen[claim.entry]]
    irrelevant = tuple(claim for claim in lines.failed if not seen[claim.entry])
    files = check_claims(codebase, relevant, stop, charge)
    with_line = {claim.entry for claim in lines.held}
    readable = with_line.union(claim.entry for claim in files.held)
    kept = [
        place if place.entry in with_line else replace(place, line=0)
        for place in places
        if place.entry in readable
    ]
    return kept, CheckedClaims(lines.held, (*irrelevant, *files.failed), (*lines.unchecked, *files.unchecked))


def _confidence(context: RoleContext, located: Located) -> Confidence:
    """Return the confidence of the search, lowered for a follow-up: it is calibrated for first questions."""
    level = located.confidence.level
    return "med" if level == "high" and context.earlier is not None else level


def _summary(context: RoleContext, places: Sequence[Place], confidence: Confidence) -> str:
    if not places:
        return "Something was found, but the limits left no room to check any of it."
    best = context.reference(places[0].entry, places[0].line or None)
    return f"{counted(len(places), 'place')}, the best of them {best} ({confidence} confidence)."


def _key_findings(context: RoleContext, places: Sequence[Place]) -> tuple[str, ...]:
    reasons = tuple(_reasons(context, places))
    first, others = reasons[:EXPLAINED_FIRST], reasons[EXPLAINED_FIRST:]
    return (*first, *_groups(context, places), *others)[:MAX_FINDINGS]


def _reasons(context: RoleContext, places: Sequence[Place]) -> Iterator[str]:
    for place in places:
        if place.why:
            reference = context.reference(place.entry, place.line or None)
            yield f"{reference}: {'; '.join(place.why[:MAX_REASONS])}"


def _groups(context: RoleContext, places: Sequence[Place]) -> Iterator[str]:
    for kind, title in KIND_TITLES.items():
        paths = [context.reference(place.entry).path for place in places if place.kind == kind]
        if paths:
            more = f" and {len(paths) - FILES_PER_GROUP} more" if len(paths) > FILES_PER_GROUP else ""
            yield f"{title} ({len(paths)}): {', '.join(paths[:FILES_PER_GROUP])}{more}"


def _check_notes(context: RoleContext, checked: CheckedPlaces, located: Located, stop: Stop) -> str | None:
    """Return notes on names that were not found and places that were dropped."""
    absent = [name for name in code_names(context.question) if name not in checked.present_words]
    reason = "the deadline came" if checked.is_cut else "a limit was reached"
    return join_notes(
        f"Not found: {', '.join(absent)}." if absent else None,
        _similar_names_note(context, absent, located, stop) if absent else None,
        f"{counted(checked.failed, 'reference')} dropped: not as claimed any more."
        if checked.failed
        else None,
        f"{counted(checked.unchecked, 'place')} left out: {reason}." if checked.unchecked else None,
    )


def _not_found(context: RoleContext, located: Located, stop: Stop) -> LocatorResult:
    """Return a result that says what was searched, where, and which similar names exist."""
    question, text = context.question, context.request.question
    wanted = code_names(question) or [
        question.word_by_term.get(word, word) for word in required_words(question)[:8]
    ]
    shown = ", ".join(dict.fromkeys(wanted)) or f"`{clip(text, MAX_SHOWN_QUESTION_CHARS)}`"
    where = f"{counted(located.files, 'file')} of {counted(len(context.scope.folders), 'root')}"
    similar = _similar_names_note(context, wanted or text.split(), located, stop)
    were = "was" if located.too_large == 1 else "were"
    large = (
        f"{counted(located.too_large, 'file')} larger than {MAX_SEARCHED_BYTES // 1_000} kB {were} not read."
    )
    return LocatorResult(
        summary=join_notes(f"Not found: nothing in {where} fits {shown}.", similar) or "",
        confidence="low",
        notes=large if located.too_large else None,
    )


MAX_SIMILAR_NAMES = 3
MIN_SIMILARITY = 0.75
"""The smallest similarity of two names, from 0 to 1."""
MIN_NAME_CHARS = 4
"""Shorter names resemble too many others."""
MAX_WANTED_NAMES, MAX_PIECES = 3, 24
SIMILAR_NAMES_BOUNDS = Bounds(max_files=500, max_matches=2_000, max_matches_per_file=50, max_line_chars=300)


def _similar_names_note(
    context: RoleContext, wanted: Sequence[str], located: Located, stop: Stop
) -> str | None:
    names = dict.fromkeys(name for missing in located.missing for name in missing.similar_names)
    if not names:
        with soft_deadline(stop) as soft:
            names = dict.fromkeys(find_similar_names(context, wanted, soft.stop))
    return f"Similar names: {', '.join(names)}." if names else None


def find_similar_names(context: RoleContext, wanted: Iterable[str], stop: Stop) -> tuple[str, ...]:
    """Return defined names that resemble the wanted ones, most similar first.

    Searches for definitions that share three letters in a row with a wanted name, then compares them.
    """
    words = [flat for word in wanted if len(flat := _flatten(word)) >= MIN_NAME_CHARS][:MAX_WANTED_NAMES]
    pieces = sorted({word[at : at + 3] for word in words for at in range(len(word) - 2)})[:MAX_PIECES]
    if not pieces:
        return ()
    name = rf"\w*(?:{'|'.join('_?'.join(piece) for piece in pieces)})\w*"
    pattern = rf"\b{DEFINITION_KEYWORD}\s+(?:\([^)]*\)\s*)?{name}|^\s*{name}\s*(?::[^=]*)?="
    found = context.scope.codebase.grep(
        SearchPattern(pattern, ignore_case=True), stop, bounds=SIMILAR_NAMES_BOUNDS
    ).matches
    names = {name for match in found for name in re.findall(r"[^\W\d]\w*", match.text)}
    scores = {name: max(_similarity(_flatten(name), word) for word in words) for name in names}
    similar = sorted(
        (name for name in scores if scores[name] >= MIN_SIMILARITY), key=lambda name: (-scores[name], name)
    )
    once = {_flatten(name): name for name in reversed(similar)}  # keep one of `Store` and `store`
    return tuple(name for name in similar if name in once.values())[:MAX_SIMILAR_NAMES]


def _flatten(name: str) -> str:
    """Return a name in lower case without underscores and punctuation."""
    return re.sub(r"[\W_]", "", name).casefold()


def _similarity(one: str, other: str) -> float:
    if abs(len(one) - len(other)) > max(len(one), len(other)) * (1 - MIN_SIMILARITY):
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
