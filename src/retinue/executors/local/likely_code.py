"""Keeps the excerpts that a model has looked at, and finds the one that most likely answers a question.

A small model answers from whatever it is shown, and chooses badly among several excerpts. Asked about one
excerpt at a time (`core/code_look.py`), it tells well which of them is about the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from retinue.tools import CodeExcerpt

LIKELY, UNLIKELY = 0.6, 0.33
"""Reports name a definition with the first chance, and do not explain code below the second one."""
USUAL = 0.35
"""The chance of code that does not answer."""
RANK_COST = 0.01
"""How much a rank of the search costs beside the chance that the model gives an excerpt."""
MIN_LOOKS, CERTAIN = 3, 0.72
"""After so many looks, no further one is needed if an excerpt has at least this chance."""
RIVALS, STANDS_OUT = 5, 1.5
"""How many of the likeliest excerpts the best one is compared with, and how much it counts that it stands
out."""
CLEAR, SURE, FAIR, POSSIBLE, DOUBTFUL, RELATED = 1.0, 0.8, 0.7, 0.6, 0.54, 0.42
"""Levels of confidence. From the first on, code has no rival; from the second on, it is taken for the
answer. From the third on, the model is asked for a place, an explanation or a yes, from the fifth on for a
value. From the fourth on, a place is named if no answer counts; from the last on, its code is quoted. Of the
answers to 176 known tasks, 56 of 61 above the second were right; of places and explanations, 13 of 19 between
the third and the second, and 3 of 11 below. Of 12 places between the fourth and the third, 10 were among the
likeliest three."""
MAX_CHOSEN, NEARLY = 2, 0.07
"""From how many excerpts the model answers, and how much less likely the second may be than the first."""


def score(chance: float, rank: int) -> float:
    """Return what an excerpt is worth by its chance and by its place in the order of the search."""
    return chance - RANK_COST * rank


def likeliest(chances: Sequence[float]) -> list[int]:
    """Return the numbers of some excerpts, the likeliest first. They are given in the search's order."""
    return sorted(range(len(chances)), key=lambda number: -score(chances[number], number))


@dataclass(frozen=True, slots=True)
class LikelyExcerpt:
    """An excerpt that a model has looked at."""

    excerpt: CodeExcerpt
    chance: float
    """How likely it answers the question."""
    rank: int
    """Its place in the order of its search."""


@dataclass(slots=True)
class Looks:
    """The excerpts that a model has looked at for one question."""

    looked: list[LikelyExcerpt] = field(default_factory=list[LikelyExcerpt])
    refused: set[str] = field(default_factory=set[str])
    """The places from which the model gave no answer that counts. They stay rivals of the others."""
    best_confidence: float = 0.0
    """The highest confidence after a round of looks."""
    earlier: Looks | None = None
    """The looks for the same question in other words."""

    def add(self, excerpt: CodeExcerpt, chance: float, rank: int) -> None:
        self.looked.append(LikelyExcerpt(excerpt, chance, rank))

    def end_round(self) -> None:
        """Remember the confidence. Further code that is about as likely as the rest would lower it."""
        self.best_confidence = max(self.best_confidence, self.confidence)

    def begun_anew(self) -> Looks:
        """Return empty looks for the same question in other words: its chances do not compare with these."""
        return Looks(refused=self.refused, earlier=self)

    @property
    def surest(self) -> Looks:
        """These looks or the earlier ones, whichever had the higher confidence."""
        earlier = self.earlier
        return earlier if earlier is not None and earlier.best_confidence > self.best_confidence else self

    def refuse(self, excerpts: Sequence[CodeExcerpt]) -> None:
        """Leave out excerpts from which the model gave no answer that counts."""
        self.refused |= {excerpt.place for excerpt in excerpts}

    @property
    def is_enough(self) -> bool:
        """Whether an excerpt is so likely that it needs no rival."""
        best = max((one.chance for one in self.candidates), default=0.0)
        return len(self.looked) >= MIN_LOOKS and best >= CERTAIN

    @property
    def confidence(self) -> float:
        """The chance of the likeliest excerpt, and how far it stands out. Zero if there is none."""
        best = max((one.chance for one in self.candidates), default=0.0)
        chances = sorted((one.chance for one in self.looked), reverse=True)
        rivals = [*chances[:RIVALS], *[USUAL] * (MIN_LOOKS - len(chances))]
        return best + STANDS_OUT * (best - median(rivals)) if best else 0.0

    @property
    def candidates(self) -> list[LikelyExcerpt]:
        """The excerpts that were not refused."""
        return [one for one in self.looked if one.excerpt.place not in self.refused]

    @property
    def ordered(self) -> list[LikelyExcerpt]:
        """The excerpts that were not refused, the likeliest first."""
        return _by_score(self.candidates)

    @property
    def chances(self) -> dict[str, float]:
        """The chances of all places, also of those that were only looked at for the earlier question."""
        earlier = self.earlier.chances if self.earlier else {}
        return {**earlier, **{one.excerpt.place: one.chance for one in self.looked}}

    @property
    def likeliest(self) -> list[CodeExcerpt]:
        """All excerpts, the likeliest first. Those that gave no answer may still be what was asked for."""
        return [one.excerpt for one in _by_score(self.looked)]

    @property
    def nearly_likeliest(self) -> list[CodeExcerpt]:
        """The likeliest excerpt, and those that are about as likely."""
        least = max((one.chance for one in self.looked), default=0.0) - NEARLY
        return [one.excerpt for one in _by_score(self.looked) if one.chance >= least]

    @property
    def chosen(self) -> list[CodeExcerpt]:
        """The excerpts that most likely answer the question."""
        best = self.ordered[:MAX_CHOSEN]
        least = max((one.chance for one in best), default=0.0) - NEARLY
        return [one.excerpt for one in best if one.chance >= least]

    def __str__(self) -> str:
        told = [f"{one.excerpt.place} {one.chance:.2f}" for one in self.ordered]
        return f"{', '.join(told)}; confidence {self.confidence:.2f}"


def _by_score(looked: Sequence[LikelyExcerpt]) -> list[LikelyExcerpt]:
    return sorted(looked, key=lambda one: -score(one.chance, one.rank))
