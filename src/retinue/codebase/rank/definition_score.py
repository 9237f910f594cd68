"""Scores the definitions of the shortlisted files, and finds the line of each file that answers best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import sub

from retinue.codebase.index import FileDetail
from retinue.codebase.parse import ParsedQuestion

K1, B = 1.2, 0.75
"""The parameters of BM25."""
_TYPICAL_CHUNK_BYTES = 900.0
_COUNTED_CHUNKS = 10
_DEFINITION_SIGNALS = ("chunk", "chunks", "symbols", "defined", "compound", "pairs")

SignalValues = dict[int, float]
"""The value of a signal for each file. Missing files have none."""


def length_damping(lengths: Iterable[int], typical: float) -> list[float]:
    """Return BM25's damping for each length.

    In `count * (K1 + 1) / (count + damping)`, further occurrences add less and less, and less in a long text.
    """
    return [K1 * (1 - B + B * (length / typical)) for length in lengths]


@dataclass(frozen=True, slots=True)
class DefinitionScores:
    signals: dict[str, SignalValues]
    lines: dict[int, int]
    """The line of each file that answers best."""


def score_definitions(
    question: ParsedQuestion,
    details: Mapping[int, FileDetail],
    weights: Mapping[str, float],
    selective: Mapping[str, float],
    paths: Mapping[int, str],
) -> DefinitionScores:
    """Score the definitions of some files. Only `selective` terms count inside chunks."""
    defined_names = {
        file: sorted(detail.name_terms.keys() & question.names) for file, detail in details.items()
    }
    definers = Counter(name for of_file in defined_names.values() for name in of_file)
    flat_names = {file: _flat_names(detail, paths[file]) for file, detail in details.items()}
    pairs = _pair_weights(question, weights, "\n".join(flat_names.values()))
    signals: dict[str, SignalValues] = {name: {} for name in _DEFINITION_SIGNALS}
    lines: dict[int, int] = {}
    fits = _name_fits(details.values(), weights)
    for file, detail in details.items():
        scores = _chunk_scores(detail, selective)
        if scores:
            # Sort by position first: the second sort is stable, so the first of equal chunks stays first.
            best = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:_COUNTED_CHUNKS]
            signals["chunk"][file] = scores[best[0]]
            signals["chunks"][file] = sum(scores[chunk] / (place + 1) for place, chunk in enumerate(best))
            lines[file] = detail.lines[best[0]]
        if symbols := sorted(
            [fits[terms] for terms in detail.name_terms.values() if terms in fits], reverse=True
        )[:3]:
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(symbols))
        if names := defined_names[file]:
            shares = [question.names[name] / definers[name] ** 0.5 * _name_weight(name) for name in names]
            signals["defined"][file] = sum(shares)
            best_name = names[shares.index(max(shares))]
            lines[file] = detail.lines[detail.names.index(best_name)]
        if compounds := len(question.compounds.intersection(flat_names[file].split("\n"))):
            signals["compound"][file] = float(compounds)
        if found := {terms: weight for pair, (terms, weight) in pairs.items() if pair in flat_names[file]}:
            signals["pairs"][file] = sum(found.values())
    return DefinitionScores(signals, lines)


def _pair_weights(
    question: ParsedQuestion, weights: Mapping[str, float], names: str
) -> dict[str, tuple[tuple[str, str], float]]:
    """Return the neighbouring words of the question that are neighbours in some name, with their weight."""
    worth = {terms: sum(weights.get(term, 0.0) for term in terms) for terms in question.pairs.values()}
    return {
        pair: (terms, worth[terms])
        for pair, terms in question.pairs.items()
        if worth[terms] and pair in names
    }


def _name_weight(name: str) -> float:
    """Return a low weight for names such as `__init__`, which are defined everywhere."""
    return 0.3 if name.startswith("__") else 1.0


def _flat_names(detail: FileDetail, path: str) -> str:
    """Return all defined names and the file's name, one per line, in lower case and without underscores."""
    file_name = path.rpartition("/")[2].partition(".")[0].replace("-", "")
    return "\n".join([*detail.name_terms, file_name]).replace("_", "").lower()


def _name_fits(details: Iterable[FileDetail], weights: Mapping[str, float]) -> dict[str, float]:
    """Return how well defined names fit the question, by their terms. Names without a wanted term are left
    out.

    The fit is the weight of the wanted terms, times their share of all terms of the name.
    """
    fits: dict[str, float] = {}
    has_none = weights.keys().isdisjoint
    for terms in set[str]().union(*(detail.name_terms.values() for detail in details)):
        own = terms.split()
        if not has_none(own):
            shared = sorted([term for term in own if term in weights])
            fits[terms] = sum([weights[term] for term in shared]) * len(shared) / len(own)
    return fits


def _chunk_scores(detail: FileDetail, weights: Mapping[str, float]) -> dict[int, float]:
    """Return the BM25 score of each chunk of one file that contains a term."""
    scores: dict[int, float] = {}
    damping = length_damping(map(sub, detail.starts[1:], detail.starts), _TYPICAL_CHUNK_BYTES)
    full = K1 + 1
    for term in sorted(detail.hits.keys() & weights.keys()):
        weight = weights[term]
        for chunk, count in detail.hits[term].items():
            value = weight * (count * full / (count + damping[chunk]))
            scores[chunk] = scores.get(chunk, 0.0) + value
    return scores
