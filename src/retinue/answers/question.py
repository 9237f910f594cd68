"""Checks and parses questions, including follow-ups on an earlier report.

A follow-up may say where to look: "only the tests", "in the client", "and how is it configured?". Such words
reorder and filter the places that were found; they do not find places. The files of the earlier report rank
higher than others.
"""

from __future__ import annotations

import os.path
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from retinue.answers.intents import wanted_categories, without_request_words
from retinue.codebase import FileKind, ParsedQuestion, Place, parse_question, split_identifier, stem
from retinue.core import InvalidInput, Report

MAX_QUESTION_CHARS = 100_000
"""Enough for a bug report with its log, but not for a pasted file."""
MAX_TERMS = 40
"""How many of the heaviest terms of a long question are used."""

_IDENTIFIER = re.compile(r"_|\d|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""Matches words that can only be names of code."""
_JOINED = re.compile(r"\b[A-Za-z]\w{0,60}_\w{1,60}\b")
"""Matches names with an underscore in any casing, such as `Curl_http_follow`."""
_MARKED = re.compile(r"(?<![\w/.+-])(?:[A-Za-z]{2,12}[/-]\d{1,2}|[A-Za-z](?:\+\+|#))(?![\w/+-])")
"""Matches names that a search for words would lose: `HTTP/3`, `UTF-8`, `C++`."""
_GENERIC_WORDS = """
implement implementation define definition declare handle locate live call called function method class module
package logic part support contain place exist example pattern similar usage show change configure option
setting everything anything stuff program app application system protection handling feature possibility
ability way possible available recently lately recent latest
"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
"""Stems of words that ask for something without saying what."""
_EVERYTHING_WORDS = """
change everything anything stuff program app application system feature recently lately recent latest
"""
_EVERYTHING = frozenset(map(stem, _EVERYTHING_WORDS.split()))
"""Those of them that mean the whole project if a question asks what changed."""
_THINGS = frozenset(map(stem, ("file", "line", "version", "result", "step", "description")))
"""Stems of common words that say what a question is about if there are two: "only some lines of a file"."""


def clean_question(question: str) -> str:
    """Return the question without control characters. Raises `InvalidInput` if it is empty or too long."""
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInput(
            f"the question has {len(question)} characters, over the limit of {MAX_QUESTION_CHARS}",
            hint="ask in a few sentences, and name files instead of pasting them",
        )
    text = "".join(char for char in question if char in "\n\t" or not _is_control(char)).strip()
    if not any(char.isalnum() for char in text):
        raise InvalidInput("the question is empty", hint="ask where or how something is done")
    return text


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs")


def parse_follow_up(text: str, earlier_question: str) -> ParsedQuestion:
    """Parse a question together with the earlier question that it follows up on."""
    new, wanted = remove_narrowing(text), frozenset[str](Narrowing.parse(text).wanted)
    if not parse_question(new).terms:
        return replace(parse_question(earlier_question), wanted_categories=wanted)
    # The words of the earlier question get half the weight, like the body of a bug report.
    both = parse_question(f"{new}\n{earlier_question}")
    return replace(both, is_report="\n" in new, wanted_categories=wanted)


def read_question(text: str, earlier: Report | None = None) -> ParsedQuestion:
    """Parse a question without the words that only make the request, as a follow-up if there is one."""
    if earlier is not None:
        return parse_follow_up(text, earlier.question)
    parsed = _with_marked_names(parse_question(without_request_words(text)))
    names = dict.fromkeys(_JOINED.findall(text.partition("\n")[0]), 1.0) | parsed.names
    wanted = wanted_categories(text)
    return replace(
        parsed, names=names, is_question=parse_question(text).is_question, wanted_categories=wanted
    )


def marked_names(text: str) -> dict[str, str]:
    """Return names such as `HTTP/3` and `C++`, by what identifiers make of them: `http3`, `c++`."""
    return {re.sub(r"[/-]", "", name).casefold(): name for name in _MARKED.findall(text)}


def _with_marked_names(parsed: ParsedQuestion) -> ParsedQuestion:
    """Return the question with the names that a search for words would lose."""
    found = {name: shown for name, shown in marked_names(parsed.text).items() if name not in parsed.terms}
    if not found or parsed.is_report:
        return parsed
    weights = dict.fromkeys(found, 1.0)
    return replace(parsed, terms={**parsed.terms, **weights}, word_by_term={**parsed.word_by_term, **found})


def names_nothing(question: ParsedQuestion) -> bool:
    """Return whether a question has no word that says what it is about: "how does it work?", "x"."""
    if code_names(question) or question.paths or question.dotted or question.frames or question.hints:
        return False
    vague = _GENERIC | question.kept_stop_terms
    if any(term not in vague for term in question.terms):
        return False
    is_phrase = any(one.is_phrase for one in question.related_to.values())
    return not is_phrase and len(_THINGS & question.kept_stop_terms) < 2


def is_about_everything(question: ParsedQuestion) -> bool:
    """Return whether a question for changes names no part of the project: "what changed in the app?"."""
    return names_nothing(question) and question.terms.keys() <= _EVERYTHING | question.kept_stop_terms


def code_names(question: ParsedQuestion) -> tuple[str, ...]:
    """Return the words that can only be names of code. If the code has none of them, there is no answer."""
    text = question.text
    return tuple(
        name
        for name in question.names
        if _IDENTIFIER.search(name) or f"`{name}`" in text or f"{name}(" in text
    )[:MAX_TERMS]


def heaviest_terms(question: ParsedQuestion) -> dict[str, float]:
    """Return the stems that weigh most, in the order of the question."""
    weights = question.terms
    heaviest = set(sorted(weights, key=lambda term: -weights[term])[:MAX_TERMS])
    return {term: weight for term, weight in weights.items() if term in heaviest}


def required_words(question: ParsedQuestion) -> tuple[str, ...]:
    """Return words of the question; an answer must contain at least one of them."""
    own = code_names(question) or specific_terms(question)
    return own or (*heaviest_terms(question), *question.related)


def supporting_words(question: ParsedQuestion) -> tuple[str, ...]:
    """Return words that can lead to an answer: those that are required, related ones, and those of hints."""
    related = () if code_names(question) else tuple(question.related)
    hinted = (term for hint in question.hints for term in (hint.flat, *hint.terms))
    return tuple(dict.fromkeys((*required_words(question), *related, *hinted)))


def specific_terms(question: ParsedQuestion) -> tuple[str, ...]:
    """Return the heaviest terms that say what the question is about, in its order."""
    return tuple(term for term in heaviest_terms(question) if term not in _GENERIC)


def keywords(question: ParsedQuestion) -> tuple[str, ...]:
    """Return up to eight words that are searched for, heaviest first, for the report."""
    names, words = question.names, question.word_by_term
    if names_nothing(question):
        return ()
    in_order = (*sorted(names, key=lambda name: (-names[name], name)), *required_words(question))
    return tuple(dict.fromkeys(words.get(word, word) for word in in_order))[:8]


KNOWN_FILE_FACTOR, WANTED_KIND_FACTOR, NAMED_AREA_FACTOR = 1.3, 1.6, 2.0
"""Factors for the score of a place: in a file of the earlier report, of a wanted kind, in a named area."""
EARLIER = "in the earlier report"
"""The reason for a place whose file is in the earlier report."""
ONLY_KIND_FACTOR = 20.0
"""The factor for a wanted kind if the follow-up asks for nothing else, so that such places come first."""
FOLLOW_UP_FACTOR = 5
"""A follow-up ranks this many times more places than it returns, because narrowing drops some of them."""

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
class Narrowing:
    """The part of a follow-up that says where to look."""

    wanted: frozenset[FileKind]
    unwanted: frozenset[FileKind]
    areas: tuple[str, ...]
    """Names of folders or files."""
    only: bool
    """Whether it says "only", so that the wanted kinds exclude all others."""
    alone: bool
    """Whether the follow-up contains nothing but the narrowing."""

    @classmethod
    def parse(cls, question: str) -> Narrowing:
        """Find the kinds of files and the areas that a follow-up mentions."""

        def mentions(before: str, words: str) -> bool:
            return re.search(rf"{before}\b(?:{words})\b", question, re.IGNORECASE) is not None

        unwanted = frozenset[FileKind](kind for kind, words in _KINDS.items() if mentions(_NOT, words))
        named = frozenset[FileKind](kind for kind, words in _KINDS.items() if mentions("", words))
        areas = [area for area in _AREA.findall(question) if not _names_a_kind(area)]
        only = _ONLY.search(question) is not None
        alone = not parse_question(remove_narrowing(question)).terms
        return cls(named - unwanted, unwanted, tuple(areas), only, alone)


def remove_narrowing(question: str) -> str:
    """Return a follow-up without the words that say where to look."""
    kinds = "|".join(_KINDS.values())
    return re.sub(rf"(?:{_NOT})?\b(?:{kinds})\b|{_ONLY.pattern}", " ", question, flags=re.IGNORECASE).strip()


def narrow_places(
    places: Sequence[Place], question: str, earlier: Report, limit: int
) -> tuple[list[Place], str | None]:
    """Return the places that a follow-up means, best first, and a note on how they were narrowed down.

    A narrowing that would leave no place is ignored.
    """
    narrowing = Narrowing.parse(question)
    kept = [place for place in places if place.kind not in narrowing.unwanted] or list(places)
    notes = [f"without {kind}" for kind in sorted(narrowing.unwanted)]
    if narrowing.only and (of_kind := [place for place in kept if place.kind in narrowing.wanted]):
        kept = of_kind
        notes += [f"only {kind}" for kind in sorted(narrowing.wanted)]
    for area in narrowing.areas:
        if inside := [place for place in kept if _is_inside(place, area)]:
            kept = inside
            notes.append(f"in {area}")
    known = _absolute_paths(earlier)
    scored = [_rescore(place, narrowing, known) for place in kept]
    best = sorted(scored, key=lambda place: -place.score)[:limit]
    return best, f"Narrowed down: {', '.join(notes)}." if notes else None


def _absolute_paths(report: Report) -> frozenset[str]:
    """Return the absolute paths of the files that a report names."""
    values = [outcome.value for outcome in report.roles.values() if outcome.value is not None]
    return frozenset(report.absolute_path(reference) for value in values for reference in value.references)


def _rescore(place: Place, narrowing: Narrowing, known: frozenset[str]) -> Place:
    """Return a place with its score adjusted to what the follow-up asks for."""
    score, why = place.score, list(place.why)
    if place.kind in narrowing.wanted:
        score *= ONLY_KIND_FACTOR if narrowing.alone else WANTED_KIND_FACTOR
    if any(_path_mentions(place, area) for area in narrowing.areas):
        score *= NAMED_AREA_FACTOR
    if os.path.normpath(place.entry.root.path / place.entry.path) in known:
        score *= KNOWN_FILE_FACTOR
        why.insert(0, EARLIER)
    return replace(place, score=score, why=tuple(why))


def _is_inside(place: Place, area: str) -> bool:
    """Return whether the file or one of its folders has this name."""
    wanted = area.strip("/").casefold().split("/")
    path = PurePosixPath(place.path.casefold())
    names = [*path.parts, path.stem]
    return any(names[at : at + len(wanted)] == wanted for at in range(len(names)))


def _path_mentions(place: Place, area: str) -> bool:
    """Return whether the path contains the area as a word."""
    words = {stem(part) for name in PurePosixPath(place.path).parts for part in split_identifier(name)}
    return stem(area.casefold()) in words


def _names_a_kind(word: str) -> bool:
    return any(re.fullmatch(words, word, re.IGNORECASE) for words in _KINDS.values())
