"""Judges whether a project has something: which words of the question occur nowhere in its own code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retinue.codebase import Bounds, FileEntry, Place, SearchPattern, file_category
from retinue.core import Stop
from retinue.research.question import code_names, specific_terms
from retinue.research.role_context import RoleContext

MAX_WORDS = 5
WORD_BOUNDS = Bounds(max_files=400, max_matches=400, max_matches_per_file=1, max_line_chars=200)
MAX_NEAREST = 3
NEAR_LINES = 40
"""Words this close together count as being about the same thing."""


@dataclass(frozen=True, slots=True)
class ExistenceVerdict:
    """Whether the project has what a question asks for."""

    is_found: bool
    sentence: str
    nearest: tuple[Place, ...] = ()
    """If it was not found: the places that come nearest."""


def judge_existence(context: RoleContext, places: Sequence[Place], stop: Stop) -> ExistenceVerdict:
    """Look for each word of the question in the project's own code, then for all of them together."""
    question = context.question
    words = list(code_names(question) or specific_terms(question))[:MAX_WORDS]
    shown = {word: question.word_by_term.get(word, word) for word in words}
    files = {word: _own_files_with(context, word, stop) for word in words}
    absent = [word for word in words if not files[word]]
    if absent and (other := _related_words(context, absent, stop)) is not None:
        names = _listed([shown[word] for word in absent])
        verb = "occurs" if len(absent) == 1 else "occur"
        return ExistenceVerdict(
            True,
            f"Not by that name: {names} {verb} nowhere in the project's own code, "
            f"but {_listed(other)} may mean the same.",
        )
    if absent:
        names = _listed([shown[word] for word in absent])
        verb = "occurs" if len(absent) == 1 else "occur"
        present = [word for word in words if word not in absent]
        nearest = _nearest(context, places, present, stop) if present else ()
        return ExistenceVerdict(False, f"No: {names} {verb} nowhere in the project's own code.", nearest)
    names = _listed([shown[word] for word in words])
    together = [place for place in places if _is_together(context, place, words, stop)]
    if together:
        return ExistenceVerdict(
            True, f"Probably: {names} occur together." if len(words) > 1 else f"{names} occurs."
        )
    common = set[FileEntry].intersection(*files.values()) if files else set[FileEntry]()
    where = f"{len(common)} files have all of them" if common else "no file has all of them"
    return ExistenceVerdict(
        False,
        f"Probably not: no definition holds {names} together; {where}.",
        _nearest(context, places, words, stop),
    )


def _related_words(context: RoleContext, absent: Sequence[str], stop: Stop) -> list[str] | None:
    """Return words of the code that may mean those that are absent, one for each; None if one has none."""
    found: list[str] = []
    for word in absent:
        related = [term for term, one in context.question.related_to.items() if one.source == word]
        held = next((term for term in related if _own_files_with(context, term, stop)), None)
        if held is None:
            return None
        found.append(held)
    return found


def _listed(words: Sequence[str]) -> str:
    return " and ".join(f"`{word}`" for word in words)


def _own_files_with(context: RoleContext, word: str, stop: Stop) -> set[FileEntry]:
    """Return files of the project's own code that contain a word, also inside longer words."""
    pattern = SearchPattern(word, fixed=True, ignore_case=True)
    found = context.scope.codebase.grep(pattern, stop, bounds=WORD_BOUNDS).matches
    stop.check()
    entries = {match.entry for match in found}
    return {entry for entry in entries if file_category(entry.path) in ("own", "package")}


def _is_together(context: RoleContext, place: Place, words: Sequence[str], stop: Stop) -> bool:
    """Return whether the definition at a place has all the words close together."""
    if file_category(place.path) not in ("own", "package"):
        return False
    source = context.sources.open(place.entry, stop)
    if source is None or not place.line:
        return False
    within = source.definition_around(place.line)
    first = within.top or within.line if within else place.line
    last = min(within.end if within else len(source.lines), first + NEAR_LINES)
    text = "\n".join(source.lines[first - 1 : last]).casefold().replace("_", "")
    return all(word.casefold().replace("_", "") in text for word in words)


def _nearest(
    context: RoleContext, places: Sequence[Place], words: Sequence[str], stop: Stop
) -> tuple[Place, ...]:
    """Return the places whose definition is named with most of the words, in their order."""
    scored: list[tuple[int, Place]] = []
    for place in places:
        if file_category(place.path) not in ("own", "package") or not place.line:
            continue
        quoted = context.sources.quote_line(place.entry, place.line, stop)
        name = (quoted.within.qualified_name if quoted and quoted.within else place.path).casefold()
        scored.append((sum(word.casefold() in name for word in words), place))
    best = sorted(scored, key=lambda one: -one[0])[:MAX_NEAREST]
    return tuple(place for _, place in best)
