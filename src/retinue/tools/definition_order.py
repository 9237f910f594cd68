"""Orders the definitions that a search found, for an agent that is shown only a few of them."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

from retinue.codebase import (
    Place,
    PlaceDefinition,
    file_category,
    outline_text,
    parse_question,
    split_identifier,
    stem,
)
from retinue.core import PathDenied, PathMissing
from retinue.tools.file_tools import RedactedLines

LINES_ABOVE = 3
"""Lines above a definition that may belong to it, such as a decorator or a comment."""
_BESIDE_CODE = re.compile(
    r"(?:^|/)_?(?:examples?|samples?|demos?|benches|fixtures?|testdata|completions?)/|(?:^|/)(?-i:[A-Z][A-Z_-]+)$"
    r"|\.d\.[cm]?ts$|\.pyi$",
    re.IGNORECASE,
)
"""Folders of examples and of generated files, files without a suffix such as PKG-INFO, and declarations."""
_PAGE, _ASKS_FOR_PAGE = re.compile(r"\.html?$"), re.compile(r"html|page|template|form", re.IGNORECASE)
"""Pages are often documents that a program has made."""
_WORDS = re.compile(r"[a-z]{2,}")
_SAY_NOTHING_WORDS = """
an and are as at be by can do does for from has have how if in is it its me my not of on one or that the there
this to was what when where which who with you your
"""
_SAY_NOTHING = frozenset(map(stem, _SAY_NOTHING_WORDS.split()))
"""Articles, pronouns and the like, by their stems."""
_RELATED_SHARE = 0.5
LENGTH_WORTH, LONG_LINES = 0.5, 40
"""What a definition of so many lines is worth more than one without any, beside the share of the words."""


def _kind_rank(place: Place, question: str) -> int:
    """Return 0 for the project's own code, 1 for documents, examples and code of others, 2 for tests."""
    if place.kind == "test":
        return 0 if "test" in question.lower() else 2
    is_page = _PAGE.search(place.path) and not _ASKS_FOR_PAGE.search(question)
    is_beside = place.kind in ("docs", "config") or file_category(place.path) == "vendored"
    return 1 if is_page or is_beside or _BESIDE_CODE.search(place.path) else 0


def code_first(places: Sequence[Place], question: str) -> list[Place]:
    """Order implementations before documents and tests, unless the question is about tests."""
    return sorted(places, key=lambda place: _kind_rank(place, question))


def code_first_definitions(
    places: Sequence[Place], question: str, redacted: RedactedLines
) -> list[tuple[Place, PlaceDefinition]]:
    """Return the definitions of all places, best first, implementations before documents and tests."""
    found = [(place, one) for place in places for one in place.definitions]
    best = _by_words(found, question, redacted)
    best += [
        (place, PlaceDefinition(place.line or 1, place.symbol, place.line or 1, place.score))
        for place in places
        if not place.definitions
    ]
    return sorted(best, key=lambda pair: _kind_rank(pair[0], question))


def _by_words(
    pairs: Sequence[tuple[Place, PlaceDefinition]], question: str, redacted: RedactedLines
) -> list[tuple[Place, PlaceDefinition]]:
    """Order definitions by their score, by the share of the question's words that they have, and by length.

    A short definition often only passes a call on, or declares what a longer one does.
    """
    places = {place.entry: place for place, _ in pairs}
    known_of = {entry: _terms_by_definition(place, redacted) for entry, place in places.items()}
    known = [known_of[place.entry][one.line] for place, one in pairs]
    shares = shares_of_words(question, [terms for terms, _ in known])
    top = max((one.score * place.score for place, one in pairs), default=0.0) or 1.0
    worth = [
        one.score * place.score / top + share + LENGTH_WORTH * min(1.0, math.log(1 + lines, LONG_LINES))
        for (place, one), share, (_, lines) in zip(pairs, shares, known, strict=True)
    ]
    return [pair for _, pair in sorted(zip(worth, pairs, strict=True), key=lambda one: -one[0])]


def shares_of_words(question: str, texts: Sequence[Collection[str]]) -> list[float]:
    """Return the share of a question's words that each text has. The texts are given as stems of their words.

    All words count but articles and the like, each by its rarity among the texts. A word that code may use
    for one of the question's counts half.
    """
    spoken = {stem(word): {stem(word): 1.0} for word in _WORDS.findall(question.lower())}
    wanted = {term: forms for term, forms in spoken.items() if term not in _SAY_NOTHING}
    for term, one in parse_question(question).related_to.items():
        wanted.setdefault(one.source, {}).setdefault(term, _RELATED_SHARE)
    shares = [
        {
            term: max((share for form, share in forms.items() if form in text), default=0.0)
            for term, forms in wanted.items()
        }
        for text in texts
    ]
    rarity = {term: math.log(1 + len(texts) / (1 + sum(one[term] > 0 for one in shares))) for term in wanted}
    total = sum(rarity.values()) or 1.0
    return [sum(rarity[term] * share for term, share in one.items()) / total for one in shares]


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words of some code, with the parts of its names."""
    return frozenset(map(stem, split_identifier(text)))


def _terms_by_definition(place: Place, redacted: RedactedLines) -> dict[int, tuple[frozenset[str], int]]:
    """Return for each definition of a place, by its line, the stems of its words and the number of its lines.

    The words of its name and of its path count as well.
    """
    try:
        lines = redacted.unredacted(place.entry)
    except (PathDenied, PathMissing):
        lines = []
    extents = extents_of(place.path, lines)
    found: dict[int, tuple[frozenset[str], int]] = {}
    for one in place.definitions:
        first, last = extent_around(extents, one.line, len(lines))
        text = "\n".join([place.path, one.symbol, *lines[first - 1 : last]])
        found[one.line] = (stems_of(text), max(0, last - first + 1))  # the file may be shorter by now
    return found


def extents_of(path: str, lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first and the last line of each definition of a file."""
    data = "\n".join(lines).encode()
    ends = list(itertools.accumulate(len(line.encode()) + 1 for line in lines))
    return [
        (bisect_right(ends, chunk.start) + 1, bisect_left(ends, chunk.end) + 1)
        for chunk in outline_text(path, data).chunks
    ]


def extent_around(extents: Sequence[tuple[int, int]], line: int, last: int) -> tuple[int, int]:
    """Return the extent that contains a line; if there is none, from a few lines above it to the end."""
    return next((one for one in extents if one[0] <= line <= one[1]), (max(1, line - LINES_ABOVE), last))
