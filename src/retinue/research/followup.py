"""A question that follows up an earlier report: its files first, and only what it narrows down to.

What it says about where to look ("only the tests", "in the client", "and how is it configured?") decides
among the places that were found; it finds none by itself.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from retinue.codebase import FileKind, Place, parse_question, split_identifier, stem
from retinue.core import Report, ReportId

KNOWN, KIND, AREA = 1.3, 1.6, 2.0
"""How much more a place is worth that the earlier report named, is of a kind, or in an area asked for."""
KIND_ALONE = 20.0
"""The same of a kind, where the question asks for nothing else: such places come first."""
WIDER = 5
"""Times the limit: so many places are looked at, for some of them fall away."""

_KINDS: Mapping[FileKind, str] = {
    "test": r"tests?|specs?|test cases?|unit tests?",
    "docs": r"docs?|documentation|readmes?|guides?",
    "config": r"config\w*|settings?",
    "types": r"types?|interfaces?|schemas?",
    "entry point": r"entry points?|command line",
    "implementation": r"implementations?|sources?|production code",
}
_ONLY = re.compile(r"\b(?:only|just|solely|nothing but|restrict\w*|limit\w* to|narrow\w*)\b", re.IGNORECASE)
_NOT = r"\b(?:not|no|without|except|excluding|ignor\w+|leave out|skip)\s+(?:for\s+|in\s+)?(?:the\s+|any\s+)?"
_AREA = re.compile(
    r"\b(?:in|inside|within|under|below)\s+(?:the\s+)?[`'\"]?([A-Za-z_][\w./-]*[\w/])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The report that is followed up."""

    id: ReportId
    question: str
    files: frozenset[str]
    """Absolute paths of what it named."""

    @classmethod
    def of(cls, report: Report) -> Earlier:
        values = [outcome.value for outcome in report.roles.values() if outcome.value is not None]
        files = {report.absolute_path(reference) for value in values for reference in value.references}
        return cls(report.id, report.question, frozenset(files))


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a follow-up says about where to look."""

    wanted: frozenset[FileKind]
    unwanted: frozenset[FileKind]
    areas: tuple[str, ...]
    only: bool
    """Whether anything else is out of the question."""
    alone: bool
    """Whether it says nothing but this."""

    @classmethod
    def of(cls, question: str) -> Narrowing:
        def said(before: str, words: str) -> bool:
            return re.search(rf"{before}\b(?:{words})\b", question, re.IGNORECASE) is not None

        unwanted = frozenset[FileKind](kind for kind, words in _KINDS.items() if said(_NOT, words))
        named = frozenset[FileKind](kind for kind, words in _KINDS.items() if said("", words))
        areas = [area for area in _AREA.findall(question) if not _names_a_kind(area)]
        only, alone = _ONLY.search(question) is not None, not parse_question(subject(question)).terms
        return cls(named - unwanted, unwanted, tuple(areas), only, alone)


def subject(question: str) -> str:
    """A follow-up without the words that only say where to look: whatever holds "tests" is not its matter."""
    kinds = "|".join(_KINDS.values())
    return re.sub(rf"(?:{_NOT})?\b(?:{kinds})\b|{_ONLY.pattern}", " ", question, flags=re.IGNORECASE).strip()


def narrowed(
    places: Sequence[Place], question: str, earlier: Earlier, limit: int
) -> tuple[list[Place], str | None]:
    """The places that such a question means, best first, and what it was narrowed down to."""
    narrowing = Narrowing.of(question)
    kept = [place for place in places if place.kind not in narrowing.unwanted] or list(places)
    told = [f"without {kind}" for kind in sorted(narrowing.unwanted)]
    if narrowing.only and (of_kind := [place for place in kept if place.kind in narrowing.wanted]):
        kept = of_kind
        told += [f"only {kind}" for kind in sorted(narrowing.wanted)]
    for area in narrowing.areas:
        if inside := [place for place in kept if _lies_in(place, area)]:
            kept = inside
            told.append(f"in {area}")
    weighed = [_weighed(place, narrowing, earlier) for place in kept]
    best = sorted(weighed, key=lambda place: -place.score)[:limit]
    return best, f"Narrowed down: {', '.join(told)}." if told else None


def _weighed(place: Place, narrowing: Narrowing, earlier: Earlier) -> Place:
    score, why = place.score, list(place.why)
    if place.kind in narrowing.wanted:
        score *= KIND_ALONE if narrowing.alone else KIND
    if any(_speaks_of(place, area) for area in narrowing.areas):
        score *= AREA
    if os.path.normpath(place.entry.root.path / place.entry.path) in earlier.files:
        score *= KNOWN
        why.insert(0, "in the earlier report")
    return replace(place, score=score, why=tuple(why))


def _lies_in(place: Place, area: str) -> bool:
    """Whether a folder or the file itself is called that."""
    wanted = area.strip("/").casefold().split("/")
    path = PurePosixPath(place.path.casefold())
    names = [*path.parts, path.stem]
    return any(names[at : at + len(wanted)] == wanted for at in range(len(names)))


def _speaks_of(place: Place, area: str) -> bool:
    words = {stem(part) for name in PurePosixPath(place.path).parts for part in split_identifier(name)}
    return stem(area.casefold()) in words


def _names_a_kind(word: str) -> bool:
    return any(re.fullmatch(words, word, re.IGNORECASE) for words in _KINDS.values())
