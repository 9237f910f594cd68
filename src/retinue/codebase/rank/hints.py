"""Scores files by the caller's hints: names and words that the caller guesses to be in the code.

Hints are evidence of their own. A hint that no file contains counts for nothing, and the ranking without
hints stays in the mix, so that a wrong hint costs little.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from retinue.codebase.index import Evidence
from retinue.codebase.parse import Hint, ParsedQuestion

_LINE_WEIGHT = 1.0
"""The weight of a hint in choosing lines, the same as that of a word of the question."""
_AGREEMENT, _ALONE = 0.7, 0.3
"""How much a full match of the hints raises the score of a file: as a share of its own score, and as a share
of the best score of any file."""
_DEFINED, _NAMED = 1.0, 0.6
"""What a file gets for a hint that it defines, and for one inside a name that it defines or has."""
_HELD = 0.5
"""What a file gets at most for a hint that it only contains."""


def hint_weights(question: ParsedQuestion, evidence: Evidence) -> dict[str, float]:
    """Return the weight of the terms of all hints that occur, by their rarity."""
    weights: dict[str, float] = {}
    for hint in question.hints:
        whole = hint.terms[-1]
        if evidence.counts.get(whole):
            weights[whole] = _LINE_WEIGHT * _rarity(evidence.counts[whole], evidence)
        for part in hint.terms[:-1]:
            if evidence.counts.get(part):
                weights.setdefault(part, _LINE_WEIGHT / 2 * _rarity(evidence.counts[part], evidence))
    return weights


def files_with_hints(question: ParsedQuestion, evidence: Evidence) -> dict[int, float]:
    """Return how well each file matches the hints by its words alone, from 0 to `_HELD`."""
    values: dict[int, float] = {}
    for hint in question.hints:
        found = _files_with(hint, evidence)
        worth = _HELD * _rarity(found, evidence) / math.log(2 + len(evidence.paths))
        for file, count in found.items():
            values[file] = values.get(file, 0.0) + worth * count / (count + 2) / len(question.hints)
    return values


def _files_with(hint: Hint, evidence: Evidence) -> Mapping[int, int]:
    """Return the files with the whole name or, if there are none, those with all of its parts."""
    if found := evidence.counts.get(hint.terms[-1]):
        return found
    parts = [evidence.counts.get(part, {}) for part in hint.terms[:-1]]
    if len(parts) < 2:  # a single part says too little
        return {}
    return {file: min(part[file] for part in parts) for file in set(parts[0]).intersection(*parts[1:])}


def _rarity(files: Collection[int], evidence: Evidence) -> float:
    total = len(evidence.paths)
    return math.log(1 + (total - len(files) + 0.5) / (len(files) + 0.5))


def names_with_hints(
    question: ParsedQuestion, held: Mapping[int, float], flat_names: Mapping[int, str]
) -> dict[int, float]:
    """Return how well each file matches the hints, with the names that it defines, from 0 to 1.

    `flat_names` has the defined names of each file and the file's own name, one per line.
    """
    values: dict[int, float] = {}
    for file, names in flat_names.items():
        value = held.get(file, 0.0)
        for hint in question.hints:
            if hint.flat in names:
                exact = hint.flat in names.split("\n")
                value += (_DEFINED if exact else _NAMED) * (1 - _HELD) / len(question.hints)
        if value:
            values[file] = min(1.0, value)
    return values


def mix_hints(scores: Mapping[int, float], matches: Mapping[int, float]) -> dict[int, float]:
    """Return the scores of files raised by how well they match the hints. Without a match they stay."""
    if not matches:
        return dict(scores)
    best_match, best_score = max(matches.values()), max(scores.values(), default=0.0)
    sure = min(1.0, 2 * best_match)  # a weak match of the best file is no evidence
    mixed = dict(scores)
    for file, match in matches.items():
        share = sure * match / best_match
        own = scores.get(file, 0.0)
        mixed[file] = own * (1 + _AGREEMENT * share) + _ALONE * best_score * share
    return mixed


def keep_plain_best(order: Sequence[int], plain: Mapping[int, float]) -> list[int]:
    """Return the order with the best file of the ranking without hints among the first two."""
    best = max(plain, key=lambda file: (plain[file], -order.index(file)), default=None)
    if best is None or best in order[:2]:
        return list(order)
    rest = [file for file in order if file != best]
    return [rest[0], best, *rest[1:]]
