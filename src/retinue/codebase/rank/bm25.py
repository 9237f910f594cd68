"""BM25: how much the terms of a question say about each of many texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

K1, B = 1.2, 0.75
"""The parameters of BM25."""


def rarity(texts: int, total: int) -> float:
    """Return the inverse document frequency of a term that `texts` of `total` texts contain."""
    return math.log(1 + (total - texts + 0.5) / (texts + 0.5))


def length_damping(lengths: Iterable[float], typical: float) -> list[float]:
    """Return the damping for each length.

    In `count * (K1 + 1) / (count + damping)`, each further occurrence adds less, and all add less in a long
    text.
    """
    return [K1 * (1 - B + B * (length / typical)) for length in lengths]


def bm25_scores(
    counts: Mapping[str, Mapping[int, float]], sizes: Sequence[float], weights: Mapping[str, float]
) -> dict[int, float]:
    """Return the score of each text that has a term. `counts` has each term's count in each text."""
    average = sum(sizes) / max(1, len(sizes)) or 1.0
    damping = length_damping(sizes, average)
    scores: dict[int, float] = {}
    for term, weight in weights.items():
        full = weight * (K1 + 1)
        for text, count in counts[term].items():
            scores[text] = scores.get(text, 0.0) + full * count / (count + damping[text])
    return scores
