"""What the definitions of the shortlisted files say of a question, and on which line each says it best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from retinue.codebase.evidence import Detail
from retinue.codebase.question import Question

K1, B = 1.2, 0.75
_ORDINARY_BYTES = 900.0
"""An ordinary definition; lengths are judged against it."""
_COUNTED_CHUNKS = 10
_SIGNALS = ("chunk", "chunks", "symbols", "defined", "compound", "pairs")

Signal = dict[int, float]
"""File to value; a file that is missing has none."""


def saturated(count: float, length: float) -> float:
    """BM25's term: more occurrences count ever less, and less still in a long text."""
    return count * (K1 + 1) / (count + length_damping(length))


def length_damping(length: float) -> float:
    return K1 * (1 - B + B * length)


@dataclass(frozen=True, slots=True)
class CloseUp:
    signals: dict[str, Signal]
    lines: dict[int, int]


def close_up(
    question: Question,
    details: Mapping[int, Detail],
    weights: Mapping[str, float],
    telling: Mapping[str, float],
    paths: Mapping[int, str],
) -> CloseUp:
    """`telling` are those of the terms whose places count."""
    mentioned = {file: sorted(detail.name_terms.keys() & question.names) for file, detail in details.items()}
    rivals = Counter(name for of_file in mentioned.values() for name in of_file)
    flat = {file: _flat_names(detail, paths[file]) for file, detail in details.items()}
    pairs = _worth_of_pairs(question, weights, "\n".join(flat.values()))
    signals: dict[str, Signal] = {name: {} for name in _SIGNALS}
    lines: dict[int, int] = {}
    fits_of = _Fits(weights)
    for file, detail in details.items():
        scores = _chunk_scores(detail, telling)
        if scores:
            best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:_COUNTED_CHUNKS]
            signals["chunk"][file] = scores[best[0]]
            signals["chunks"][file] = sum(scores[chunk] / (place + 1) for place, chunk in enumerate(best))
            lines[file] = detail.chunks[best[0]].line
        fits = [fits_of[terms] for terms in detail.name_terms.values()]
        if symbols := sorted((fit for fit in fits if fit), reverse=True)[:3]:
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(symbols))
        if named := mentioned[file]:
            shares = [question.names[name] / rivals[name] ** 0.5 * _telling(name) for name in named]
            signals["defined"][file] = sum(shares)
            lines[file] = _line_of(detail, named[shares.index(max(shares))])
        if compounds := len(question.compounds.intersection(flat[file].split("\n"))):
            signals["compound"][file] = float(compounds)
        if inside := {terms: worth for pair, (terms, worth) in pairs.items() if pair in flat[file]}:
            signals["pairs"][file] = sum(inside.values())
    return CloseUp(signals, lines)


def _worth_of_pairs(
    question: Question, weights: Mapping[str, float], names: str
) -> dict[str, tuple[tuple[str, str], float]]:
    """Neighbours in the question that are neighbours in some name, with what both words are worth."""
    worth = {terms: sum(weights.get(term, 0.0) for term in terms) for terms in question.pairs.values()}
    return {
        pair: (terms, worth[terms])
        for pair, terms in question.pairs.items()
        if worth[terms] and pair in names
    }


def _telling(name: str) -> float:
    """`__init__` is defined everywhere."""
    return 0.3 if name.startswith("__") else 1.0


def _line_of(detail: Detail, name: str) -> int:
    return next(chunk.line for chunk in detail.chunks if chunk.name == name)


def _flat_names(detail: Detail, path: str) -> str:
    """Every defined name and the file's own, a line each, in lower case and without underscores."""
    own = path.rpartition("/")[2].partition(".")[0].replace("-", "")
    return "\n".join([*detail.name_terms, own]).replace("_", "").lower()


class _Fits(dict[str, float]):
    """How well a name fits, by its terms: those asked for, times the share they are of all."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, terms: str) -> float:
        own = terms.split()
        value = 0.0
        if not self._weights.keys().isdisjoint(own):  # it mostly is
            shared = sorted(self._weights.keys() & own)
            value = sum(self._weights[term] for term in shared) * len(shared) / len(own)
        self[terms] = value
        return value


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
