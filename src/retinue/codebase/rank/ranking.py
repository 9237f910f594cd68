"""Ranks files by how well they answer a question: a weighted sum of signals, which also explain the rank.

Pure functions from evidence to ranked files. Knows nothing of where the evidence comes from.

There are two passes. The first pass scores every file by cheap signals: words, path, mentions and history.
The second pass scores the definitions of the shortlist, and the neighbours of the best files. Each signal is
divided by its largest value before the sum, so that weights are comparable. Signals of names are divided by
at least a share of the question's weight: otherwise one common word in a file's name would count as a full
match.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import sub

from retinue.codebase.index import CommitEvidence, Evidence, FileDetail, read_texts
from retinue.codebase.parse import (
    FileCategory,
    ParsedQuestion,
    file_category,
    is_declaration_file,
    looks_like_code,
)
from retinue.codebase.rank.bm25 import K1, bm25_scores, length_damping, rarity
from retinue.codebase.rank.definitions import (
    FOLLOWED_FILES,
    WHOLE_FILE,
    MatchingNames,
    RankedDefinition,
    match_names,
    rank_definitions,
)
from retinue.codebase.rank.hints import (
    files_with_hints,
    hint_weights,
    keep_plain_best,
    mix_hints,
    names_with_hints,
)
from retinue.codebase.rank.passages import (
    DOCSTRING_FILES,
    FoundPassage,
    answering_docstrings,
    find_docstrings,
    find_passages,
    flat_names_of,
    quoted_passages,
)
from retinue.codebase.rank.path_signals import mentioned_files, neighbour_signals
from retinue.core import counted

_TYPICAL_CHUNK_BYTES = 900.0
_COUNTED_CHUNKS = 10
_DEFINITION_SIGNALS = ("chunk", "chunks", "symbols", "defined", "compound", "pairs")

SignalValues = dict[int, float]
"""The value of a signal for each file. For a missing file it is 0."""

SHORTLIST_FILES = 80
SMALL_CODEBASE_FILES, SMALL_SHORTLIST_FILES = 1_000, 50
"""With fewer files, so many are shortlisted for a question of one line: it found as much."""
_COMPANION_RANKS = 10
"""A companion must be among this many best files (see `Ranking.companions`)."""
_MAX_TERMS = 60
_MIN_SELECTIVE_SHARE = 0.1
"""Terms below this share of the heaviest term's weight are too common to be counted inside chunks."""

FIRST_PASS_WEIGHTS = {
    "words": 0.33,
    "name": 0.12,
    "folder": 0.05,
    "mentioned": 0.05,
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
    "mentioned": 0.06,
    "traced": 0.15,
    "history": 0.07,
}
NEIGHBOUR_WEIGHTS = {"imports": 0.04, "imported": 0.05, "same_folder": 0.03}
_MIN_DIVISOR_SHARES = {"name": 0.5, "folder": 0.5, "symbols": 0.25}
"""The smallest divisor of a signal, as a share of the weight of the heaviest terms."""
_HEAVIEST_TERMS = 3

_HOLDER_SCORE, _DEFINER_SCORE = 0.3, 0.5
"""Added to the score of a file that contains the identifier of a question, and of one that defines it."""

CATEGORY_FACTORS: dict[FileCategory, float] = {
    "own": 1.0,
    "test": 0.35,
    "vendored": 0.5,
    "example": 0.5,
    "docs": 0.35,
    "config": 0.5,
    "package": 0.85,
}
"""Factors for scores: a bug report is rarely about a test, a documentation page or third-party code."""
_TEST_FACTOR_IN_QUESTION, _TEST_FACTOR_IF_ASKED = 0.8, 0.9
_TEST_TERMS = ("test", "fixtur", "pytest", "unittest")


@dataclass(frozen=True, slots=True)
class RankedFile:
    """One file of a ranking."""

    file: int
    """Position in the paths of the evidence."""
    score: float
    definitions: Sequence[RankedDefinition]
    """The definitions that answer best, best first; never empty."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked files, with the signals that explain their rank."""

    best: Sequence[RankedFile]
    """Best first; ties by path. At least as many as asked for, if there are."""
    signals: Mapping[str, SignalValues]
    details: Mapping[int, FileDetail]
    weights: Mapping[str, float]
    """The weight of each term that was found, heaviest first."""
    counts: Mapping[str, Mapping[int, int]]
    """For each term, its count in each file that contains it."""
    companions: Mapping[int, int]
    """For a file, the best file that a related commit changed together with it."""
    line_weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """The weights of all terms that choose lines: those of `weights`, and those of hints."""
    passages: Sequence[FoundPassage] = ()
    """The sections of the documentation and the docstrings that answer best, best first."""
    texts: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    """The texts of the best files, as far as they were read."""


def rank_files(question: ParsedQuestion, evidence: Evidence, commits: CommitEvidence, limit: int) -> Ranking:
    """Rank the files that answer a question, and the definitions of the `limit` best."""
    paths = evidence.paths
    weights = _term_weights(question, evidence)
    first = _first_pass(question, evidence, commits, weights)
    second = _second_pass(question, evidence, commits, weights, first)
    best = second.order[: max(limit, FOLLOWED_FILES)]
    sections = find_passages(question, evidence, first.signals["words"], weights, _chunk_scores)
    files = best[:DOCSTRING_FILES]
    texts = {} if question.is_report else read_texts(evidence, files)
    docstrings = find_docstrings(
        question, evidence, files, second.details, texts, second.chunk_scores, weights
    )
    line_weights = {**weights, **second.hint_weights}
    found = rank_definitions(
        best,
        second.scores,
        second.details,
        second.chunk_scores,
        line_weights,
        paths,
        second.matching_names,
        flat_names_of(sections),
        answering_docstrings(docstrings),
    )
    return Ranking(
        [RankedFile(file, second.scores[file], found.get(file, [WHOLE_FILE])) for file in best],
        second.signals,
        second.details,
        weights,
        evidence.counts,
        _companions(second.order, commits, paths),
        line_weights,
        quoted_passages(evidence.query, sections, docstrings, second.details, weights),
        texts,
    )


@dataclass(frozen=True, slots=True)
class _FirstPass:
    """The cheap signals of all files, and the files that the second pass looks at."""

    signals: Mapping[str, SignalValues]
    holders: SignalValues
    """The files that contain an identifier of the question (see `_name_holders`)."""
    hinted: Mapping[int, float]
    """The files that contain a hint, with their share of the hints."""
    shortlist: Sequence[int]


def _first_pass(
    question: ParsedQuestion, evidence: Evidence, commits: CommitEvidence, weights: Mapping[str, float]
) -> _FirstPass:
    """Score all files by cheap signals, and choose the best for the second pass."""
    signals = _first_pass_signals(question, evidence, commits, weights)
    holders = _name_holders(question, evidence)
    hinted = files_with_hints(question, evidence)
    scores = weighted_sum(signals, _signal_weights(FIRST_PASS_WEIGHTS, commits), _min_divisors(weights))
    _add(scores, holders)
    shortlist = _shortlist(mix_hints(scores, hinted), evidence.paths, question)
    return _FirstPass(signals, holders, hinted, shortlist)


@dataclass(frozen=True, slots=True)
class _SecondPass:
    """The order of the shortlist, by its definitions too."""

    order: Sequence[int]
    """Best first; ties by path."""
    scores: SignalValues
    signals: Mapping[str, SignalValues]
    details: Mapping[int, FileDetail]
    chunk_scores: Mapping[int, Mapping[int, float]]
    hint_weights: Mapping[str, float]
    matching_names: MatchingNames


def _second_pass(
    question: ParsedQuestion,
    evidence: Evidence,
    commits: CommitEvidence,
    weights: Mapping[str, float],
    first: _FirstPass,
) -> _SecondPass:
    """Score the shortlist by its definitions, its neighbours, exact names and hints."""
    paths, shortlist = evidence.paths, first.shortlist
    selective, of_hints = _selective_terms(weights), hint_weights(question, evidence)
    details = evidence.details(shortlist, {**selective, **of_hints})
    matching_names = match_names(details.values(), {**weights, **of_hints})
    definitions = _score_definitions(
        question, details, weights, selective, {file: paths[file] for file in shortlist}, matching_names
    )
    kept = set(shortlist)
    signals = {
        name: {file: value for file, value in signal.items() if file in kept}
        for name, signal in first.signals.items()
    } | definitions.signals
    min_divisors = _min_divisors(weights)
    scores = weighted_sum(signals, _signal_weights(SECOND_PASS_WEIGHTS, commits), min_divisors)
    factors = {file: _category_factor(paths[file], question) for file in shortlist}
    signals |= neighbour_signals({file: scores[file] * factors[file] for file in scores}, details, paths)
    _add(scores, weighted_sum(signals, NEIGHBOUR_WEIGHTS, min_divisors))
    _add(scores, _exact_name_scores(question, first.holders, details, paths))
    plain = {file: score * factors[file] for file, score in scores.items()}
    final, chunk_scores = plain, definitions.chunk_scores
    if question.hints:
        flat_names = {file: _flat_names(details[file], paths[file]) for file in shortlist}
        final = mix_hints(plain, names_with_hints(question, first.hinted, flat_names))
    order = sorted(final, key=lambda file: (-final[file], paths[file]))
    if question.hints:
        order = keep_plain_best(order, plain)
    if of_hints:
        counted_terms = {**selective, **of_hints}
        chunk_scores = {file: _chunk_scores(details[file], counted_terms) for file in shortlist}
    return _SecondPass(order, final, signals, details, chunk_scores, of_hints, matching_names)


def _add(scores: SignalValues, further: Mapping[int, float]) -> None:
    for file, value in further.items():
        scores[file] = scores.get(file, 0.0) + value


def explain_rank(
    ranking: Ranking, file: int, question: ParsedQuestion, paths: Sequence[str]
) -> tuple[str, ...]:
    """Return short reasons for the rank of a file, strongest first."""
    signals, detail = ranking.signals, ranking.details[file]
    reasons: list[str] = []
    if file in signals["mentioned"]:
        reasons.append("named in the question")
    if file in signals["traced"]:
        reasons.append("the question names a line of it")
    if defined := sorted(detail.name_terms.keys() & question.names.keys()):
        reasons.append(f"defines {', '.join(defined[:3])}")
    elif file in signals["pairs"]:
        reasons.append("a name combines words of the question")
    weights = ranking.weights
    weights = {term: weight for term, weight in weights.items() if term in question.terms}
    found = [term for term in weights if file in ranking.counts[term]]
    if found:
        words = ", ".join(dict.fromkeys(map(question.shown_term, found[:4])))
        reasons.append(f"{len(found)} of {counted(len(weights), 'term')}: {words}")
    if file in signals["name"]:
        reasons.append("its name matches")
    if file in ranking.companions:
        reasons.append(f"changed with {paths[ranking.companions[file]].rpartition('/')[2]}")
    elif file in signals["history"]:
        reasons.append("changed by related commits")
    if file in signals["imports"]:
        reasons.append("imports other results")
    elif file in signals["imported"]:
        reasons.append("imported by other results")
    return tuple(reasons)


def _exact_names(question: ParsedQuestion) -> list[str]:
    """Return the names of a question that can only be identifiers. A report names too many to rank by."""
    if question.is_report:
        return []
    return [name for name in question.names if looks_like_code(name) or f"`{name}`" in question.text]


def _name_holders(question: ParsedQuestion, evidence: Evidence) -> SignalValues:
    """Return the files that contain an identifier of the question, with the share of them that each has.

    In a long question an identifier is one word among many: the shares are smaller, or there are none.
    """
    names = _exact_names(question) if question.brevity else []
    holders: SignalValues = {}
    for name in names:
        for file in evidence.counts.get(name.replace("_", "").lower(), ()):
            holders[file] = holders.get(file, 0.0) + question.brevity / len(names)
    return holders


def _exact_name_scores(
    question: ParsedQuestion, holders: SignalValues, details: Mapping[int, FileDetail], paths: Sequence[str]
) -> SignalValues:
    """Score the files with identifiers of the question above all others, and those that define them on top.

    A declaration counts as a definition only if there is no other.
    """
    names = _exact_names(question)
    brevity = question.brevity
    scores = {file: _HOLDER_SCORE * share for file, share in holders.items() if file in details}
    for name in names:
        definers = [file for file, detail in details.items() if name in detail.name_terms]
        definers = [file for file in definers if not is_declaration_file(paths[file])] or definers
        for file in definers:
            scores[file] = scores.get(file, 0.0) + brevity * _DEFINER_SCORE / len(names)
    return scores


def _term_weights(question: ParsedQuestion, evidence: Evidence) -> dict[str, float]:
    """Return the weight of each term: its rarity, times its weight in the question. Heaviest terms only."""
    wanted = question.searched_terms
    total = len(evidence.paths)
    found = {
        term: wanted[term] * rarity(len(files), total) for term, files in evidence.counts.items() if files
    }
    heaviest = sorted(found, key=lambda term: (-found[term], term))[:_MAX_TERMS]
    return {term: found[term] for term in heaviest}


def _selective_terms(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the terms that are counted inside chunks: all but common terms, which say little."""
    least = _MIN_SELECTIVE_SHARE * max(weights.values(), default=0.0)
    return {term: weight for term, weight in weights.items() if weight >= least}


def _first_pass_signals(
    question: ParsedQuestion, evidence: Evidence, commits: CommitEvidence, weights: Mapping[str, float]
) -> dict[str, SignalValues]:
    """Return the cheap signals, by name, for all files."""
    name, folder = _path_term_signals(question, evidence)
    mentioned, traced = mentioned_files(question, evidence.paths)
    return {
        "words": _bm25_signal(evidence, weights),
        "name": name,
        "folder": folder,
        "mentioned": mentioned,
        "traced": traced,
        "history": _history_signal(question, evidence.paths, commits),
    }


def _bm25_signal(evidence: Evidence, weights: Mapping[str, float]) -> SignalValues:
    """Return the BM25 score of each whole file."""
    return bm25_scores(evidence.counts, evidence.sizes, weights)


def _path_term_signals(question: ParsedQuestion, evidence: Evidence) -> tuple[SignalValues, SignalValues]:
    """Score the terms in a file's name, and those in its folders. Rare terms count more."""
    in_name, in_folders = evidence.path_terms()
    names: SignalValues = {}
    folders: SignalValues = {}
    for term, weight in question.searched_terms.items():
        name_files, folder_files = in_name.get(term, ()), in_folders.get(term, ())
        worth = weight * rarity(len({*name_files, *folder_files}), len(evidence.paths))
        for files, signal in ((name_files, names), (folder_files, folders)):
            for file in files:
                signal[file] = signal.get(file, 0.0) + worth
    return names, folders


def _history_signal(question: ParsedQuestion, paths: Sequence[str], commits: CommitEvidence) -> SignalValues:
    """Score the files that related commits changed. Each commit has one vote, shared among its files."""
    if not commits.related:
        return {}
    rare = {
        term: question.terms[term] * math.log(1 + commits.commits / (1 + count))
        for term, count in commits.frequency.items()
    }
    by_path: dict[str, float] = {}
    for commit in commits.related:
        match = sum(sorted(rare[term] for term in commit.terms))
        vote = match * match / (1 + 0.05 * commit.words) / len(commit.paths) ** 0.5
        for path in commit.paths:
            by_path[path] = by_path.get(path, 0.0) + vote
    changed = compress(range(len(paths)), map(by_path.__contains__, paths))
    return {file: by_path[paths[file]] for file in changed}


def _companions(order: Sequence[int], commits: CommitEvidence, paths: Sequence[str]) -> dict[int, int]:
    """Return, for a file, the best other file that a related commit changed together with it."""
    rank_of = {paths[file]: rank for rank, file in enumerate(order)}
    found: dict[int, int] = {}
    for commit in commits.related:
        ranks = sorted(rank_of[path] for path in commit.paths if path in rank_of)
        for rank in ranks:
            other = ranks[0] if rank != ranks[0] else ranks[1] if len(ranks) > 1 else None
            if other is not None and other < found.get(rank, _COMPANION_RANKS):
                found[rank] = other
    return {order[rank]: order[other] for rank, other in found.items()}


def _signal_weights(weights: Mapping[str, float], commits: CommitEvidence) -> dict[str, float]:
    """Return the weights of the signals for these commits: a short history says less."""
    return {**weights, "history": weights["history"] * commits.weight}


def _min_divisors(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the smallest divisor of each signal of names for this question."""
    heaviest = sum(sorted(weights.values(), reverse=True)[:_HEAVIEST_TERMS])
    return {name: share * heaviest for name, share in _MIN_DIVISOR_SHARES.items()}


def weighted_sum(
    signals: Mapping[str, SignalValues], weights: Mapping[str, float], min_divisors: Mapping[str, float]
) -> SignalValues:
    """Return the weighted sum of the signals, each divided by its largest value or its smallest divisor."""
    total: SignalValues = {}
    for name, weight in weights.items():
        signal = signals[name]
        divisor = max(max(signal.values(), default=0.0), min_divisors.get(name, 0.0))
        if divisor > 0:
            for file, value in signal.items():
                total[file] = total.get(file, 0.0) + weight * value / divisor
    return total


def _shortlist(scores: SignalValues, paths: Sequence[str], question: ParsedQuestion) -> list[int]:
    """Return the best files, with their category taken into account.

    Determines the category of the most promising files only, because that is slow for thousands of files.
    """
    front = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[: SHORTLIST_FILES * 5]
    weighted = {file: scores[file] * _category_factor(paths[file], question) for file in front}
    is_small = len(paths) < SMALL_CODEBASE_FILES and not question.is_report
    size = SMALL_SHORTLIST_FILES if is_small else SHORTLIST_FILES
    return sorted(weighted, key=lambda file: (-weighted[file], paths[file]))[:size]


def _category_factor(path: str, question: ParsedQuestion) -> float:
    """Return the factor for the score of a file: 1, or less for a file that is ranked lower."""
    category = file_category(path)
    if category in question.wanted_categories:
        return 1.0
    if category == "test" and question.is_question:
        return _TEST_FACTOR_IF_ASKED if question.asks_for(*_TEST_TERMS) else _TEST_FACTOR_IN_QUESTION
    return CATEGORY_FACTORS[category]


@dataclass(frozen=True, slots=True)
class _DefinitionScores:
    """What `_score_definitions` returns."""

    signals: dict[str, SignalValues]
    chunk_scores: dict[int, dict[int, float]]
    """For each file, the score of each chunk by its words."""


def _score_definitions(
    question: ParsedQuestion,
    details: Mapping[int, FileDetail],
    weights: Mapping[str, float],
    selective: Mapping[str, float],
    paths: Mapping[int, str],
    matching_names: MatchingNames,
) -> _DefinitionScores:
    """Score the definitions of some files. Only `selective` terms count inside chunks."""
    defined_names = {
        file: sorted(detail.name_terms.keys() & question.names) for file, detail in details.items()
    }
    definers = Counter(name for of_file in defined_names.values() for name in of_file)
    flat_names = {file: _flat_names(detail, paths[file]) for file, detail in details.items()}
    pairs = _pair_weights(question, weights, "\n".join(flat_names.values()))
    signals: dict[str, SignalValues] = {name: {} for name in _DEFINITION_SIGNALS}
    chunk_scores: dict[int, dict[int, float]] = {}
    fits = _name_fits(matching_names, weights)
    for file, detail in details.items():
        chunk_scores[file] = scores = _chunk_scores(detail, selective)
        if scores:
            # Sort by position first: the second sort is stable, so the first of equal chunks stays first.
            best = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:_COUNTED_CHUNKS]
            signals["chunk"][file] = scores[best[0]]
            signals["chunks"][file] = sum(scores[chunk] / (place + 1) for place, chunk in enumerate(best))
        if symbols := sorted(
            [fits[terms] for terms in detail.name_terms.values() if terms in fits], reverse=True
        )[:3]:
            signals["symbols"][file] = sum(value / 2**place for place, value in enumerate(symbols))
        if names := defined_names[file]:
            shares = [question.names[name] / definers[name] ** 0.5 * _name_weight(name) for name in names]
            signals["defined"][file] = sum(shares)
        if compounds := len(question.compounds.intersection(flat_names[file].split("\n"))):
            signals["compound"][file] = float(compounds)
        if found := {terms: weight for pair, (terms, weight) in pairs.items() if pair in flat_names[file]}:
            signals["pairs"][file] = sum(found.values())
    return _DefinitionScores(signals, chunk_scores)


def _pair_weights(
    question: ParsedQuestion, weights: Mapping[str, float], names: str
) -> dict[str, tuple[tuple[str, str], float]]:
    """Return the pairs of neighbouring words that are also neighbours in some name, with their weight."""
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


def _name_fits(names: MatchingNames, weights: Mapping[str, float]) -> dict[str, float]:
    """Return how well the terms of each defined name fit the question.

    The fit is the weight of the terms that the question has, times their share of the name's terms. Names
    without such a term are left out.
    """
    fits: dict[str, float] = {}
    for terms, own in names.items():
        if shared := sorted([term for term in own if term in weights]):
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
