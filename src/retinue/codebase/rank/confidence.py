"""How far the first place can be trusted: it must lead clearly, and with a good score of its own.

Calibrated on four sets of questions, reports and commits; docs/decisions/retrieval.md has the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from retinue.codebase.index import Evidence
from retinue.codebase.parse import ParsedQuestion
from retinue.codebase.rank.ranking import Ranking

# MERGED missing: Names that a question mentions and no file has, with names that come near.

_MAX_SIMILAR = 3
_MIN_SIMILARITY = 0.75
"""How much of two names must agree, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class MissingName:
    name: str
    near: tuple[str, ...]
    """Defined names that look like it, most alike first."""


def missing_names(question: ParsedQuestion, evidence: Evidence, ranking: Ranking) -> tuple[MissingName, ...]:
    """In the order of the question. Only names that look like code: any other word may be plain language."""
    absent = [name for name in question.names if _looks_like_code(name) and not _occurs(name, evidence)]
    if not absent:
        return ()
    defined = sorted({name for detail in ranking.details.values() for name in detail.name_terms})
    return tuple(MissingName(name, similar_names(name, defined)) for name in absent)


def similar_names(name: str, defined: Sequence[str]) -> tuple[str, ...]:
    """Those without enough letters of the name are left out first: comparing in earnest is slow."""
    foreign = bytes(set(range(256)).difference(f"{name}\n".encode()))
    shared = "\n".join(defined).encode().translate(None, foreign).split(b"\n")
    possible = [
        other
        for other, letters in zip(defined, shared, strict=False)
        if 2 * min(len(letters), len(name)) >= _MIN_SIMILARITY * (len(name) + len(other))
    ]
    return tuple(get_close_matches(name, possible, _MAX_SIMILAR, _MIN_SIMILARITY))


def _looks_like_code(name: str) -> bool:
    return "_" in name.strip("_") or any(letter.isupper() for letter in name[1:])


def _occurs(name: str, evidence: Evidence) -> bool:
    whole = name.replace("_", "").lower()
    return bool(evidence.counts.get(whole)) if whole in evidence.counts else True


ConfidenceLevel = Literal["low", "med", "high"]


@dataclass(frozen=True, slots=True)
class RankingConfidence:
    level: ConfidenceLevel
    lead: float
    """How far the first place's score is above the second's."""
    coverage: float
    """The share of what the question's terms are worth that the first place has."""


HIGH_LEAD, MED_LEAD = 0.20, 0.04
HIGH_SCORE = 0.45
"""Of about 1.1 that a file could have. A lead in score and not in share of it: small scores are all near."""


def confidence_of(
    question: ParsedQuestion, ranking: Ranking, missing: Sequence[MissingName]
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
