"""Ranks files by how well they answer a question: a weighted sum of signals.

Each signal is divided by its largest value before the sum, so that weights are comparable. Signals that cost
little choose a shortlist among all files; the definitions of the shortlist are scored too. Pure functions
from evidence to ranked files. Knows nothing of where the evidence comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import sub

from retinue.codebase.index import Evidence, FileDetail
from retinue.codebase.parse import FileCategory, ParsedQuestion, file_category, name_without_suffix
from retinue.codebase.rank.bm25 import K1, bm25_scores, length_damping, rarity
from retinue.codebase.rank.definitions import RankedDefinition, name_matches, rank_definitions
from retinue.codebase.rank.named_files import find_named_files

_TYPICAL_CHUNK_BYTES = 900.0
_COUNTED_CHUNKS = 10
SHORTLIST_FILES = 60
_MAX_TERMS = 60
_MIN_SELECTIVE_SHARE = 0.1
"""Terms below this share of the heaviest term's weight are too common to be counted inside chunks."""

_WORDS_WEIGHT = 0.37
"""The weight of a file's words as long as its definitions are not known."""
_PATH_WEIGHTS = {"name": 0.07, "folder": 0.05, "mentioned": 0.06, "traced": 0.15}
_WEIGHTS = {
    "words": 0.08,
    "chunk": 0.17,
    "chunks": 0.12,
    "symbols": 0.11,
    "pairs": 0.09,
    "defined": 0.06,
    **_PATH_WEIGHTS,
}

_FACTORS: Mapping[FileCategory, float] = {
    "own": 1.0,
    "package": 0.85,
    "vendored": 0.5,
    "example": 0.5,
    "config": 0.5,
    "test": 0.35,
    "docs": 0.35,
}
"""Factors for scores: a bug report is rarely about a test, a documentation page or third-party code."""
_TEST_FACTOR_IN_QUESTION = 0.8

Scores = dict[int, float]
"""A number for each file. For a missing file it is 0."""


@dataclass(frozen=True, slots=True)
class RankedFile:
    """One file of a ranking."""

    file: int
    """Position in the paths of the evidence."""
    score: float
    definitions: Sequence[RankedDefinition]
    """The definitions that answer best, best first; never empty."""
    detail: FileDetail
    is_named: bool
    """Whether the question names the file or a line of it."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The files that answer a question."""

    best: Sequence[RankedFile]
    """Best first; ties by path."""
    weights: Mapping[str, float]
    """The weight of each term that was found, heaviest first."""


def rank_files(question: ParsedQuestion, evidence: Evidence, limit: int) -> Ranking:
    """Rank the files that answer a question, and the definitions of the `limit` best."""
    paths = evidence.paths
    weights = _term_weights(question, evidence)
    signals = _file_signals(question, evidence, weights)
    named = signals["mentioned"].keys() | signals["traced"].keys()
    scores = _weighted_sum(signals, {"words": _WORDS_WEIGHT, **_PATH_WEIGHTS})
    shortlist = _shortlist(scores, paths, question)
    least = _MIN_SELECTIVE_SHARE * max(weights.values(), default=0.0)
    selective = {term: weight for term, weight in weights.items() if weight >= least}
    details = evidence.details(shortlist, selective)
    chunk_scores = {file: _chunk_scores(detail, selective) for file, detail in details.items()}
    matches = name_matches(details.values(), weights)
    signals |= _definition_signals(question, details, chunk_scores, matches)
    signals["pairs"] = _pair_signal(question, weights, details, paths)
    summed = _weighted_sum(signals, _WEIGHTS)
    scores = {file: summed.get(file, 0.0) * _category_factor(paths[file], question) for file in shortlist}
    best = sorted(shortlist, key=lambda file: (-scores[file], paths[file]))[:limit]
    found = rank_definitions(best, scores, details, chunk_scores, matches, paths)
    files = [RankedFile(file, scores[file], found[file], details[file], file in named) for file in best]
    return Ranking(files, weights)


def _term_weights(question: ParsedQuestion, evidence: Evidence) -> dict[str, float]:
    """Return the weight of each term: its rarity, times its weight in the question. Heaviest terms only."""
    total = len(evidence.paths)
    found = {
        term: weight * rarity(len(files), total)
        for term, weight in question.searched_terms.items()
        if weight and (files := evidence.counts[term])
    }
    heaviest = sorted(found, key=lambda term: (-found[term], term))[:_MAX_TERMS]
    return {term: found[term] for term in heaviest}


def _file_signals(
    question: ParsedQuestion, evidence: Evidence, weights: Mapping[str, float]
) -> dict[str, Scores]:
    """Return the signals that need no definitions, by name, for all files."""
    in_name, in_folders = evidence.path_terms()
    names: Scores = {}
    folders: Scores = {}
    for term, weight in question.searched_terms.items():
        name_files, folder_files = in_name.get(term, ()), in_folders.get(term, ())
        worth = weight * rarity(len({*name_files, *folder_files}), len(evidence.paths))
        for files, signal in ((name_files, names), (folder_files, folders)):
            for file in files:
                signal[file] = signal.get(file, 0.0) + worth
    mentioned, traced = find_named_files(question, evidence.paths)
    words = bm25_scores(evidence.counts, evidence.sizes, weights)
    return {"words": words, "name": names, "folder": folders, "mentioned": mentioned, "traced": traced}


def _weighted_sum(signals: Mapping[str, Scores], weights: Mapping[str, float]) -> Scores:
    """Return the weighted sum of the signals, each divided by its largest value."""
    total: Scores = {}
    for name, weight in weights.items():
        largest = max(signals[name].values(), default=0.0)
        for file, value in signals[name].items() if largest else ():
            total[file] = total.get(file, 0.0) + weight * value / largest
    return total


def _shortlist(scores: Scores, paths: Sequence[str], question: ParsedQuestion) -> list[int]:
    """Return the best files, with their category taken into account.

    Determines the category of the most promising files only, because that is slow for thousands of files.
    """
    front = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[: SHORTLIST_FILES * 5]
    weighted = {file: scores[file] * _category_factor(paths[file], question) for file in front}
    return sorted(weighted, key=lambda file: (-weighted[file], paths[file]))[:SHORTLIST_FILES]


def _category_factor(path: str, question: ParsedQuestion) -> float:
    """Return the factor for the score of a file: 1, or less for a file that is ranked lower."""
    category = file_category(path)
    if category in question.wanted_categories:
        return 1.0
    if category == "test" and question.is_question:
        return _TEST_FACTOR_IN_QUESTION
    return _FACTORS[category]


def _definition_signals(
    question: ParsedQuestion,
    details: Mapping[int, FileDetail],
    chunk_scores: Mapping[int, Mapping[int, float]],
    matches: Mapping[str, float],
) -> dict[str, Scores]:
    """Return the signals of the definitions of some files, by name."""
    signals: dict[str, Scores] = {"chunk": {}, "chunks": {}, "symbols": {}, "defined": {}}
    defined = {file: sorted(detail.name_terms.keys() & question.names) for file, detail in details.items()}
    definers = Counter(name for names in defined.values() for name in names)
    for file, detail in details.items():
        if best := sorted(chunk_scores[file].values(), reverse=True)[:_COUNTED_CHUNKS]:
            signals["chunk"][file] = best[0]
            signals["chunks"][file] = sum(score / (place + 1) for place, score in enumerate(best))
        matching = [matches[terms] for terms in detail.name_terms.values() if terms in matches]
        if matching:
            best = sorted(matching, reverse=True)[:3]
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(best))
        if defined[file]:
            signals["defined"][file] = sum(
                question.names[one] / definers[one] ** 0.5 for one in defined[file]
            )
    return signals


def _pair_signal(
    question: ParsedQuestion,
    weights: Mapping[str, float],
    details: Mapping[int, FileDetail],
    paths: Sequence[str],
) -> Scores:
    """Score the files with a name in which two neighbouring words of the question are neighbours too."""
    signal: Scores = {}
    for file, detail in details.items():
        names = "\n".join((*detail.name_terms, name_without_suffix(paths[file]))).replace("_", "").lower()
        found = {terms for pair, terms in question.pairs.items() if pair in names}
        if worth := sum(sorted(weights.get(term, 0.0) for terms in found for term in terms)):
            signal[file] = worth
    return signal


def _chunk_scores(detail: FileDetail, weights: Mapping[str, float]) -> dict[int, float]:
    """Return the BM25 score of each chunk of one file that contains a term."""
    scores: dict[int, float] = {}
    damping = length_damping(map(sub, detail.starts[1:], detail.starts), _TYPICAL_CHUNK_BYTES)
    full = K1 + 1
    for term in sorted(detail.hits.keys() & weights.keys()):
        weight = weights[term]
        for chunk, count in detail.hits[term].items():
            scores[chunk] = scores.get(chunk, 0.0) + weight * (count * full / (count + damping[chunk]))
    return scores
