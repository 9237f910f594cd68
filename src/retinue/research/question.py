"""What was asked: the question checked and cleaned, what it is after, and what sort of answer it wants."""

from __future__ import annotations

import os.path
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from retinue.codebase import FileKind, ParsedQuestion, Place, parse_question, split_identifier, stem
from retinue.core import InvalidInput, Report, ReportId

# MERGED followup: A question that follows up an earlier report: its files first, and only what it narrows down to.
#
# What it says about where to look ("only the tests", "in the client", "and how is it configured?") decides
# among the places that were found; it finds none by itself.

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
        files = {report.whole_path(reference) for value in values for reference in value.references}
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


LONGEST = 100_000
"""Characters: a bug report with its log fits, a pasted file does not."""
MOST_TERMS = 40
"""Of a long report, the weightiest say what it is about."""

_EXAMPLES = re.compile(
    r"\b(?:examples?|patterns?|similar|elsewhere|precedents?|samples?|conventions?|idioms?"
    r"|how (?:do|are) (?:we|others?|other \w+)|existing (?:implementations?|uses?|usages?))\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"_|\d|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What only a name in code has."""
_GENERIC_WORDS = """
implement implementation define definition declare handle locate live call called function method class module
package logic part support contain place exist example pattern similar usage show
"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
"""Words that ask about something without saying about what."""


@dataclass(frozen=True, slots=True)
class ResearchQuestion:
    text: str
    """As it was asked, without control characters."""
    parsed: ParsedQuestion
    """Taken apart; with the question it follows up, if there is one."""

    @property
    def wants_examples(self) -> bool:
        return _EXAMPLES.search(self.text) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names that can only be those of code: if none of them exists, nothing answers the question."""
        text = self.parsed.text
        return tuple(
            name
            for name in self.parsed.names
            if _IDENTIFIER.search(name) or f"`{name}`" in text or f"{name}(" in text
        )[:MOST_TERMS]

    @property
    def terms(self) -> dict[str, float]:
        """The weightiest stems, in the order of the question."""
        weights = self.parsed.terms
        heaviest = set(sorted(weights, key=lambda term: -weights[term])[:MOST_TERMS])
        return {term: weight for term, weight in weights.items() if term in heaviest}

    @property
    def aims(self) -> tuple[str, ...]:
        """What an answer must contain at least one of."""
        terms = tuple(term for term in self.terms if term not in _GENERIC)
        return self.names or terms or tuple(self.terms)

    @property
    def keywords(self) -> tuple[str, ...]:
        """What is searched for, the weightiest first."""
        names, spoken = self.parsed.names, self.parsed.spoken
        in_order = (*sorted(names, key=lambda name: (-names[name], name)), *self.aims)
        return tuple(dict.fromkeys(spoken.get(word, word) for word in in_order))[:8]


def check_question(question: str, *, follows: str = "") -> ResearchQuestion:
    """Raises InvalidInput for a question that cannot be one. `follows` is the question it refines."""
    if len(question) > LONGEST:
        raise InvalidInput(
            f"the question has {len(question)} characters, over the limit of {LONGEST}",
            hint="ask in a few sentences, and name files instead of pasting them",
        )
    text = "".join(char for char in question if char in "\n\t" or not _is_control(char)).strip()
    if not any(char.isalnum() for char in text):
        raise InvalidInput("the question is empty", hint="ask where or how something is done")
    if not follows:
        return ResearchQuestion(text, parse_question(text))
    new, wanted = subject(text), frozenset[str](Narrowing.of(text).wanted)
    if not parse_question(new).terms:
        return ResearchQuestion(text, replace(parse_question(follows), wanted=wanted))
    # The earlier question's words count half, as those of a report's body do; yet it is none.
    return ResearchQuestion(
        text, replace(parse_question(f"{new}\n{follows}"), is_report="\n" in new, wanted=wanted)
    )


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs")
