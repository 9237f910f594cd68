"""What the definitions of the shortlisted files say of a question, and on which line each says it best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import sub

from retinue.codebase.index import FileDetail
from retinue.codebase.parse import ParsedQuestion

K1, B = 1.2, 0.75
_TYPICAL_CHUNK_BYTES = 900.0
"""An ordinary definition; lengths are judged against it."""
_COUNTED_CHUNKS = 10
_DEFINITION_SIGNALS = ("chunk", "chunks", "symbols", "defined", "compound", "pairs")

SignalValues = dict[int, float]
"""File to value; a file that is missing has none."""


def length_damping(lengths: Iterable[int], ordinary: float) -> list[float]:
    """BM25's: `count * (K1 + 1) / (count + damping)` grows ever slower, and slower still in a long text."""
    return [K1 * (1 - B + B * (length / ordinary)) for length in lengths]


@dataclass(frozen=True, slots=True)
class DefinitionScores:
    signals: dict[str, SignalValues]
    lines: dict[int, int]


def score_definitions(
    question: ParsedQuestion,
    details: Mapping[int, FileDetail],
    weights: Mapping[str, float],
    telling: Mapping[str, float],
    paths: Mapping[int, str],
) -> DefinitionScores:
    """`telling` are those of the terms whose places count."""
    mentioned = {file: sorted(detail.name_terms.keys() & question.names) for file, detail in details.items()}
    rivals = Counter(name for of_file in mentioned.values() for name in of_file)
    flat = {file: _flat_names(detail, paths[file]) for file, detail in details.items()}
    pairs = _pair_weights(question, weights, "\n".join(flat.values()))
    signals: dict[str, SignalValues] = {name: {} for name in _DEFINITION_SIGNALS}
    lines: dict[int, int] = {}
    fits = _name_fits(details.values(), weights)
    for file, detail in details.items():
        scores = _chunk_scores(detail, telling)
        if scores:
            # Chunks in order first: sorting is stable, so of equals the first comes first.
            best = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:_COUNTED_CHUNKS]
            signals["chunk"][file] = scores[best[0]]
            signals["chunks"][file] = sum(scores[chunk] / (place + 1) for place, chunk in enumerate(best))
            lines[file] = detail.lines[best[0]]
        if symbols := sorted(
            [fits[terms] for terms in detail.name_terms.values() if terms in fits], reverse=True
        )[:3]:
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(symbols))
        if named := mentioned[file]:
            shares = [question.names[name] / rivals[name] ** 0.5 * _name_weight(name) for name in named]
            signals["defined"][file] = sum(shares)
            lines[file] = _line_of(detail, named[shares.index(max(shares))])
        if compounds := len(question.compounds.intersection(flat[file].split("\n"))):
            signals["compound"][file] = float(compounds)
        if inside := {terms: worth for pair, (terms, worth) in pairs.items() if pair in flat[file]}:
            signals["pairs"][file] = sum(inside.values())
    return DefinitionScores(signals, lines)


def _pair_weights(
    question: ParsedQuestion, weights: Mapping[str, float], names: str
) -> dict[str, tuple[tuple[str, str], float]]:
    """Neighbours in the question that are neighbours in some name, with what both words are worth."""
    worth = {terms: sum(weights.get(term, 0.0) for term in terms) for terms in question.pairs.values()}
    return {
        pair: (terms, worth[terms])
        for pair, terms in question.pairs.items()
        if worth[terms] and pair in names
    }


def _name_weight(name: str) -> float:
    """`__init__` is defined everywhere."""
    return 0.3 if name.startswith("__") else 1.0


def _line_of(detail: FileDetail, name: str) -> int:
    return detail.lines[detail.names.index(name)]


def _flat_names(detail: FileDetail, path: str) -> str:
    """Every defined name and the file's own, a line each, in lower case and without underscores."""
    own = path.rpartition("/")[2].partition(".")[0].replace("-", "")
    return "\n".join([*detail.name_terms, own]).replace("_", "").lower()


def _name_fits(details: Iterable[FileDetail], weights: Mapping[str, float]) -> dict[str, float]:
    """How well names fit, by their terms: those asked for, times the share they are of all. Most do not."""
    fits: dict[str, float] = {}
    has_none = weights.keys().isdisjoint
    for terms in set[str]().union(*(detail.name_terms.values() for detail in details)):
        own = terms.split()
        if not has_none(own):
            shared = sorted([term for term in own if term in weights])
            fits[terms] = sum([weights[term] for term in shared]) * len(shared) / len(own)
    return fits


def _chunk_scores(detail: FileDetail, weights: Mapping[str, float]) -> dict[int, float]:
    """BM25 over the definitions of one file."""
    scores: dict[int, float] = {}
    damping = length_damping(map(sub, detail.starts[1:], detail.starts), _TYPICAL_CHUNK_BYTES)
    full = K1 + 1
    for term in sorted(detail.hits.keys() & weights.keys()):
        weight = weights[term]
        for chunk, count in detail.hits[term].items():
            value = weight * (count * full / (count + damping[chunk]))
            scores[chunk] = scores.get(chunk, 0.0) + value
    return scores
