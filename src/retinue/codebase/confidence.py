"""How far the first place can be trusted: it must lead clearly, and with a good score of its own.

Calibrated on four sets of questions, reports and commits; docs/decisions/retrieval.md has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retinue.codebase.missing import Missing
from retinue.codebase.question import ParsedQuestion
from retinue.codebase.rank import Ranking

Level = Literal["low", "med", "high"]


@dataclass(frozen=True, slots=True)
class RankingConfidence:
    level: Level
    lead: float
    """How far the first place's score is above the second's."""
    coverage: float
    """The share of what the question's terms are worth that the first place has."""


HIGH_LEAD, MED_LEAD = 0.20, 0.04
HIGH_SCORE = 0.45
"""Of about 1.1 that a file could have. A lead in score and not in share of it: small scores are all near."""


def confidence_of(
    question: ParsedQuestion, ranking: Ranking, missing: Sequence[Missing]
) -> RankingConfidence:
    best = ranking.best
    if not best:
        return RankingConfidence("low", 0.0, 0.0)
    lead = best[0].score - (best[1].score if len(best) > 1 else 0.0)
    worth = sum(ranking.weights.values())
    had = sum(weight for term, weight in ranking.weights.items() if best[0].file in ranking.counts[term])
    coverage = had / worth if worth else 0.0
    named = any(best[0].file in ranking.signals[name] for name in ("said", "traced", "defined"))
    if missing and not named:
        return RankingConfidence("low", lead, coverage)
    if lead >= HIGH_LEAD and best[0].score >= HIGH_SCORE:
        return RankingConfidence("high", lead, coverage)
    return RankingConfidence("med" if lead >= MED_LEAD else "low", lead, coverage)
