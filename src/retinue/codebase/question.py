"""A question or a bug report taken apart: weighted terms, and the names, paths and frames it mentions.

Knows nothing of files: whether a mentioned name exists is for the ranker to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from retinue.codebase.terms import CHATTER_TERMS, STOP_TERMS, Vocabulary, split_identifier, stem, words
from retinue.codebase.traces import Frame, frames

MOST_CHARACTERS = 20_000
"""What is read of a question; a pasted log beyond that adds noise, not aim."""

_TITLE, _PROSE, _CODE = 2.0, 1.0, 0.5
"""How much a word counts by where it stands: a report's first line says most, pasted code least."""

_SHORTEST_OF_PAIR = 3
"""Letters; shorter words run together are found in anything."""

_URL = re.compile(r"https?://[^\s)>\]]{1,500}")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
"""What a form says to those who fill it in; no reader of the report sees it."""
_CODE_BLOCK = re.compile(
    r"```.*?(?:```|\Z)|^(?:>>>|\.\.\. |In \[\d{1,5}\]:)[^\n]*$", re.DOTALL | re.MULTILINE
)
_PATH = re.compile(
    r"(?<![\w/.-])(?:[\w.-]{1,80}/){0,12}[\w-]{1,80}(?:\.[\w-]{1,40}){0,3}\.[A-Za-z]\w{0,7}\b(?!\()"
)
_DOTTED = re.compile(r"\b[^\W\d]\w{0,80}(?:(?:\.|::)[^\W\d]\w{0,80}){1,8}")
_IDENTIFIER = re.compile(
    r"\b(?:_{0,2}[a-z0-9]{1,60}(?:_[A-Za-z0-9]{1,60}){1,9}_{0,2}|_{1,2}\w{1,80}|[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,6}"
    r"|[A-Z]{1,20}[a-z0-9]{1,40}(?:[A-Z][A-Za-z0-9]{0,40}){1,8}|[a-z]{1,40}[0-9]{0,4}(?:[A-Z][a-z0-9]{0,40}){1,8})\b"
)
_CALLED = re.compile(r"\b([^\W\d]\w{2,80})\(")
_QUOTED = re.compile(r"`{1,2}([^`\n]{1,80})`{1,2}")
_CAPITALISED = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z]\w{2,80}")
_WORD = re.compile(r"[^\W\d]\w{1,80}")
_ASKS = re.compile(
    r"\?\s*$|^\W*(?:who|what|where|when|which|why|how|does|do|is|are|can|explain|describe|show|find|list)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    text: str
    terms: dict[str, float]
    """Stems to look for, each with the weight of the best place it stands in."""
    spoken: dict[str, str]
    """Each term as a word of the question."""
    needles: frozenset[str]
    """Regular expressions of which every line with a term holds one, whatever its case."""
    compounds: frozenset[str]
    """Neighbouring words run together: what an identifier made of them would look like, flattened."""
    pairs: Mapping[str, tuple[str, str]]
    """Two neighbouring words run together, the second as its stem, to the terms of both."""
    names: dict[str, float]
    """Identifiers as written that the question seems to name, weighted likewise."""
    paths: tuple[str, ...]
    dotted: tuple[str, ...]
    frames: tuple[Frame, ...]
    kept: frozenset[str]
    """Terms among those looked for that say nothing in other questions, but name something in this one."""
    is_report: bool
    """More than one line: a bug report or a request with a title."""
    is_question: bool
    """It asks, rather than reports or requests: who asks may mean a test or a page as well as the code."""
    wanted: frozenset[str] = frozenset()
    """Standings of files that were asked for by name, such as `docs`: they are not weighed down."""

    def asks_for(self, *stems: str) -> bool:
        return any(term in self.terms for term in stems)


def parse_question(text: str) -> ParsedQuestion:
    text = _COMMENT.sub("", text[:MOST_CHARACTERS].replace("\r", "")).strip()
    title, _, body = text.partition("\n")
    places = _places(title, body)
    traced = tuple(frames(text))
    is_report = bool(body.strip())
    names = _names(places, traced, STOP_TERMS if is_report else STOP_TERMS - CHATTER_TERMS)
    terms, spoken = _terms(places)
    if kept := frozenset[str]() if is_report else _kept(names, title, alone=not terms):
        terms, spoken = _terms(places, kept)
    return ParsedQuestion(
        text=text,
        terms=terms,
        spoken=spoken,
        needles=_needles(places, terms),
        compounds=_compounds(title),
        pairs=_pairs(title),
        names=names,
        paths=tuple(dict.fromkeys(found.removeprefix("./") for found in _PATH.findall(text))),
        dotted=tuple(dict.fromkeys(_DOTTED.findall(text))),
        frames=traced,
        kept=kept,
        is_report=is_report,
        is_question=not is_report and _ASKS.search(title) is not None,
    )


def _places(title: str, body: str) -> list[tuple[str, float]]:
    """The text by weight, heaviest first."""
    if not body.strip():
        return [(title, _PROSE)]
    code = "\n".join(_CODE_BLOCK.findall(body))
    return [(title, _TITLE), (_CODE_BLOCK.sub(" ", body), _PROSE), (code, _CODE)]


def _kept(names: Iterable[str], title: str, *, alone: bool) -> frozenset[str]:
    """What is written like a name, or else all there is if the question says nothing more."""
    named = _chatter(names)
    return _chatter(_WORD.findall(title)) if alone and not named else named


def _chatter(found: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in found) & CHATTER_TERMS


def _terms(
    places: list[tuple[str, float]], kept: frozenset[str] = frozenset()
) -> tuple[dict[str, float], dict[str, str]]:
    vocabulary = Vocabulary(kept)
    found: dict[str, float] = {}
    spoken: dict[str, str] = {}
    for text, weight in places:
        for word in words(_URL.sub(" ", text).encode()).split():
            for term in vocabulary[word].split():
                found.setdefault(term, weight)
                spoken.setdefault(term, word.decode(errors="replace"))
    return found, spoken


def _needles(places: list[tuple[str, float]], terms: dict[str, float]) -> frozenset[str]:
    found: set[str] = set()
    for word in {word for text, _ in places for word in words(text.encode()).split()}:
        pieces = split_identifier(word.decode(errors="replace"))
        stems = {stem(piece) for piece in pieces} & terms.keys()
        if not stems and len(pieces) > 1:
            stems = {"_*".join(pieces)}
        found |= stems
    return frozenset(found)


def _compounds(title: str) -> frozenset[str]:
    row = words(title.lower().encode()).decode(errors="replace").replace("_", "").split()
    pairs = {first + second for first, second in pairwise(row)}
    triples = {first + second + third for first, second, third in zip(row, row[1:], row[2:], strict=False)}
    return frozenset(pairs | triples)


def _pairs(title: str) -> dict[str, tuple[str, str]]:
    row = [
        part
        for word in words(title.encode()).split()
        for part in split_identifier(word.decode(errors="replace"))
    ]
    found: dict[str, tuple[str, str]] = {}
    for first, second in pairwise(row):
        if len(first) >= _SHORTEST_OF_PAIR and len(second) >= _SHORTEST_OF_PAIR:
            terms = stem(first), stem(second)
            found[first + terms[1]] = found["".join(terms)] = terms
    return found


def _names(
    places: list[tuple[str, float]], traced: tuple[Frame, ...], stopped: frozenset[str]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for text, weight in places:
        named = [*_IDENTIFIER.findall(text), *_CALLED.findall(text)]
        for run in (*_QUOTED.findall(text), *_DOTTED.findall(text)):
            named += _WORD.findall(run)
        for name in named:
            if len(name) > 2 and name.lower() not in stopped:
                found.setdefault(name, weight)
    head, weight = places[0]
    for name in _CAPITALISED.findall(head):
        found.setdefault(name, weight / 2)
    for frame in traced:
        if len(frame.function) > 2:
            found.setdefault(frame.function, _PROSE)
    return found
