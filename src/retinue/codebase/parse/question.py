"""A question or a bug report taken apart: weighted terms, and the names, paths and frames it mentions.

Knows nothing of files: whether a mentioned name exists is for the ranker to find out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from retinue.codebase.parse.terms import (
    CHATTER_TERMS,
    STOP_TERMS,
    Vocabulary,
    separate_words,
    split_identifier,
    stem,
)

# MERGED traces: Lines of stack traces, of compilers and of test runners: where each points. Knows nothing of files.

_TRACE_PATH = r"((?:[A-Za-z]:)?[\w.@~+/\\-]{1,300}\.[A-Za-z]\w{0,7})"
_TRACE_NAME = r"([\w.$<>:~]{1,200})"


class StackFrame(NamedTuple):
    path: str
    line: int
    function: str
    """Its bare name; empty where the trace does not say it."""


_TRACE_FORMATS: tuple[tuple[re.Pattern[str], tuple[int, int, int]], ...] = (
    # Python: File "a/b.py", line 3, in f
    (re.compile(r'File "([^"\n]{1,300})", line (\d{1,7})(?:, in (\w{1,120}))?'), (1, 2, 3)),
    # Java, Kotlin, JavaScript: at a.b.C.f(C.java:3), at async f (a/b.js:3:5)
    (re.compile(rf"\bat (?:async |new )?{_TRACE_NAME} ?\((?:file://)?{_TRACE_PATH}:(\d{{1,7}})"), (2, 3, 1)),
    # C#: at A.B.F(String s) in /a/b.cs:line 3
    (re.compile(rf"\bat {_TRACE_NAME}\([^()\n]{{0,300}}\) in {_TRACE_PATH}:line (\d{{1,7}})"), (2, 3, 1)),
    # Ruby: a/b.rb:3:in `f'
    (re.compile(rf"{_TRACE_PATH}:(\d{{1,7}}):in [`'](?:block in )?{_TRACE_NAME}"), (1, 2, 3)),
    # PHP: #0 /a/b.php(3): A\B->f(), and: in /a/b.php on line 3
    (re.compile(rf"{_TRACE_PATH}\((\d{{1,7}})\): (?:[\w\\]{{1,200}}(?:->|::))?(\w{{1,120}})\("), (1, 2, 3)),
    (re.compile(rf"\bin {_TRACE_PATH} on line (\d{{1,7}})()"), (1, 2, 3)),
    # Go, Rust, C and whatever else points at a line: /a/b.go:3 +0x1d, at src/a.rs:3:5, a.c:3: error
    (re.compile(rf"(?<![\w/\\.:-]){_TRACE_PATH}:(\d{{1,7}})\b()"), (1, 2, 3)),
)


def find_stack_frames(text: str) -> list[StackFrame]:
    """Each place once, the outermost call first: Python tells it so, the others the other way round."""
    found: dict[tuple[str, int], tuple[int, StackFrame]] = {}
    for form, (path, line, name) in _TRACE_FORMATS:
        for match in form.finditer(text):
            place = match[path].removeprefix("./"), int(match[line])
            if place not in found:
                found[place] = match.start(path), StackFrame(*place, _bare_name(match[name] or ""))
    told = [frame for _, frame in sorted(found.values())]
    return told if any(frame.path.endswith(".py") for frame in told) else told[::-1]


def _bare_name(name: str) -> str:
    last = re.split(r"\.|::", name)[-1]
    return last if re.fullmatch(r"\w+", last) else ""


MAX_QUESTION_CHARS = 20_000
"""What is read of a question; a pasted log beyond that adds noise, not aim."""

_TITLE_WEIGHT, _PROSE_WEIGHT, _CODE_WEIGHT = 2.0, 1.0, 0.5
"""How much a word counts by where it stands: a report's first line says most, pasted code least."""

_MIN_PAIR_LETTERS = 3
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
    frames: tuple[StackFrame, ...]
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
    text = _COMMENT.sub("", text[:MAX_QUESTION_CHARS].replace("\r", "")).strip()
    title, _, body = text.partition("\n")
    places = _weighted_parts(title, body)
    traced = tuple(find_stack_frames(text))
    is_report = bool(body.strip())
    names = _weighted_names(places, traced, STOP_TERMS if is_report else STOP_TERMS - CHATTER_TERMS)
    terms, spoken = _weighted_terms(places)
    if kept := frozenset[str]() if is_report else _kept_stop_terms(names, title, alone=not terms):
        terms, spoken = _weighted_terms(places, kept)
    return ParsedQuestion(
        text=text,
        terms=terms,
        spoken=spoken,
        needles=_needles(places, terms),
        compounds=_joined_words(title),
        pairs=_word_pairs(title),
        names=names,
        paths=tuple(dict.fromkeys(found.removeprefix("./") for found in _PATH.findall(text))),
        dotted=tuple(dict.fromkeys(_DOTTED.findall(text))),
        frames=traced,
        kept=kept,
        is_report=is_report,
        is_question=not is_report and _ASKS.search(title) is not None,
    )


def _weighted_parts(title: str, body: str) -> list[tuple[str, float]]:
    """The text by weight, heaviest first."""
    if not body.strip():
        return [(title, _PROSE_WEIGHT)]
    code = "\n".join(_CODE_BLOCK.findall(body))
    return [(title, _TITLE_WEIGHT), (_CODE_BLOCK.sub(" ", body), _PROSE_WEIGHT), (code, _CODE_WEIGHT)]


def _kept_stop_terms(names: Iterable[str], title: str, *, alone: bool) -> frozenset[str]:
    """What is written like a name, or else all there is if the question says nothing more."""
    named = _chatter_terms(names)
    return _chatter_terms(_WORD.findall(title)) if alone and not named else named


def _chatter_terms(found: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in found) & CHATTER_TERMS


def _weighted_terms(
    places: list[tuple[str, float]], kept: frozenset[str] = frozenset()
) -> tuple[dict[str, float], dict[str, str]]:
    vocabulary = Vocabulary(kept)
    found: dict[str, float] = {}
    spoken: dict[str, str] = {}
    for text, weight in places:
        for word in separate_words(_URL.sub(" ", text).encode()).split():
            for term in vocabulary[word].split():
                found.setdefault(term, weight)
                spoken.setdefault(term, word.decode(errors="replace"))
    return found, spoken


def _needles(places: list[tuple[str, float]], terms: dict[str, float]) -> frozenset[str]:
    found: set[str] = set()
    for word in {word for text, _ in places for word in separate_words(text.encode()).split()}:
        pieces = split_identifier(word.decode(errors="replace"))
        stems = {stem(piece) for piece in pieces} & terms.keys()
        if not stems and len(pieces) > 1:
            stems = {"_*".join(pieces)}
        found |= stems
    return frozenset(found)


def _joined_words(title: str) -> frozenset[str]:
    row = separate_words(title.lower().encode()).decode(errors="replace").replace("_", "").split()
    pairs = {first + second for first, second in pairwise(row)}
    triples = {first + second + third for first, second, third in zip(row, row[1:], row[2:], strict=False)}
    return frozenset(pairs | triples)


def _word_pairs(title: str) -> dict[str, tuple[str, str]]:
    row = [
        part
        for word in separate_words(title.encode()).split()
        for part in split_identifier(word.decode(errors="replace"))
    ]
    found: dict[str, tuple[str, str]] = {}
    for first, second in pairwise(row):
        if len(first) >= _MIN_PAIR_LETTERS and len(second) >= _MIN_PAIR_LETTERS:
            terms = stem(first), stem(second)
            found[first + terms[1]] = found["".join(terms)] = terms
    return found


def _weighted_names(
    places: list[tuple[str, float]], traced: tuple[StackFrame, ...], stopped: frozenset[str]
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
            found.setdefault(frame.function, _PROSE_WEIGHT)
    return found
