"""Parses a question or a bug report: weighted terms, and the names, paths and stack frames it mentions.

Knows nothing of files: the ranker finds out whether a mentioned name exists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from retinue.codebase.parse.related_words import related_terms
from retinue.codebase.parse.terms import (
    CHATTER_WORDS,
    STOP_WORDS,
    Vocabulary,
    separate_words,
    split_identifier,
    stem,
)

MAX_QUESTION_CHARS = 20_000
"""Longer questions are cut, because the rest of a pasted log adds only noise."""

_TITLE_WEIGHT, _PROSE_WEIGHT, _CODE_WEIGHT = 2.0, 1.0, 0.5
"""The weight of a word depends on where it occurs: the title of a report says most, pasted code least."""

RELATED_WEIGHT = 0.6
"""The weight of a term that is related to a word. Several terms of one word share it."""

MAX_HINTS, MAX_HINT_CHARS = 6, 100
"""How many hints count, and how long each may be."""
_HINT_WORD = re.compile(r"[^\W\d]\w{1,80}")

_VAGUE_VERBS = frozenset(map(stem, ("show", "set", "use", "get", "make", "give", "tell", "define")))
"""Verbs that say little without the thing that they are about."""

_MIN_PAIR_LETTERS = 3
"""Two shorter words, joined, would occur in almost any name."""

_URL = re.compile(r"https?://[^\s)>\]]{1,500}")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
"""Comments in Markdown: instructions of an issue template, which readers do not see."""
_CODE_BLOCK = re.compile(
    r"```.*?(?:```|\Z)|^(?:>>>|\.\.\. |In \[\d{1,5}\]:)[^\n]*$", re.DOTALL | re.MULTILINE
)
_PATH = re.compile(
    r"(?<![\w/.-])(?:[\w.-]{1,80}/){0,12}[\w-]{1,80}(?:\.[\w-]{1,40}){0,3}\.[A-Za-z]\w{0,7}\b(?!\()"
)
_DOTTED = re.compile(r"\b[^\W\d]\w{0,80}(?:(?:\.|::)[^\W\d]\w{0,80}){1,8}")
_IDENTIFIER = re.compile(
    r"\b(?:_{0,2}[A-Z]?[a-z0-9]{1,60}(?:_[A-Za-z0-9]{1,60}){1,9}_{0,2}|_{1,2}\w{1,80}|[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,6}"
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
    """The parsed content of a question or a bug report."""

    text: str
    terms: dict[str, float]
    """Terms to search for, with weights. A term in the title weighs most, one in pasted code least."""
    word_by_term: dict[str, str]
    """For each term, the word of the question that it comes from. For a part of an identifier, that part."""
    pairs: Mapping[str, tuple[str, str]]
    """Every two neighbouring words of the title, joined as in an identifier, with the terms of both."""
    names: dict[str, float]
    """Identifiers that the question seems to name, as written, with weights like those of the terms."""
    paths: tuple[str, ...]
    dotted: tuple[str, ...]
    """Dotted or `::`-separated names, such as module names."""
    frames: tuple[StackFrame, ...]
    kept_stop_terms: frozenset[str]
    """Stop terms that are searched for nonetheless, because they name something in this question."""
    is_report: bool
    """Whether it has more than one line: a bug report or a request with a title."""
    is_question: bool
    """Whether it asks something. The answer may then be a test or a documentation page."""
    wanted_categories: frozenset[str] = frozenset()
    """File categories that the user asked for, such as `docs`. They are not ranked lower."""
    related: Mapping[str, float] = field(default_factory=dict[str, float])
    """Terms that code may use for what the question describes, with weights. None is in `terms`."""
    related_to: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each related term, the word or the phrase of the question that it comes from."""

    hints: tuple[Hint, ...] = ()
    """What the caller guesses that the code calls it."""

    @property
    def searched_terms(self) -> dict[str, float]:
        """All terms that files are searched for, with weights; 0 for those of hints alone."""
        of_hints = {term: 0.0 for hint in self.hints for term in hint.terms}
        return {**of_hints, **self.related, **self.terms}

    def with_hints(self, hints: Iterable[Hint]) -> ParsedQuestion:
        """Return the question with hints as words of its own."""
        found = tuple(hints)
        terms = {term: 1.0 for hint in found for term in hint.terms}
        names = {hint.name: 1.0 for hint in found}
        return replace(self, terms={**self.terms, **terms}, names={**self.names, **names}, hints=())

    def shown_term(self, term: str) -> str:
        """Return a term as a reader may find it in a file: `valid*` if the file may have another form."""
        word = self.word_by_term.get(term, term)
        return f"{term}*" if word.casefold().startswith(term) and len(word) > len(term) else word

    def asks_for(self, *stems: str) -> bool:
        """Return whether one of the stems is a term of the question."""
        return any(term in self.terms for term in stems)


class Hint(NamedTuple):
    """A name or a word that the caller guesses to be in the code."""

    name: str
    """As the caller writes it."""
    flat: str
    """In lower case, without underscores and punctuation."""
    terms: tuple[str, ...]
    """Its terms. If the name has several parts, the last term is the whole name."""


def parse_hints(also: Iterable[str]) -> tuple[Hint, ...]:
    """Parse the hints of a caller. Leaves out empty ones, stop words and repetitions."""
    vocabulary = Vocabulary()
    found: dict[str, Hint] = {}
    for text in also:
        for word in _HINT_WORD.findall(text[:MAX_HINT_CHARS]):
            terms = tuple(vocabulary[word.encode()].split())
            if flat := word.replace("_", "").lower() if terms else "":
                found.setdefault(flat, Hint(word, flat, terms))
    return tuple(found.values())[:MAX_HINTS]


def parse_question(text: str, also: Iterable[str] = ()) -> ParsedQuestion:
    """Parse a question, a request or a bug report. Never fails. `also` are hints of the caller."""
    text = text[:MAX_QUESTION_CHARS].replace("\r", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    text = _COMMENT.sub("", text).strip()
    title, _, body = text.partition("\n")
    parts = _weighted_parts(title, body)
    frames = tuple(find_stack_frames(text))
    is_report = bool(body.strip())
    names = _weighted_names(parts, frames, STOP_WORDS if is_report else STOP_WORDS - CHATTER_WORDS)
    kept = frozenset[str]()
    terms, word_by_term = _weighted_terms(parts)
    if not is_report and terms.keys() <= _VAGUE_VERBS:
        kept = frozenset(stem(word.lower()) for word in _WORD.findall(title) if word.lower() in CHATTER_WORDS)
        terms, word_by_term = _weighted_terms(parts, kept)
    related_to = {} if is_report else _related_terms(title, terms)
    sharing = Counter(related_to.values())
    return ParsedQuestion(
        text=text,
        terms=terms,
        word_by_term=word_by_term,
        pairs=_word_pairs(title),
        names=names,
        paths=tuple(dict.fromkeys(found.removeprefix("./") for found in _PATH.findall(text))),
        dotted=tuple(dict.fromkeys(_DOTTED.findall(text))),
        frames=frames,
        kept_stop_terms=kept,
        is_report=is_report,
        is_question=not is_report and _ASKS.search(title) is not None,
        related={term: RELATED_WEIGHT / sharing[source] ** 0.5 for term, source in related_to.items()},
        related_to=related_to,
        hints=parse_hints(also),
    )


def _related_terms(title: str, terms: Mapping[str, float]) -> dict[str, str]:
    """Return the related terms of a question, and where they come from. Names of code have none."""
    words = _IDENTIFIER.sub(" ", _URL.sub(" ", title)).lower()
    row = [stem(word) for word in separate_words(words.encode()).decode(errors="replace").split()]
    return {term: source for term, source in related_terms(row).items() if term not in terms}


def _weighted_parts(title: str, body: str) -> list[tuple[str, float]]:
    """Split the text into title, prose and code with the weight of each, heaviest first."""
    if not body.strip():
        return [(title, _PROSE_WEIGHT)]
    code = "\n".join(_CODE_BLOCK.findall(body))
    return [(title, _TITLE_WEIGHT), (_CODE_BLOCK.sub(" ", body), _PROSE_WEIGHT), (code, _CODE_WEIGHT)]


def _weighted_terms(
    parts: list[tuple[str, float]], kept: frozenset[str] = frozenset()
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the weight of each term, and the word or the part of an identifier that each comes from."""
    vocabulary = Vocabulary(kept)
    weights: dict[str, float] = {}
    word_by_term: dict[str, str] = {}
    for text, weight in parts:
        for word in separate_words(_URL.sub(" ", text).encode()).split():
            written = word.decode(errors="replace")
            pieces = split_identifier(written)
            part_by_term = {stem(piece): piece for piece in pieces} if len(pieces) > 1 else {}
            for term in vocabulary[word].split():
                weights.setdefault(term, weight)
                word_by_term.setdefault(term, part_by_term.get(term, written))
    return weights, word_by_term


def _word_pairs(title: str) -> dict[str, tuple[str, str]]:
    """Return every two neighbouring words, joined and with the second word stemmed, with their terms."""
    words = separate_words(title.encode()).decode(errors="replace").split()
    parts = [part for word in words for part in split_identifier(word) if len(part) >= _MIN_PAIR_LETTERS]
    pairs = ((first, stem(first), stem(second)) for first, second in pairwise(parts))
    return {joined: (one, other) for first, one, other in pairs for joined in (first + other, one + other)}


def _weighted_names(
    parts: list[tuple[str, float]], frames: tuple[StackFrame, ...], stop_words: frozenset[str]
) -> dict[str, float]:
    """Return what looks like a name: identifiers, calls, quoted words, and capitalised words of the title."""
    weights: dict[str, float] = {}
    for text, weight in parts:
        names = [*_IDENTIFIER.findall(text), *_CALLED.findall(text)]
        for run in (*_QUOTED.findall(text), *_DOTTED.findall(text)):
            names += _WORD.findall(run)
        for name in names:
            if len(name) > 2 and name.lower() not in stop_words:
                weights.setdefault(name, weight)
    title, weight = parts[0]
    for name in _CAPITALISED.findall(title):
        weights.setdefault(name, weight / 2)
    for frame in frames:
        if len(frame.function) > 2:
            weights.setdefault(frame.function, _PROSE_WEIGHT)
    return weights


def looks_like_code(name: str) -> bool:
    """Return whether a name can only be an identifier: it has an underscore or a capital inside."""
    return "_" in name.strip("_") or any(letter.isupper() for letter in name[1:])


class StackFrame(NamedTuple):
    """A line that a stack trace, a compiler or a test runner points at."""

    path: str
    line: int
    function: str
    """The bare name; empty if the trace does not contain it."""


_TRACE_PATH = r"((?:[A-Za-z]:)?[\w.@~+/\\-]{1,300}\.[A-Za-z]\w{0,7})"
_TRACE_NAME = r"([\w.$<>:~]{1,200})"
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
    # Go, Rust, C and others that name a line: /a/b.go:3 +0x1d, at src/a.rs:3:5, a.c:3: error
    (re.compile(rf"(?<![\w/\\.:-]){_TRACE_PATH}:(\d{{1,7}})\b()"), (1, 2, 3)),
)
"""A regular expression for each form of trace, with the groups of path, line and function."""


def find_stack_frames(text: str) -> list[StackFrame]:
    """Return the frames of a text without duplicates, the outermost call first.

    Python prints the outermost call first; the other languages print it last.
    """
    found: dict[tuple[str, int], tuple[int, StackFrame]] = {}
    for pattern, (path, line, name) in _TRACE_FORMATS:
        for match in pattern.finditer(text):
            place = match[path].removeprefix("./"), int(match[line])
            if place not in found:
                found[place] = match.start(path), StackFrame(*place, _bare_name(match[name] or ""))
    frames = [frame for _, frame in sorted(found.values())]
    return frames if any(frame.path.endswith(".py") for frame in frames) else frames[::-1]


def _bare_name(name: str) -> str:
    last = re.split(r"\.|::", name)[-1]
    return last if re.fullmatch(r"\w+", last) else ""
