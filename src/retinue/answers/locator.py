"""The locator role: finds the places that answer a question, with their symbols and lines of code.

Asks back if the question names nothing. If a name does not exist, the locator suggests similar names that do.
"""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from retinue.answers.clarification import ask_for_subject
from retinue.answers.error_origins import find_raising_lines
from retinue.answers.existence import find_similar_names, tell_absent_names
from retinue.answers.question_reader import Narrowing
from retinue.answers.role_context import RoleContext, soft_deadline
from retinue.answers.tracing import DEFINITION_KEYWORD
from retinue.codebase import (
    MAX_SEARCHED_BYTES,
    Bounds,
    Claim,
    FileEntry,
    Located,
    Place,
    SearchPattern,
    best_definitions,
    check_claims,
    file_category,
    file_kind,
    has_searchable_text,
    words_in_files,
)
from retinue.core import (
    UNMETERED,
    Clarification,
    Confidence,
    DeadlineExceeded,
    LimitExceeded,
    Reference,
    Report,
    RoleResult,
    Spending,
    Stop,
    clip,
    counted,
    join_notes,
)

MAX_BEST: dict[Confidence, int] = {"high": 1, "med": 2, "low": 3}
"""How many definitions the summary of a question for a place names."""
KIND_NOUNS = {
    "implementation": ("implementation", "implementation"),
    "entry point": ("entry point", "entry points"),
    "types": ("types", "types"),
    "config": ("configuration", "configuration"),
    "test": ("test", "tests"),
    "docs": ("docs", "docs"),
}
"""What files of each kind are called, one and several."""
QUOTED_PLACES = 12
"""How many places are shown with their symbol and their line of code."""
MAX_NAMES, MAX_LEADS = 2, 3
"""How many names of a question are looked up, and how many of their definitions come first."""
DEFINED = "defined here"
"""The reason for a place that defines a name of the question."""
NAMED = "named in the question"
"""The reason for a file without text that the question names."""
NAME_BOUNDS = Bounds(max_files=30, max_matches=90, max_matches_per_file=6, max_line_chars=300)
NAMED_FILES_BOUNDS = Bounds(max_entries=5)
FOLLOW_UP_FACTOR = 5
"""A follow-up ranks this many times more places than it returns, because narrowing drops some of them."""
CHECKED_AT_ONCE = 5
"""How many places are checked before the deadline is checked again."""
MAX_SHOWN_QUESTION_CHARS = 60
DEFINITION_LINES = 100
"""How far below the name of a definition the words of the question may be."""
KNOWN_FILE_FACTOR, WANTED_KIND_FACTOR = 1.3, 1.6
"""Factors for the score of a place in a file of the earlier report, and of one of a wanted kind."""
EARLIER = "in the earlier report"
"""The reason for a place whose file is in the earlier report."""
_FEW, _FILES_SHARE = 10, 0.6
"""The first references may each be in another file; of a longer list, only this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatorResult(RoleResult):
    """The result of the locator, with the places from which the other roles start."""

    places: tuple[Place, ...] = ()
    """Best first. A place without a line has line 0."""
    clarification: Clarification | None = None
    """What to ask back, if the question cannot be answered as it is."""


@dataclass(slots=True)
class CheckedPlaces:
    """The places that still hold, and what happened to the others."""

    kept: list[Place] = field(default_factory=list[Place])
    present_words: set[str] = field(default_factory=set[str])
    """The supporting words that occur in any of the places."""
    gone: int = 0
    """Places whose file cannot be read any more."""
    unrelated: int = 0
    """Places without any supporting word: a common word of the question, or history, led to them."""
    unchecked: int = 0
    is_cut: bool = False
    """Whether the deadline passed before all places were checked."""


def locate(context: RoleContext, limit: int, stop: Stop, spending: Spending = UNMETERED) -> LocatorResult:
    """Find at most `limit` places that answer the question, and check each of them (P3)."""
    context = context.with_spending(spending)
    question = context.question
    if context.earlier is None and question.intent != "changes" and question.names_nothing:
        return ask_back(context, ask_for_subject(context, stop))
    files = _files_for(limit)
    located, is_cut = _rank(context, files, stop)
    places, narrowing = _tests_last(context, located.places[:files]), None
    if context.earlier is not None and question.narrowing is not None:
        places, narrowing = _narrow_places(located.places, question.narrowing, context.earlier, files)
    leads = _lead_places(context, places, stop)
    first = {lead.entry for lead in leads}
    places = [*leads, *(place for place in places if place.entry not in first)][: max(files, len(leads))]
    checked = _check_places(context, places, stop)
    if not checked.present_words or not (checked.kept or checked.unchecked):
        if is_cut or checked.is_cut:
            raise DeadlineExceeded("the deadline passed before all files were searched")
        return _with_absent_names(context, _not_found(context, located, stop), stop)
    confidence = _confidence(context, located) if checked.kept and not is_cut else "low"
    notes = join_notes(
        narrowing,
        "The deadline came before everything was searched: there may be more." if is_cut else None,
        _check_notes(context, checked, located, stop),
    )
    led_to = [context.reference(one.entry, one.line or None) for one in checked.kept if one.entry in first]
    cited = _cited_lines(context, checked.kept, limit, stop)
    references = tuple(dict.fromkeys((*led_to, *cited)))[:limit]
    paths = {reference.path for reference in references}
    told = [place for place in checked.kept if context.reference(place.entry, None).path in paths]
    result = LocatorResult(
        summary=f"{_defined_sentence(context, checked.kept) or _best_sentence(context, told, confidence)}"
        f"{_places_sentence(told, confidence)}",
        references=references,
        key_findings=_key_findings(context, checked.kept, references, stop),
        confidence=confidence,
        notes=notes,
        places=tuple(checked.kept),
    )
    return _with_absent_names(context, result, stop)


def ask_back(context: RoleContext, clarification: Clarification) -> LocatorResult:
    """Return a result without places that says what the caller should add."""
    return LocatorResult(
        summary="Not found, because the question is not clear enough.",
        clarification=clarification,
    )


def _lead_places(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[Place]:
    """Return the places that the intent leads to directly, and the files that the question names."""
    found: list[tuple[FileEntry, int, str]] = []
    with soft_deadline(stop) as soft:
        if context.question.intent == "error":
            found = [(one.entry, one.line, one.reason) for one in find_raising_lines(context, soft.stop)]
        else:
            found = [(*place, DEFINED) for place in _named_definitions(context, soft.stop)]
        found += [(entry, 0, NAMED) for entry in _named_files(context, soft.stop)]
    ranked = {place.entry: place for place in places}
    leads: dict[FileEntry, Place] = {}
    for entry, line, why in found:
        known = ranked.get(entry) or Place(entry, line, 0.0, (), file_kind(entry.path))
        leads.setdefault(entry, replace(known, line=line, why=(why, *known.why)))
    return list(leads.values())


def _named_definitions(context: RoleContext, stop: Stop) -> list[tuple[FileEntry, int]]:
    """Return where the names of the question are defined, in the project's own code and with a body first."""
    found: dict[tuple[FileEntry, int], tuple[bool, bool, bool]] = {}
    for name in context.question.definition_names[:MAX_NAMES]:
        pattern = (
            rf"\b{DEFINITION_KEYWORD}\s+(?:\([^)]*\)\s*)?{re.escape(name)}\b"
            rf"|^[\w*&<>,\[\]:~ \t]*\b{re.escape(name)}\s*[(:=]"
        )
        matches = context.scope.codebase.grep(SearchPattern(pattern), stop, bounds=NAME_BOUNDS).matches
        stop.check()
        for entry in dict.fromkeys(match.entry for match in matches):
            source = context.sources.peek(entry, stop)
            for one in source.definitions if source is not None else ():
                if one.name == name:
                    is_own = file_category(entry.path) in ("own", "package")
                    found[entry, one.line] = (not is_own, one.length < 1, one.is_local)
    return sorted(found, key=lambda place: found[place])[:MAX_LEADS]


def _named_files(context: RoleContext, stop: Stop) -> Sequence[FileEntry]:
    """Return the files without text, such as pictures, that the question names. Ranking finds the others."""
    names = [path for path in context.question.parsed.paths if not has_searchable_text(path)]
    globs = [name if "/" not in name else f"**/{name}" for name in names if not set(name) & set("*?[]{}!")]
    return context.scope.codebase.glob(globs, stop, bounds=NAMED_FILES_BOUNDS).entries if globs else ()


def _with_absent_names(context: RoleContext, result: LocatorResult, stop: Stop) -> LocatorResult:
    """Say which names the code lacks, if the question asks whether something exists."""
    if context.question.intent != "exists":
        return result
    with soft_deadline(stop) as soft:
        lacks_all, sentence = tell_absent_names(context, soft.stop)
        if lacks_all:
            nearest = "The nearest places follow." if result.references else ""
            return replace(result, summary=f"{sentence} {nearest}".strip(), confidence="low", places=())
        return replace(result, summary=f"{sentence} {result.summary}".strip())
    return result


def _rank(context: RoleContext, limit: int, stop: Stop) -> tuple[Located, bool]:
    """Search and rank places, within most of the remaining time. Also return whether that was too short."""
    wanted = limit * (FOLLOW_UP_FACTOR if context.earlier is not None else 1)
    with soft_deadline(stop) as soft:
        located = context.scope.locator.locate(context.question.parsed, wanted, soft.stop)
        return located, soft.stop.reached
    raise DeadlineExceeded("the deadline passed before the files were searched")


def _tests_last(context: RoleContext, places: Sequence[Place]) -> list[Place]:
    """Return the places with tests last, unless the question is about them: they repeat what they test."""
    if context.question.is_about_tests:
        return list(places)
    return sorted(places, key=lambda place: place.kind == "test")


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
    """Check some places and add the result to `checked`.

    A place whose line is wrong keeps its file, if the file or its path is relevant, and loses its line.
    """
    codebase, charge = context.scope.codebase, context.sources.charge
    question = context.question
    required = question.supporting_words
    words = (*question.names, *question.terms, *question.parsed.related, *required)
    names = frozenset(question.names if question.intent == "callers" else ())
    seen = words_in_files(codebase, (place.entry for place in places), words, stop)
    checked.present_words.update(word for found in seen.values() for word in found if word in required)
    claims = {
        place: Claim(place.entry, place.line, words, DEFINITION_LINES) for place in places if place.line
    }
    lines = check_claims(codebase, claims.values(), stop, charge)
    held, unchecked = set(lines.held), set(lines.unchecked)
    with codebase.opener(stop) as opener:
        for place in places:
            if (claim := claims.get(place)) in held:
                if names.isdisjoint(seen[place.entry]) and names:
                    continue  # it shares only a part of the name whose callers are asked for
                checked.kept.append(place)
            elif claim in unchecked:
                checked.unchecked += 1
            elif not opener.can_read(place.entry):
                checked.gone += 1
            elif seen[place.entry].isdisjoint(words):
                checked.unrelated += 1
            else:
                _keep_file(checked, place, charge)


def _keep_file(checked: CheckedPlaces, place: Place, charge: Callable[[FileEntry, int], None]) -> None:
    """Keep a place without its line, if the limits allow another file."""
    try:
        charge(place.entry, 0)
    except LimitExceeded:
        checked.unchecked += 1
    else:
        checked.kept.append(replace(place, line=0))


def _narrow_places(
    places: Sequence[Place], narrowing: Narrowing, earlier: Report, limit: int
) -> tuple[list[Place], str | None]:
    """Return the places that a follow-up means, best first, and a note on how they were narrowed down.

    A narrowing that would leave no place is ignored.
    """
    kept = [place for place in places if place.kind not in narrowing.unwanted] or list(places)
    notes = [f"without {kind}" for kind in sorted(narrowing.unwanted)]
    if narrowing.only and (of_kind := [place for place in kept if place.kind in narrowing.wanted]):
        kept = of_kind
        notes += [f"only {kind}" for kind in sorted(narrowing.wanted)]
    for area in narrowing.areas:
        if inside := [place for place in kept if _is_inside(place, area)]:
            kept = inside
            notes.append(f"in {area}")
    values = [outcome.value for outcome in earlier.roles.values() if outcome.value is not None]
    known = {earlier.absolute_path(reference) for value in values for reference in value.references}
    scored = [_rescore(place, narrowing, known) for place in kept]
    best = sorted(scored, key=lambda place: -place.score)[:limit]
    return best, f"Narrowed down: {', '.join(notes)}." if notes else None


def _rescore(place: Place, narrowing: Narrowing, known: set[str]) -> Place:
    score = place.score * (WANTED_KIND_FACTOR if place.kind in narrowing.wanted else 1.0)
    if os.path.normpath(place.entry.root.path / place.entry.path) not in known:
        return replace(place, score=score)
    return replace(place, score=score * KNOWN_FILE_FACTOR, why=(EARLIER, *place.why))


def _is_inside(place: Place, area: str) -> bool:
    """Return whether the file or one of its folders has this name."""
    wanted = area.strip("/").casefold().split("/")
    path = PurePosixPath(place.path.casefold())
    names = [*path.parts, path.stem]
    return any(names[at : at + len(wanted)] == wanted for at in range(len(names)))


def _files_for(limit: int) -> int:
    """Return how many files to look at if `limit` lines may be cited."""
    return max(min(limit, _FEW), int(limit * _FILES_SHARE))


def _cited_lines(
    context: RoleContext, places: Sequence[Place], limit: int, stop: Stop
) -> tuple[Reference, ...]:
    """Return at most `limit` references to the definitions of some places and to lines inside them.

    The places have been checked: the first line of each is cited as it is, and only the others are opened
    again. A place without a line is cited as a file.
    """
    firsts = {(place.entry, place.line or None) for place in places}
    claims: dict[Claim, None] = {}
    for place, one in best_definitions(places):
        if place.line or one is not place.definitions[0]:
            claims.setdefault(Claim(place.entry, one.line, (one.symbol,) if one.symbol else ()))
            claims.setdefault(Claim(place.entry, one.focus))
    further = [claim for claim in claims if (claim.entry, claim.line) not in firsts][:limit]
    held: set[Claim] = set()
    with suppress(DeadlineExceeded):  # the first lines are checked already
        held.update(check_claims(context.scope.codebase, further, stop, context.sources.charge).held)
    cited = [
        (claim.entry, claim.line) for claim in claims if claim in held or (claim.entry, claim.line) in firsts
    ]
    cited += [(place.entry, place.line or None) for place in places]
    return tuple(dict.fromkeys(context.reference(*one) for one in cited))[:limit]


def _confidence(context: RoleContext, located: Located) -> Confidence:
    """Return the confidence of the search, lowered for a follow-up: it is calibrated for first questions."""
    level = located.confidence
    return "med" if level == "high" and context.earlier is not None else level


def _defined_sentence(context: RoleContext, places: Sequence[Place]) -> str:
    """Say in which file the name of the question is defined, or where the file is, if it was looked up."""
    if files := [place for place in places if place.why[:1] == (NAMED,)]:
        path = context.reference(files[0].entry).path
        return f"`{path.rpartition('/')[2]}` is {path}. "
    defined = [place for place in places if place.why[:1] == (DEFINED,)]
    names = context.question.definition_names[:MAX_NAMES]
    if len(names) != 1 or not defined:
        return ""
    return f"`{names[0]}` is defined in {context.reference(defined[0].entry).path}. "


def _best_sentence(context: RoleContext, places: Sequence[Place], confidence: Confidence) -> str:
    """Name the definitions that a question for a place is about, if it does not name them itself."""
    if context.question.intent != "where" or context.question.names:
        return ""
    own = [place for place in places if file_category(place.path) not in ("test", "docs", "config")]
    found = dict.fromkeys(f"`{one.symbol}`" for _, one in best_definitions(own) if one.symbol)
    names = list(found)[: MAX_BEST[confidence]]
    sure = {"high": "In", "med": "Probably in", "low": "Perhaps in"}[confidence]
    return f"{sure} {' or '.join(names)}. " if names else ""


def _places_sentence(places: Sequence[Place], confidence: Confidence) -> str:
    if not places:
        return "Something was found, but the limits left no room to check any of it."
    kinds = Counter(place.kind for place in places)
    by_kind = ", ".join(f"{number} {KIND_NOUNS[kind][number > 1]}" for kind, number in kinds.most_common())
    return f"{counted(len(places), 'file')} ({by_kind}), {confidence} confidence."


def _key_findings(
    context: RoleContext, places: Sequence[Place], references: Sequence[Reference], stop: Stop
) -> tuple[str, ...]:
    """Show the symbol and the line of code of each reference, as far as the time allows."""
    cited = {context.reference(place.entry, place.line or None): (place, place.line) for place in places}
    for place, one in best_definitions(places):
        for line in (one.line, one.focus):
            cited.setdefault(context.reference(place.entry, line), (place, line))
    shown: list[str] = []
    for reference in references[:QUOTED_PLACES]:
        try:
            shown.append(_show_place(context, reference, *cited[reference], stop))
        except DeadlineExceeded:
            break
    return tuple(shown)


def _show_place(context: RoleContext, reference: Reference, place: Place, line: int, stop: Stop) -> str:
    known = [EARLIER] if EARLIER in place.why else []
    labels = [*([place.kind] if place.kind != "implementation" else []), *known]
    kind = f" ({', '.join(labels)})" if labels else ""
    quoted = context.sources.quote_line(place.entry, line, stop) if line else None
    if quoted is None or not quoted.text:
        return f"{reference}{kind}" + (f": {place.why[0]}" if place.why else "")
    symbol = quoted.within.qualified_name if quoted.within else ""
    named = f" `{symbol}`" if symbol and symbol not in quoted.text else ""
    return f"{reference}{named}{kind}: `{quoted.text}`"


def _check_notes(context: RoleContext, checked: CheckedPlaces, located: Located, stop: Stop) -> str | None:
    """Return notes on names that were not found and places that were dropped."""
    required = context.question.required_words
    without = [context.question.word(term) for term in required[:2]]
    absent = [name for name in context.question.names if name not in checked.present_words]
    reason = "the deadline came" if checked.is_cut else "a limit was reached"
    return join_notes(
        _hints_note(located),
        _absent_note(context, located),
        f"Not found: {', '.join(absent)}." if absent else None,
        _similar_names_note(context, absent, stop) if absent else None,
        f"{counted(checked.unrelated, 'place')} left out: without {' and '.join(without)}."
        if checked.unrelated and len(required) <= 2
        else None,
        f"{counted(checked.gone, 'place')} left out: the file is gone or unreadable."
        if checked.gone
        else None,
        f"{counted(checked.unchecked, 'place')} left out: {reason}." if checked.unchecked else None,
    )


def _hints_note(located: Located) -> str | None:
    """Say which of the caller's hints the code has, and which it has not."""
    if not located.present_hints and not located.absent_hints:
        return None
    present, absent = (
        [f"`{name}`" for name in names] for names in (located.present_hints, located.absent_hints)
    )
    if not present:
        return f"The code does not have {' or '.join(absent)}."
    without = f", but not {' or '.join(absent)}" if absent else ""
    return f"The code has {' and '.join(present)}{without}."


def _absent_note(context: RoleContext, located: Located) -> str | None:
    """Name the words that the code lacks, so that a caller who knows the code's words can say them."""
    is_code = context.before is None  # historical documents are no code
    is_sure = located.confidence == "high" or context.earlier is not None
    is_guessed = is_code and context.question.is_answered_by_guess and not is_sure
    names = context.question.parsed.hints or context.question.parsed.paths or context.question.names
    if not is_guessed or not located.absent or located.too_large or names:
        return None
    return f"Not in the code: {', '.join(located.absent)}. Guess with `also` what it is called there."


def _not_found(context: RoleContext, located: Located, stop: Stop) -> LocatorResult:
    """Return a result that says what was searched, where, and which similar names exist."""
    question, text = context.question, context.request.question
    wanted = question.names or [question.word(term) for term in question.required_words[:8]]
    shown = ", ".join(dict.fromkeys(wanted)) or f"`{clip(text, MAX_SHOWN_QUESTION_CHARS)}`"
    where = f"{counted(located.files, 'file')} of {counted(len(context.scope.folders), 'root')}"
    similar = _similar_names_note(context, wanted or text.split(), stop)
    were = "was" if located.too_large == 1 else "were"
    large = (
        f"{counted(located.too_large, 'file')} larger than {MAX_SEARCHED_BYTES // 1_000} kB {were} not read."
    )
    nothing = f"Not found: nothing in {where} fits {shown}."
    if not located.files:
        have = "has" if len(context.scope.folders) == 1 else "have"
        nothing = (
            f"Not found: {counted(len(context.scope.folders), 'root')} {have} no file that can be searched."
        )
    return LocatorResult(
        summary=join_notes(nothing, similar) or "",
        confidence="low",
        notes=large if located.too_large else None,
    )


def _similar_names_note(context: RoleContext, wanted: Sequence[str], stop: Stop) -> str | None:
    names: tuple[str, ...] = ()
    with soft_deadline(stop) as soft:
        names = find_similar_names(context, wanted, soft.stop)
    return f"Similar names: {', '.join(names)}." if names else None
