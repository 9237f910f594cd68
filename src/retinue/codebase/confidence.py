"""How far the first place can be trusted: it must lead clearly, and with a good score of its own.

Calibrated on the development sets; docs/decisions/retrieval.md has the figures, of other sets too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retinue.codebase.missing import Missing
from retinue.codebase.question import Question
from retinue.codebase.rank import Ranking

Level = Literal["low", "med", "high"]


@dataclass(frozen=True, slots=True)
class Confidence:
    level: Level
    margin: float
    """How far the first place leads the second, as a share of the first place's score."""
    coverage: float
    """The share of what the question's terms are worth that the first place has."""


HIGH_MARGIN, MED_MARGIN = 0.30, 0.08
HIGH_SCORE = 0.45
"""Of about 1.1 that a file could have: among files that all fit badly, a lead says little."""


def confidence_of(question: Question, ranking: Ranking, missing: Sequence[Missing]) -> Confidence:
    best = ranking.best
    if not best:
        return Confidence("low", 0.0, 0.0)
    second = best[1].score if len(best) > 1 else 0.0
    margin = (best[0].score - second) / best[0].score if best[0].score > 0 else 0.0
    hits = ranking.details[best[0].file].hits
    worth = sum(ranking.weights.values())
    coverage = (
        sum(weight for term, weight in ranking.weights.items() if term in hits) / worth if worth else 0.0
    )
    named = any(best[0].file in ranking.signals[name] for name in ("said", "traced", "defined"))
    if missing and not named:
        return Confidence("low", margin, coverage)
    if margin >= HIGH_MARGIN and best[0].score >= HIGH_SCORE:
        return Confidence("high", margin, coverage)
    return Confidence("med" if margin >= MED_MARGIN else "low", margin, coverage)
