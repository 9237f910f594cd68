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

from retinue.codebase.definition_score import K1, Signal, close_up, length_damping
from retinue.codebase.evidence import Detail, Evidence, Past
from retinue.codebase.kinds import FileStanding, file_standing
from retinue.codebase.mentions import mentioned
from retinue.codebase.neighbours import neighbourhood
from retinue.codebase.question import ParsedQuestion
from retinue.core import counted

SHORTLIST = 80
_AMONG_THE_BEST = 10
_MOST_TERMS = 60
_LEAST_TELLING = 0.1
"""Of what the heaviest term is worth."""

FIRST = {"words": 0.33, "name": 0.12, "folder": 0.05, "said": 0.05, "traced": 0.10, "history": 0.06}
WEIGHTS = {
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
NEAR = {"imports": 0.04, "imported": 0.05, "beside": 0.03}
_FAIR_SHARE = {"name": 0.5, "folder": 0.5, "symbols": 0.25}
"""Of what the three heaviest terms are worth together."""
_HEAVIEST = 3

STANDING: dict[FileStanding, float] = {
    "own": 1.0,
    "test": 0.35,
    "vendored": 0.5,
    "example": 0.5,
    "docs": 0.35,
    "config": 0.5,
    "package": 0.85,
}
"""What a bug report is about is seldom a test, a page of documentation or somebody else's code."""
_TEST_IN_QUESTION, _TEST_ASKED_FOR = 0.8, 0.9
_TEST_TERMS = ("test", "fixtur", "pytest", "unittest")


@dataclass(frozen=True, slots=True)
class Ranked:
    file: int
    score: float
    line: int


@dataclass(frozen=True, slots=True)
class Ranking:
    best: Sequence[Ranked]
    """Best first; ties by path."""
    signals: Mapping[str, Signal]
    details: Mapping[int, Detail]
    weights: Mapping[str, float]
    """The terms that were looked for and found, with what each is worth."""
    counts: Mapping[str, Mapping[int, int]]
    """Term to file to how often."""
    companions: Mapping[int, int]
    """File to the best file that a commit on the question changed together with it."""


def rank(question: ParsedQuestion, evidence: Evidence, past: Past) -> Ranking:
    paths = evidence.paths
    weights = term_weights(question, evidence)
    first = first_signals(question, evidence, past, weights)
    least = _least(weights)
    shortlist = _shortlist(weighed(first, FIRST, least), paths, question)
    telling = _telling(weights)
    details = evidence.details(shortlist, telling)
    close = close_up(question, details, weights, telling, {file: paths[file] for file in shortlist})
    kept = set(shortlist)
    signals = {
        name: {file: value for file, value in signal.items() if file in kept}
        for name, signal in first.items()
    } | close.signals
    scores = weighed(signals, WEIGHTS, least)
    standing = {file: _standing(paths[file], question) for file in shortlist}
    judged = {file: scores[file] * standing[file] for file in scores}
    signals |= neighbourhood(judged, details, paths)
    for file, value in weighed(signals, NEAR, least).items():
        scores[file] = scores.get(file, 0.0) + value
    final = {file: score * standing[file] for file, score in scores.items()}
    order = sorted(final, key=lambda file: (-final[file], paths[file]))
    best = [Ranked(file, final[file], close.lines.get(file, 1)) for file in order]
    return Ranking(best, signals, details, weights, evidence.counts, _companions(order, past, paths))


def term_weights(question: ParsedQuestion, evidence: Evidence) -> dict[str, float]:
    """Rarity times where in the question the term stands; the heaviest terms only."""
    total = len(evidence.paths)
    found = {
        term: question.terms[term] * rarity(len(files), total)
        for term, files in evidence.counts.items()
        if files
    }
    heaviest = sorted(found, key=lambda term: (-found[term], term))[:_MOST_TERMS]
    return {term: found[term] for term in heaviest}


def _telling(weights: Mapping[str, float]) -> dict[str, float]:
    """The terms whose places within files matter: common ones have most of all places, and tell least."""
    least = _LEAST_TELLING * max(weights.values(), default=0.0)
    return {term: weight for term, weight in weights.items() if weight >= least}


def rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def first_signals(
    question: ParsedQuestion, evidence: Evidence, past: Past, weights: Mapping[str, float]
) -> dict[str, Signal]:
    name, folder = _path_words(question, evidence)
    said, traced = mentioned(question, evidence.paths)
    return {
        "words": _words(evidence, weights),
        "name": name,
        "folder": folder,
        "said": said,
        "traced": traced,
        "history": _history(question, evidence.paths, past),
    }


def _words(evidence: Evidence, weights: Mapping[str, float]) -> Signal:
    """BM25 over whole files."""
    sizes = evidence.sizes
    average = sum(sizes) / max(1, len(sizes)) or 1.0
    damping = length_damping(sizes, average)
    scores: Signal = {}
    for term, weight in weights.items():
        full = weight * (K1 + 1)
        for file, count in evidence.counts[term].items():
            scores[file] = scores.get(file, 0.0) + full * count / (count + damping[file])
    return scores


def _path_words(question: ParsedQuestion, evidence: Evidence) -> tuple[Signal, Signal]:
    """The question's terms in a file's name and in its folders, rarer ones more."""
    in_name, in_folders = evidence.path_words()
    names: Signal = {}
    folders: Signal = {}
    for term, weight in question.terms.items():
        of_name, of_folders = in_name.get(term, ()), in_folders.get(term, ())
        worth = weight * rarity(len({*of_name, *of_folders}), len(evidence.paths))
        for files, signal in ((of_name, names), (of_folders, folders)):
            for file in files:
                signal[file] = signal.get(file, 0.0) + worth
    return names, folders


def _history(question: ParsedQuestion, paths: Sequence[str], past: Past) -> Signal:
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


def _companions(order: Sequence[int], past: Past, paths: Sequence[str]) -> dict[int, int]:
    place = {paths[file]: rank for rank, file in enumerate(order)}
    found: dict[int, int] = {}
    for change in past.changes:
        together = sorted(place[path] for path in change.paths if path in place)
        for rank in together:
            other = together[0] if rank != together[0] else together[1] if len(together) > 1 else None
            if other is not None and other < found.get(rank, _AMONG_THE_BEST):
                found[rank] = other
    return {order[rank]: order[other] for rank, other in found.items()}


def _least(weights: Mapping[str, float]) -> dict[str, float]:
    heaviest = sum(sorted(weights.values(), reverse=True)[:_HEAVIEST])
    return {name: share * heaviest for name, share in _FAIR_SHARE.items()}


def weighed(
    signals: Mapping[str, Signal], weights: Mapping[str, float], least: Mapping[str, float]
) -> Signal:
    """The sum of the signals, each divided by its largest value or by what it should at least reach."""
    total: Signal = {}
    for name, weight in weights.items():
        signal = signals[name]
        largest = max(max(signal.values(), default=0.0), least.get(name, 0.0))
        if largest > 0:
            for file, value in signal.items():
                total[file] = total.get(file, 0.0) + weight * value / largest
    return total


def _shortlist(scores: Signal, paths: Sequence[str], question: ParsedQuestion) -> list[int]:
    """Standing is looked up for the front alone: it is the costly part when thousands of files match."""
    front = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[: SHORTLIST * 5]
    judged = {file: scores[file] * _standing(paths[file], question) for file in front}
    return sorted(judged, key=lambda file: (-judged[file], paths[file]))[:SHORTLIST]


def _standing(path: str, question: ParsedQuestion) -> float:
    standing = file_standing(path)
    if standing in question.wanted:
        return 1.0
    if standing == "test" and question.is_question:
        return _TEST_ASKED_FOR if question.asks_for(*_TEST_TERMS) else _TEST_IN_QUESTION
    return STANDING[standing]


def why(ranking: Ranking, file: int, question: ParsedQuestion, paths: Sequence[str]) -> tuple[str, ...]:
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
