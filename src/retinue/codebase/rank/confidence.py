"""Judges how far the first place of an answer can be trusted, and finds names that no file contains.

Confidence is high only if the first place leads clearly and has a good score itself. The limits are
calibrated on four sets of questions, reports and commits; docs/decisions/retrieval.md has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from retinue.codebase.index import Evidence
from retinue.codebase.parse import ParsedQuestion, file_category, looks_like_code, other_forms
from retinue.codebase.rank.ranking import Ranking

ConfidenceLevel = Literal["low", "med", "high"]

HIGH_LEAD, MED_LEAD = 0.20, 0.04
HIGH_SCORE = 0.45
"""A score can reach about 1.1. The lead is a difference, not a ratio, because small scores are all close."""

_MAX_SIMILAR = 3
_MIN_SIMILARITY = 0.75
"""The smallest similarity of two names, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class RankingConfidence:
    """How far the first place can be trusted."""

    level: ConfidenceLevel
    lead: float
    """How far the score of the first place is above that of the second."""
    coverage: float
    """The weight of the terms that the first place contains, as a share of the weight of all terms."""


@dataclass(frozen=True, slots=True)
class MissingName:
    """A name of the question that no file contains."""

    name: str
    similar_names: tuple[str, ...]
    """Defined names that are similar, most similar first."""


def judge_confidence(ranking: Ranking, missing: Sequence[MissingName]) -> RankingConfidence:
    """Judge how far the first place can be trusted. `missing` are names that no file contains."""
    best = ranking.best
    if not best:
        return RankingConfidence("low", 0.0, 0.0)
    lead = best[0].score - (best[1].score if len(best) > 1 else 0.0)
    total = sum(ranking.weights.values())
    covered = sum(weight for term, weight in ranking.weights.items() if best[0].file in ranking.counts[term])
    coverage = covered / total if total else 0.0
    is_named = any(best[0].file in ranking.signals[name] for name in ("mentioned", "traced", "defined"))
    if missing and not is_named:
        return RankingConfidence("low", lead, coverage)
    if lead >= HIGH_LEAD and best[0].score >= HIGH_SCORE:
        return RankingConfidence("high", lead, coverage)
    return RankingConfidence("med" if lead >= MED_LEAD else "low", lead, coverage)


def missing_names(question: ParsedQuestion, evidence: Evidence, ranking: Ranking) -> tuple[MissingName, ...]:
    """Return the names of the question that no file contains, in the order of the question.

    Only names that look like code count: any other word may be plain language.
    """
    absent = [name for name in question.names if looks_like_code(name) and not _occurs(name, evidence)]
    if not absent:
        return ()
    defined = sorted({name for detail in ranking.details.values() for name in detail.name_terms})
    return tuple(MissingName(name, similar_names(name, defined)) for name in absent)


def absent_words(question: ParsedQuestion, ranking: Ranking, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a brief question that no file of the project's own code contains, in its order.

    Words that say little count only if there are no others. Another form of a word stands for it.
    """
    heavy = max(question.terms.values(), default=0.0) if question.brevity else 0.0
    own = ("own", "package")
    return tuple(
        question.word_by_term.get(term, term)
        for term, weight in question.terms.items()
        if heavy
        and weight >= heavy
        and not any(
            file_category(paths[file]) in own
            for form in (term, *other_forms(term))
            for file in ranking.counts.get(form, ())
        )
    )


def similar_names(name: str, defined: Sequence[str]) -> tuple[str, ...]:
    """Return the defined names that are most similar to `name`.

    Names that share too few letters with it are dropped first, because the exact comparison is slow.
    """
    other_bytes = bytes(set(range(256)).difference(f"{name}\n".encode()))
    shared = "\n".join(defined).encode().translate(None, other_bytes).split(b"\n")
    possible = [
        other
        for other, letters in zip(defined, shared, strict=False)
        if 2 * min(len(letters), len(name)) >= _MIN_SIMILARITY * (len(name) + len(other))
    ]
    return tuple(get_close_matches(name, possible, _MAX_SIMILAR, _MIN_SIMILARITY))


def _occurs(name: str, evidence: Evidence) -> bool:
    """Return whether a file contains the name. A name that was not searched for counts as found."""
    whole = name.replace("_", "").lower()
    return bool(evidence.counts.get(whole)) if whole in evidence.counts else True
