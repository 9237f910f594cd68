"""Which files answer a question: a weighted sum of simple signals, each of which can say why.

Pure: evidence in, ranked files out. Knows nothing of where the evidence comes from.

Two passes. The first looks at every file through numbers that an index or one ripgrep pass can give:
words, path, mentions, history. The second looks at the shortlist's definitions. Each signal is divided by
its largest value before the sum, so weights compare.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retinue.codebase.evidence import Detail, Evidence, Past
from retinue.codebase.kinds import Standing, standing_of
from retinue.codebase.mentions import PathTable, mentioned
from retinue.codebase.question import Question
from retinue.codebase.terms import Vocabulary, words

SHORTLIST = 200
MOST_TERMS = 60

_K1, _B = 1.2, 0.75
_CHUNK_BYTES = 900.0
"""An ordinary definition; chunk lengths are judged against it."""
_CHANGES = 60

FIRST: dict[str, float] = {
    "words": 0.33,
    "name": 0.10,
    "folder": 0.04,
    "said": 0.10,
    "traced": 0.05,
    "history": 0.08,
}
WEIGHTS: dict[str, float] = {
    "words": 0.15,
    "chunk": 0.20,
    "chunks": 0.18,
    "name": 0.10,
    "folder": 0.04,
    "symbols": 0.12,
    "defined": 0.10,
    "said": 0.10,
    "traced": 0.05,
    "history": 0.08,
}
STANDING: dict[Standing, float] = {
    "own": 1.0,
    "test": 0.5,
    "vendored": 0.5,
    "example": 0.5,
    "docs": 0.5,
    "config": 0.5,
    "package": 0.85,
}

Signal = dict[int, float]
"""File to value; a file that is missing has none."""


@dataclass(frozen=True, slots=True)
class Ranked:
    file: int
    score: float
    line: int
    why: tuple[str, ...]


def rank(question: Question, evidence: Evidence, past: Past) -> list[Ranked]:
    """The shortlist, best first; ties by path."""
    paths = evidence.paths
    weights = term_weights(question, evidence)
    first = first_signals(question, evidence, past, weights)
    shortlist = _best_files(weighed(first, FIRST), paths, question)[:SHORTLIST]
    details = evidence.details(shortlist)
    kept = set(shortlist)
    signals = {
        name: {file: value for file, value in signal.items() if file in kept}
        for name, signal in first.items()
    }
    close, lines = close_signals(question, details, weights)
    signals |= close
    scores = weighed(signals, WEIGHTS)
    for file in scores:
        scores[file] *= _standing(paths[file], question)
    order = sorted(scores, key=lambda file: (-scores[file], paths[file]))
    return [
        Ranked(file, scores[file], lines.get(file, 1), _why(file, question, signals, details[file], weights))
        for file in order
    ]


def _why(
    file: int,
    question: Question,
    signals: Mapping[str, Signal],
    detail: Detail,
    weights: Mapping[str, float],
) -> tuple[str, ...]:
    """Short reasons, strongest first."""
    reasons: list[str] = []
    if file in signals["said"]:
        reasons.append("named in the question")
    if file in signals["traced"]:
        reasons.append("in the stack trace")
    if defined := sorted({chunk.name for chunk in detail.chunks} & question.names.keys()):
        reasons.append(f"defines {', '.join(defined[:3])}")
    found = sorted((term for term in detail.hits if term in weights), key=lambda term: (-weights[term], term))
    if found:
        reasons.append(f"{len(found)} of {len(weights)} terms: {', '.join(found[:4])}")
    if file in signals["name"]:
        reasons.append("its name fits")
    if file in signals["history"]:
        reasons.append("commits on this changed it")
    return tuple(reasons)


def term_weights(question: Question, evidence: Evidence) -> dict[str, float]:
    """Rarity times where in the question the term stands; the heaviest terms only."""
    total = len(evidence.paths)
    found = {
        term: question.terms[term] * rarity(len(files), total)
        for term, files in evidence.counts.items()
        if files
    }
    heaviest = sorted(found, key=lambda term: (-found[term], term))[:MOST_TERMS]
    return {term: found[term] for term in heaviest}


def rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def first_signals(
    question: Question, evidence: Evidence, past: Past, weights: Mapping[str, float]
) -> dict[str, Signal]:
    name, folder = _path_words(question, evidence.paths)
    said, traced = mentioned(question, PathTable(evidence.paths))
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
    scores: Signal = defaultdict(float)
    for term, weight in weights.items():
        for file, count in evidence.counts[term].items():
            scores[file] += weight * _saturated(count, sizes[file] / average)
    return scores


def _saturated(count: float, length: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length))


def _path_words(question: Question, paths: Sequence[str]) -> tuple[Signal, Signal]:
    """The question's terms in a file's name and in its folders, rarer ones more."""
    vocabulary = Vocabulary()
    in_name: dict[str, list[int]] = defaultdict(list)
    in_folder: dict[str, list[int]] = defaultdict(list)
    folders: dict[str, set[str]] = {}

    def asked(text: str) -> set[str]:
        split = words(text.encode()).split()
        return {term for word in split for term in vocabulary[word].split() if term in question.terms}

    for file, path in enumerate(paths):
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = asked(folder)
        for term in asked(name.rpartition(".")[0] or name):
            in_name[term].append(file)
        for term in folders[folder]:
            in_folder[term].append(file)
    name_signal: Signal = defaultdict(float)
    folder_signal: Signal = defaultdict(float)
    for term in {**in_name, **in_folder}:
        having = len({*in_name[term], *in_folder[term]})
        weight = question.terms[term] * rarity(having, len(paths))
        for file in in_name[term]:
            name_signal[file] += weight
        for file in in_folder[term]:
            folder_signal[file] += weight
    return name_signal, folder_signal


def _history(question: Question, paths: Sequence[str], past: Past) -> Signal:
    """Votes of the commits whose message speaks of the same things."""
    files = {path: file for file, path in enumerate(paths)}
    votes: Signal = defaultdict(float)
    for change in past.changes[:_CHANGES]:
        match = sum(
            question.terms[term] * math.log(1 + past.commits / (1 + past.frequency[term]))
            for term in sorted(change.terms)
        )
        vote = match * match / (1 + 0.05 * change.words) / max(1, len(change.paths)) ** 0.5
        for path in change.paths:
            if path in files:
                votes[files[path]] += vote
    return votes


def close_signals(
    question: Question, details: Mapping[int, Detail], weights: Mapping[str, float]
) -> tuple[dict[str, Signal], dict[int, int]]:
    """What the definitions of the shortlist say, and the line that answers best in each file."""
    defined_by: dict[str, int] = defaultdict(int)
    for detail in details.values():
        for name in {chunk.name for chunk in detail.chunks}:
            defined_by[name] += 1
    signals: dict[str, Signal] = {"chunk": {}, "chunks": {}, "symbols": {}, "defined": {}}
    lines: dict[int, int] = {}
    vocabulary = Vocabulary()
    for file, detail in details.items():
        scores = _chunk_scores(detail, weights)
        best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
        if best:
            signals["chunk"][file] = scores[best[0]]
            signals["chunks"][file] = sum(scores[chunk] for chunk in best[:3])
            lines[file] = detail.chunks[best[0]].line
        symbols: list[float] = []
        defined = 0.0
        for name in {chunk.name for chunk in detail.chunks if chunk.name}:
            own = {term for word in words(name.encode()).split() for term in vocabulary[word].split()}
            shared = [weights[term] for term in own if term in weights]
            if shared:
                symbols.append(sum(sorted(shared)) * len(shared) / len(own))
            if name in question.names:
                defined += (
                    question.names[name] / defined_by[name] ** 0.5 * (0.3 if name.startswith("__") else 1)
                )
        symbols.sort(reverse=True)
        if symbols:
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(symbols[:3]))
        if defined:
            signals["defined"][file] = defined
    return signals, lines


def _chunk_scores(detail: Detail, weights: Mapping[str, float]) -> dict[int, float]:
    """BM25 over the definitions of one file."""
    scores: dict[int, float] = defaultdict(float)
    for term, hits in detail.hits.items():
        if term in weights:
            for chunk, count in hits.items():
                length = (detail.chunks[chunk].end - detail.chunks[chunk].start) / _CHUNK_BYTES
                scores[chunk] += weights[term] * _saturated(count, length)
    return scores


def weighed(signals: Mapping[str, Signal], weights: Mapping[str, float]) -> Signal:
    total: Signal = defaultdict(float)
    for name, weight in weights.items():
        signal = signals[name]
        largest = max(signal.values(), default=0.0)
        if largest > 0:
            for file, value in signal.items():
                total[file] += weight * value / largest
    return total


def _best_files(scores: Signal, paths: Sequence[str], question: Question) -> list[int]:
    judged = {file: score * _standing(paths[file], question) for file, score in scores.items()}
    return sorted(judged, key=lambda file: (-judged[file], paths[file]))


def _standing(path: str, question: Question) -> float:
    standing = standing_of(path)
    if standing == "test" and not question.is_report and question.asks_for("test", "fixtur", "pytest"):
        return 0.9
    return STANDING[standing]
