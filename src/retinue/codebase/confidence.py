"""How far the first place can be trusted, from how clearly it leads. Calibrated on the development sets."""

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


HIGH_MARGIN, MED_MARGIN = 0.25, 0.08


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
    level: Level = "high" if margin >= HIGH_MARGIN else "med" if margin >= MED_MARGIN else "low"
    return Confidence(level, margin, coverage)
