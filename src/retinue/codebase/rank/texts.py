"""Ranks texts that are no files of a project: sections of web pages, and short texts such as descriptions.

Uses the terms of the question as files do: stems, parts of identifiers, related words, weighted by rarity. A
section is what stands below a heading; a long one is cut between paragraphs. Knows nothing of where a text
comes from.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from retinue.codebase.parse import ParsedQuestion, QueryTerms, parse_question, separate_words
from retinue.codebase.rank.bm25 import bm25_scores, rarity

_MAX_SECTION_CHARS = 1_600
_HEADING_FACTOR = 1.4
"""How much more a section scores if its heading has a term of the question."""
_MIN_COVERAGE = 0.3
"""A section has at least this share of the weight of the question's own terms."""
_MAX_QUOTE_CHARS = 420
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}```[^`\n]*$", re.MULTILINE)
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"'`)\]])|(?<=[.!?][\"'`)\]]{2}))\s+(?=[A-Z0-9`\"'(\[])"
    r"|(?<=[\u3002\uff01\uff1f])\s*(?=\w)|\n\s*\n|\n(?=\s*(?:[-*|>]|\d+\.)\s)"
)
_CODE_PART_END = re.compile(r"\n\s*\n")
_UNBROKEN = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]{2,}")
"""Letters of scripts that write no blanks between words: Thai, Lao, Japanese, Chinese."""
_LIST_MARK = re.compile(r"^(?:(?:[-*>|]|\d+\.)\s+)+")
_HEADING_SHARE = 0.5
"""The weight of a term in a sentence if the heading above it has the term already."""


@dataclass(frozen=True, slots=True)
class RankedSection:
    """A section of a text that answers a question, with its best sentences."""

    text: int
    """The position of the text."""
    heading: str
    quote: str
    """Sentences of the section that follow each other. Code and items of lists have lines of their own."""
    score: float
    covered: float
    """The share of the weight of the question's own terms, from 0 to 1. Terms that occur nowhere count."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a section in the texts."""

    text: int
    start: int
    end: int
    is_in_code: bool
    """Whether it begins inside a block of code."""


def rank_sections(question: ParsedQuestion, texts: Sequence[str], limit: int) -> list[RankedSection]:
    """Return the sections that answer a question, best first."""
    query = QueryTerms(question.searched_terms, question.kept_stop_terms)
    places = [place for number, text in enumerate(texts) for place in _sections(number, text)]
    counts: dict[str, dict[int, int]] = {}
    for at, place in enumerate(places):
        section = with_word_breaks(texts[place.text][place.start : place.end]).encode("utf-8", "replace")
        for term, found in query.count_terms(section).items():
            counts.setdefault(term, {})[at] = found[0]
    weights = {
        term: wanted * rarity(len(counts[term]), len(places))
        for term, wanted in question.searched_terms.items()
        if term in counts
    }
    scores = bm25_scores(counts, [place.end - place.start for place in places], weights)
    own = sum(weight for term, weight in weights.items() if term in question.terms)
    missing = sum(
        wanted * rarity(1, len(places)) for term, wanted in question.terms.items() if term not in counts
    )
    ranked: list[RankedSection] = []
    for at, place in enumerate(places):
        present = [term for term in weights if at in counts[term]]
        found_weight = sum(weights[term] for term in present if term in question.terms)
        if not present or found_weight / (own or 1.0) < _MIN_COVERAGE:
            continue
        score = scores[at]
        section = texts[place.text][place.start : place.end]
        heading = None if place.is_in_code else _HEADING.match(section)
        in_heading = query.distinct_terms(with_word_breaks(heading[1])) if heading else ()
        if in_heading:
            score *= _HEADING_FACTOR
        body = section[heading.end() :] if heading else section
        left = {term: each * (_HEADING_SHARE if term in in_heading else 1) for term, each in weights.items()}
        quote = _best_sentences(_sentences(body, place.is_in_code), query, left)
        if quote:
            covered = found_weight / ((own + missing) or 1.0)
            title = heading[1].strip() if heading else ""
            score *= 0.5 + found_weight / (own or 1.0)
            ranked.append(RankedSection(place.text, title, quote, score, min(1.0, covered)))
    return sorted(ranked, key=lambda one: (-one.score, one.text, one.quote))[:limit]


def with_word_breaks(text: str) -> str:
    """Return a text whose scripts without blanks are cut into pairs of letters, so that words are found."""
    return _UNBROKEN.sub(lambda run: f" {' '.join(map(''.join, pairwise(run[0])))} ", text)


def _sections(number: int, text: str) -> Iterator[_Place]:
    """Yield the sections of a text: what is below each heading, cut between paragraphs if it is long."""
    fences = [found.start() for found in _FENCE.finditer(text)]

    def is_in_code(at: int) -> bool:
        return bisect(fences, at) % 2 == 1

    headings = (found.start() for found in _HEADING.finditer(text))
    starts = [0, *(at for at in headings if at > 0 and not is_in_code(at))]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        while end - start > _MAX_SECTION_CHARS:
            cut = text.rfind("\n\n", start + _MAX_SECTION_CHARS // 3, start + _MAX_SECTION_CHARS)
            cut = cut if cut > 0 else text.rfind("\n", start + 1, start + _MAX_SECTION_CHARS)
            cut = cut if cut > start else start + _MAX_SECTION_CHARS
            yield _Place(number, start, cut, is_in_code(start - 1))
            start = cut
        if text[start:end].strip():
            yield _Place(number, start, end, is_in_code(start - 1))


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    """Prose on one line; code with its lines."""
    is_code: bool

    @property
    def has_own_line(self) -> bool:
        return self.is_code or bool(_LIST_MARK.match(self.text))

    @property
    def is_introduction(self) -> bool:
        """Whether it announces what follows, such as an example."""
        return not self.is_code and self.text.endswith((":", "\uff1a"))


def _sentences(body: str, is_in_code: bool) -> list[_Sentence]:
    """Return the sentences of a section, and the parts of its code between empty lines."""
    found: list[_Sentence] = []
    for number, block in enumerate(_FENCE.split(body)):
        is_code = (number % 2 == 1) != is_in_code
        for part in (_CODE_PART_END if is_code else _SENTENCE_END).split(block):
            shown = part.replace("```", " ")  # code within a sentence
            text = shown.strip("\n").rstrip() if is_code else " ".join(shown.split())
            if text.strip():
                found.append(_Sentence(text, is_code))
    return found


def _best_sentences(sentences: Sequence[_Sentence], query: QueryTerms, weights: Mapping[str, float]) -> str:
    """Return a short section as a whole; of a long one, neighboring sentences with most of the weight."""
    if sum(len(one.text) + 1 for one in sentences) <= _MAX_QUOTE_CHARS:
        return _LIST_MARK.sub("", _joined(sentences, 0, len(sentences)))
    terms = [
        {term for word in separate_words(with_word_breaks(one.text).encode()).split() for term in query[word]}
        for one in sentences
    ]
    best, best_worth = (0, 0), 0.0
    for first in range(len(sentences)):
        length, seen = 0, set[str]()
        for last in range(first, min(first + 4, len(sentences))):
            length += len(sentences[last].text) + (last > first)
            if length > _MAX_QUOTE_CHARS and last > first:
                break
            seen |= terms[last]
            worth = sum(weights.get(term, 0.0) for term in seen) / (1 + length / 500)
            if worth > best_worth * (1.001 if best_worth else 1.0):
                best, best_worth = (first, last + 1), worth
    return _clip_words(_LIST_MARK.sub("", _joined(sentences, *_with_introduction(sentences, *best))))


def _with_introduction(sentences: Sequence[_Sentence], first: int, after: int) -> tuple[int, int]:
    """Add the sentence that announces a quoted example, and the example that a quoted sentence announces."""

    def size(start: int, end: int) -> int:
        return sum(len(one.text) + 1 for one in sentences[start:end])

    if 0 < first < after and sentences[first].is_code and sentences[first - 1].is_introduction:
        first -= size(first - 1, after) <= _MAX_QUOTE_CHARS
    if first < after < len(sentences) and sentences[after - 1].is_introduction:
        after += size(first, after + 1) <= _MAX_QUOTE_CHARS
    return first, after


def _joined(sentences: Sequence[_Sentence], first: int, after: int) -> str:
    joined = ""
    for before, one in zip((None, *sentences[first:after]), sentences[first:after], strict=False):
        own_line = before is not None and (one.has_own_line or before.has_own_line)
        joined += ("\n" if own_line else " " if before else "") + one.text
    return joined


def _clip_words(text: str) -> str:
    """Cut a long quote after a whole word. Nothing is added: a quote has to be found on its page."""
    if len(text) <= _MAX_QUOTE_CHARS:
        return text
    return re.split(r"\s+\S*$", text[:_MAX_QUOTE_CHARS])[0]


def rank_texts(task: str, texts: Sequence[Mapping[str, float]]) -> list[float]:
    """Return a score for each text, 0 if nothing fits.

    A text is a table of its parts with their weights: a word in a name may count more than one in a
    description. Finds words as questions about code are searched for: by stems, without stop words, and with
    related words.
    """
    question = parse_question(task)
    wanted = question.searched_terms
    query = QueryTerms(wanted, question.kept_stop_terms)
    counts: dict[str, dict[int, float]] = {term: {} for term in wanted}
    sizes: list[float] = []
    for number, parts in enumerate(texts):
        size = 0.0
        for part, weight in parts.items():
            data = part.encode("utf-8", "replace")
            size += weight * len(separate_words(data).split())
            for term, found in query.count_terms(data).items():
                counts[term][number] = counts[term].get(number, 0.0) + weight * sum(found.values())
        sizes.append(size)
    found = {term: weight for term, weight in wanted.items() if counts[term]}
    weights = {term: weight * rarity(len(counts[term]), len(texts)) for term, weight in found.items()}
    scores = bm25_scores(counts, sizes, weights)
    return [scores.get(number, 0.0) for number in range(len(texts))]
