"""What the definitions of the shortlisted files say of a question, and on which line each says it best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from retinue.codebase.evidence import Detail
from retinue.codebase.question import Question
from retinue.codebase.terms import Asked, Vocabulary, words

K1, B = 1.2, 0.75
_ORDINARY_BYTES = 900.0
"""An ordinary definition; lengths are judged against it."""
_COUNTED_CHUNKS = 10

Signal = dict[int, float]
"""File to value; a file that is missing has none."""


def saturated(count: float, length: float) -> float:
    """BM25's term: more occurrences count ever less, and less still in a long text."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length))


@dataclass(frozen=True, slots=True)
class CloseUp:
    signals: dict[str, Signal]
    lines: dict[int, int]


def close_up(
    question: Question, details: Mapping[int, Detail], weights: Mapping[str, float], paths: Mapping[int, str]
) -> CloseUp:
    names = {file: {chunk.name for chunk in detail.chunks if chunk.name} for file, detail in details.items()}
    rivals = Counter(name for of_file in names.values() for name in of_file)
    signals: dict[str, Signal] = {name: {} for name in ("chunk", "chunks", "symbols", "defined", "compound")}
    lines: dict[int, int] = {}
    name_terms = _NameTerms(weights)
    for file, detail in details.items():
        scores = _chunk_scores(detail, weights)
        if scores:
            best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:_COUNTED_CHUNKS]
            signals["chunk"][file] = scores[best[0]]
            signals["chunks"][file] = sum(scores[chunk] / (place + 1) for place, chunk in enumerate(best))
            lines[file] = detail.chunks[best[0]].line
        fits = [name_terms.value(name) for name in names[file]]
        if symbols := sorted((fit for fit in fits if fit), reverse=True)[:3]:
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(symbols))
        if named := sorted(names[file] & question.names.keys()):
            shares = [question.names[name] / rivals[name] ** 0.5 * _telling(name) for name in named]
            signals["defined"][file] = sum(shares)
            lines[file] = _line_of(detail, named[shares.index(max(shares))])
        flat = {name.replace("_", "").lower() for name in names[file]} | {_flat_name(paths[file])}
        if compounds := len(flat & question.compounds):
            signals["compound"][file] = float(compounds)
    return CloseUp(signals, lines)


def _telling(name: str) -> float:
    """`__init__` is defined everywhere."""
    return 0.3 if name.startswith("__") else 1.0


def _line_of(detail: Detail, name: str) -> int:
    return next(chunk.line for chunk in detail.chunks if chunk.name == name)


def _flat_name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("_", "").replace("-", "").lower()


class _NameTerms:
    """How well a defined name fits the question: its asked terms, times the share they are of the name."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._asked = Asked(weights)
        self._vocabulary = Vocabulary()
        self._known: dict[str, float] = {}

    def value(self, name: str) -> float:
        if name not in self._known:
            self._known[name] = self._value(name)
        return self._known[name]

    def _value(self, name: str) -> float:
        split = words(name.encode()).split()
        shared = sorted({term for word in split for term in self._asked[word]})
        if not shared:
            return 0.0
        own = {term for word in split for term in self._vocabulary[word].split()}
        return sum(self._weights[term] for term in shared) * len(shared) / len(own)


def _chunk_scores(detail: Detail, weights: Mapping[str, float]) -> dict[int, float]:
    """BM25 over the definitions of one file."""
    scores: dict[int, float] = {}
    chunks = detail.chunks
    for term in sorted(detail.hits.keys() & weights.keys()):
        weight = weights[term]
        for number, count in detail.hits[term].items():
            chunk = chunks[number]
            value = weight * saturated(count, (chunk.end - chunk.start) / _ORDINARY_BYTES)
            scores[number] = scores.get(number, 0.0) + value
    return scores
