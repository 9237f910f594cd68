"""Which files answer a question: a weighted sum of simple signals, each of which can say why.

Pure: evidence in, ranked files out. Knows nothing of where the evidence comes from.

Two passes. The first looks at every file through numbers that are cheap to have: words, path, mentions,
history. The second looks at the shortlist's definitions and at what stands near the strongest of them. Each
signal is divided by its largest value before the sum, so weights compare. A fit of names is divided by no
less than a fair share of the question: else one common word in a file's name would count as all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from retinue.codebase.index import CommitEvidence, Evidence, FileDetail
from retinue.codebase.parse import FileCategory, ParsedQuestion, file_category
from retinue.codebase.rank.definition_score import K1, SignalValues, length_damping, score_definitions
from retinue.codebase.rank.path_signals import mentioned_files, neighbour_signals
from retinue.core import counted

SHORTLIST_FILES = 80
_COMPANION_RANKS = 10
_MAX_TERMS = 60
_MIN_SELECTIVE_SHARE = 0.1
"""Of what the heaviest term is worth."""

FIRST_PASS_WEIGHTS = {
    "words": 0.33,
    "name": 0.12,
    "folder": 0.05,
    "said": 0.05,
    "traced": 0.10,
    "history": 0.06,
}
SECOND_PASS_WEIGHTS = {
    "words": 0.08,
    "chunk": 0.17,
    "chunks": 0.12,
    "name": 0.07,
    "folder": 0.08,
    "symbols": 0.11,
    "defined": 0.06,
    "compound": 0.08,
    "pairs": 0.05,
    "said": 0.06,
    "traced": 0.15,
    "history": 0.07,
}
NEIGHBOUR_WEIGHTS = {"imports": 0.04, "imported": 0.05, "beside": 0.03}
_MIN_NORMALISER = {"name": 0.5, "folder": 0.5, "symbols": 0.25}
"""Of what the three heaviest terms are worth together."""
_HEAVIEST_TERMS = 3

CATEGORY_FACTORS: dict[FileCategory, float] = {
    "own": 1.0,
    "test": 0.35,
    "vendored": 0.5,
    "example": 0.5,
    "docs": 0.35,
    "config": 0.5,
    "package": 0.85,
}
"""What a bug report is about is seldom a test, a page of documentation or somebody else's code."""
_TEST_FACTOR_IN_QUESTION, _TEST_FACTOR_IF_ASKED = 0.8, 0.9
_TEST_TERMS = ("test", "fixtur", "pytest", "unittest")


@dataclass(frozen=True, slots=True)
class RankedFile:
    file: int
    score: float
    line: int


@dataclass(frozen=True, slots=True)
class Ranking:
    best: Sequence[RankedFile]
    """Best first; ties by path."""
    signals: Mapping[str, SignalValues]
    details: Mapping[int, FileDetail]
    weights: Mapping[str, float]
    """The terms that were looked for and found, with what each is worth."""
    counts: Mapping[str, Mapping[int, int]]
    """Term to file to how often."""
    companions: Mapping[int, int]
    """File to the best file that a commit on the question changed together with it."""


def rank_files(question: ParsedQuestion, evidence: Evidence, past: CommitEvidence) -> Ranking:
    paths = evidence.paths
    weights = term_weights(question, evidence)
    first = first_signals(question, evidence, past, weights)
    least = _min_normalisers(weights)
    shortlist = _shortlist(weighted_sum(first, FIRST_PASS_WEIGHTS, least), paths, question)
    telling = _selective_terms(weights)
    details = evidence.details(shortlist, telling)
    close = score_definitions(question, details, weights, telling, {file: paths[file] for file in shortlist})
    kept = set(shortlist)
    signals = {
        name: {file: value for file, value in signal.items() if file in kept}
        for name, signal in first.items()
    } | close.signals
    scores = weighted_sum(signals, SECOND_PASS_WEIGHTS, least)
    standing = {file: _category_factor(paths[file], question) for file in shortlist}
    judged = {file: scores[file] * standing[file] for file in scores}
    signals |= neighbour_signals(judged, details, paths)
    for file, value in weighted_sum(signals, NEIGHBOUR_WEIGHTS, least).items():
        scores[file] = scores.get(file, 0.0) + value
    final = {file: score * standing[file] for file, score in scores.items()}
    order = sorted(final, key=lambda file: (-final[file], paths[file]))
    best = [RankedFile(file, final[file], close.lines.get(file, 1)) for file in order]
    return Ranking(best, signals, details, weights, evidence.counts, _companions(order, past, paths))


def term_weights(question: ParsedQuestion, evidence: Evidence) -> dict[str, float]:
    """Rarity times where in the question the term stands; the heaviest terms only."""
    total = len(evidence.paths)
    found = {
        term: question.terms[term] * rarity(len(files), total)
        for term, files in evidence.counts.items()
        if files
    }
    heaviest = sorted(found, key=lambda term: (-found[term], term))[:_MAX_TERMS]
    return {term: found[term] for term in heaviest}


def _selective_terms(weights: Mapping[str, float]) -> dict[str, float]:
    """The terms whose places within files matter: common ones have most of all places, and tell least."""
    least = _MIN_SELECTIVE_SHARE * max(weights.values(), default=0.0)
    return {term: weight for term, weight in weights.items() if weight >= least}


def rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def first_signals(
    question: ParsedQuestion, evidence: Evidence, past: CommitEvidence, weights: Mapping[str, float]
) -> dict[str, SignalValues]:
    name, folder = _path_term_signals(question, evidence)
    said, traced = mentioned_files(question, evidence.paths)
    return {
        "words": _bm25_signal(evidence, weights),
        "name": name,
        "folder": folder,
        "said": said,
        "traced": traced,
        "history": _history_signal(question, evidence.paths, past),
    }


def _bm25_signal(evidence: Evidence, weights: Mapping[str, float]) -> SignalValues:
    """BM25 over whole files."""
    sizes = evidence.sizes
    average = sum(sizes) / max(1, len(sizes)) or 1.0
    damping = length_damping(sizes, average)
    scores: SignalValues = {}
    for term, weight in weights.items():
        full = weight * (K1 + 1)
        for file, count in evidence.counts[term].items():
            scores[file] = scores.get(file, 0.0) + full * count / (count + damping[file])
    return scores


def _path_term_signals(question: ParsedQuestion, evidence: Evidence) -> tuple[SignalValues, SignalValues]:
    """The question's terms in a file's name and in its folders, rarer ones more."""
    in_name, in_folders = evidence.path_words()
    names: SignalValues = {}
    folders: SignalValues = {}
    for term, weight in question.terms.items():
        of_name, of_folders = in_name.get(term, ()), in_folders.get(term, ())
        worth = weight * rarity(len({*of_name, *of_folders}), len(evidence.paths))
        for files, signal in ((of_name, names), (of_folders, folders)):
            for file in files:
                signal[file] = signal.get(file, 0.0) + worth
    return names, folders


def _history_signal(question: ParsedQuestion, paths: Sequence[str], past: CommitEvidence) -> SignalValues:
    """Votes of the commits whose message speaks of the same things."""
    if not past.changes:
        return {}
    rare = {
        term: question.terms[term] * math.log(1 + past.commits / (1 + count))
        for term, count in past.frequency.items()
    }
    by_path: dict[str, float] = {}
    for change in past.changes:
        match = sum(sorted(rare[term] for term in change.terms))
        vote = match * match / (1 + 0.05 * change.words) / len(change.paths) ** 0.5
        for path in change.paths:
            by_path[path] = by_path.get(path, 0.0) + vote
    changed = compress(range(len(paths)), map(by_path.__contains__, paths))
    return {file: by_path[paths[file]] for file in changed}


def _companions(order: Sequence[int], past: CommitEvidence, paths: Sequence[str]) -> dict[int, int]:
    place = {paths[file]: rank for rank, file in enumerate(order)}
    found: dict[int, int] = {}
    for change in past.changes:
        together = sorted(place[path] for path in change.paths if path in place)
        for rank in together:
            other = together[0] if rank != together[0] else together[1] if len(together) > 1 else None
            if other is not None and other < found.get(rank, _COMPANION_RANKS):
                found[rank] = other
    return {order[rank]: order[other] for rank, other in found.items()}


def _min_normalisers(weights: Mapping[str, float]) -> dict[str, float]:
    heaviest = sum(sorted(weights.values(), reverse=True)[:_HEAVIEST_TERMS])
    return {name: share * heaviest for name, share in _MIN_NORMALISER.items()}


def weighted_sum(
    signals: Mapping[str, SignalValues], weights: Mapping[str, float], least: Mapping[str, float]
) -> SignalValues:
    """The sum of the signals, each divided by its largest value or by what it should at least reach."""
    total: SignalValues = {}
    for name, weight in weights.items():
        signal = signals[name]
        largest = max(max(signal.values(), default=0.0), least.get(name, 0.0))
        if largest > 0:
            for file, value in signal.items():
                total[file] = total.get(file, 0.0) + weight * value / largest
    return total


def _shortlist(scores: SignalValues, paths: Sequence[str], question: ParsedQuestion) -> list[int]:
    """Standing is looked up for the front alone: it is the costly part when thousands of files match."""
    front = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[: SHORTLIST_FILES * 5]
    judged = {file: scores[file] * _category_factor(paths[file], question) for file in front}
    return sorted(judged, key=lambda file: (-judged[file], paths[file]))[:SHORTLIST_FILES]


def _category_factor(path: str, question: ParsedQuestion) -> float:
    standing = file_category(path)
    if standing in question.wanted:
        return 1.0
    if standing == "test" and question.is_question:
        return _TEST_FACTOR_IF_ASKED if question.asks_for(*_TEST_TERMS) else _TEST_FACTOR_IN_QUESTION
    return CATEGORY_FACTORS[standing]


def explain_rank(
    ranking: Ranking, file: int, question: ParsedQuestion, paths: Sequence[str]
) -> tuple[str, ...]:
    """Short reasons why a ranked file is there, strongest first."""
    signals, detail = ranking.signals, ranking.details[file]
    reasons: list[str] = []
    if file in signals["said"]:
        reasons.append("named in the question")
    if file in signals["traced"]:
        reasons.append("a line of it is named in the question")
    if defined := sorted(detail.name_terms.keys() & question.names.keys()):
        reasons.append(f"defines {', '.join(defined[:3])}")
    elif file in signals["pairs"]:
        reasons.append("a name joins words of the question")
    weights = ranking.weights
    found = [term for term in weights if file in ranking.counts[term]]  # heaviest first, as they are
    if found:
        spoken = ", ".join(dict.fromkeys(question.spoken[term] for term in found[:4]))
        reasons.append(f"{len(found)} of {counted(len(weights), 'term')}: {spoken}")
    if file in signals["name"]:
        reasons.append("its name fits")
    if file in ranking.companions:
        reasons.append(f"changed with {paths[ranking.companions[file]].rpartition('/')[2]}")
    elif file in signals["history"]:
        reasons.append("changed by commits on this")
    if file in signals["imports"]:
        reasons.append("imports other finds")
    elif file in signals["imported"]:
        reasons.append("imported by other finds")
    return tuple(reasons)
