"""Ranks the sections of texts that are no files of a project, such as pages of the web, for a question.

Uses the terms of the question as files do: stems, parts of identifiers, related words, weighted by rarity. A
section is what stands below a heading; a long one is cut between paragraphs. Knows nothing of where a text
comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from retinue.codebase.parse import ParsedQuestion, QueryTerms, separate_words
from retinue.codebase.rank.bm25 import bm25_scores, rarity

_MAX_SECTION_CHARS = 1_600
_HEADING_FACTOR = 1.4
"""How much more a section scores if its heading has a term of the question."""
_MIN_COVERAGE = 0.3
"""A section has at least this share of the weight of the question's own terms."""
_MAX_QUOTE_CHARS = 420
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"'`)\]])|(?<=[.!?][\"'`)\]]{2}))\s+(?=[A-Z0-9`\"'(\[])"
    r"|(?<=[\u3002\uff01\uff1f])\s*(?=\w)|\n\s*\n|\n(?=\s*(?:[-*|>]|\d+\.)\s)|\n(?=```)"
)
_UNBROKEN = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]{2,}")
"""Letters of scripts that write no blanks between words: Thai, Lao, Japanese, Chinese."""
_LIST_MARK = re.compile(r"^(?:(?:[-*>|]|\d+\.)\s+)+")
_CODE = "```"


@dataclass(frozen=True, slots=True)
class RankedSection:
    """A section of a text that answers a question, with its best sentences."""

    text: int
    """The position of the text."""
    heading: str
    quote: str
    """Sentences of the section that follow each other, with single blanks between words."""
    score: float
    covered: float
    """The share of the weight of the question's own terms, from 0 to 1."""


def rank_sections(question: ParsedQuestion, texts: Sequence[str], limit: int) -> list[RankedSection]:
    """Return the sections that answer a question, best first."""
    query = QueryTerms(question.searched_terms, question.kept_stop_terms)
    places = [(number, start, end) for number, text in enumerate(texts) for start, end in _sections(text)]
    counts: dict[str, dict[int, int]] = {}
    for place, (number, start, end) in enumerate(places):
        section = with_word_breaks(texts[number][start:end]).encode("utf-8", "replace")
        for term, found in query.count_terms(section).items():
            counts.setdefault(term, {})[place] = found[0]
    weights = {
        term: wanted * rarity(len(counts[term]), len(places))
        for term, wanted in question.searched_terms.items()
        if term in counts
    }
    scores = bm25_scores(counts, [end - start for _, start, end in places], weights)
    own = sum(weight for term, weight in weights.items() if term in question.terms)
    ranked: list[RankedSection] = []
    for place, (number, start, end) in enumerate(places):
        present = [term for term in weights if place in counts[term]]
        covered = sum(weights[term] for term in present if term in question.terms) / (own or 1.0)
        if not present or covered < _MIN_COVERAGE:
            continue
        score = scores[place]
        section = texts[number][start:end]
        heading = _HEADING.match(section)
        if heading and query.distinct_terms(with_word_breaks(heading[1])):
            score *= _HEADING_FACTOR
        quote = _best_sentences(section, query, weights)
        if quote:
            title = heading[1].strip() if heading else ""
            ranked.append(RankedSection(number, title, quote, score * (0.5 + covered), min(1.0, covered)))
    return sorted(ranked, key=lambda one: (-one.score, one.text, one.quote))[:limit]


def with_word_breaks(text: str) -> str:
    """Return a text whose scripts without blanks are cut into pairs of letters, so that words are found."""
    return _UNBROKEN.sub(lambda run: f" {' '.join(map(''.join, pairwise(run[0])))} ", text)


def _sections(text: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each section."""
    starts = [0, *(found.start() for found in _HEADING.finditer(text) if found.start() > 0)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        while end - start > _MAX_SECTION_CHARS:
            cut = text.rfind("\n\n", start + _MAX_SECTION_CHARS // 3, start + _MAX_SECTION_CHARS)
            cut = cut if cut > 0 else text.rfind("\n", start + 1, start + _MAX_SECTION_CHARS)
            cut = cut if cut > start else start + _MAX_SECTION_CHARS
            yield start, cut
            start = cut
        if text[start:end].strip():
            yield start, end


def _best_sentences(section: str, query: QueryTerms, weights: Mapping[str, float]) -> str:
    """Return the sentences that follow each other and have most of the weight, without the heading."""
    body = _HEADING.sub("", section, count=1) if _HEADING.match(section) else section
    sentences = [" ".join(part.replace(_CODE, " ").split()) for part in _SENTENCE_END.split(body) if part]
    sentences = [one for one in sentences if one]
    if not sentences:
        return ""
    terms = [
        {term for word in separate_words(with_word_breaks(one).encode()).split() for term in query[word]}
        for one in sentences
    ]
    best, best_worth = "", 0.0
    for first in range(len(sentences)):
        joined, seen = "", set[str]()
        for at in range(first, min(first + 4, len(sentences))):
            joined = f"{joined} {sentences[at]}".strip()
            if len(joined) > _MAX_QUOTE_CHARS and at > first:
                break
            seen |= terms[at]
            worth = sum(weights.get(term, 0.0) for term in seen) / (1 + len(joined) / 500)
            if worth > best_worth * (1.001 if best else 1.0):
                best, best_worth = joined, worth
    return _clip_words(_LIST_MARK.sub("", best))


def _clip_words(text: str) -> str:
    """Cut a long quote after a whole word. Nothing is added: a quote has to be found on its page."""
    if len(text) <= _MAX_QUOTE_CHARS:
        return text
    return text[:_MAX_QUOTE_CHARS].rsplit(" ", 1)[0]
