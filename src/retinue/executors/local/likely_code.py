"""Keeps the excerpts that a model has looked at, and finds the one that most likely answers a question.

A small model answers from whatever it is shown, and chooses badly among several excerpts. Asked about one
excerpt at a time (`core/code_look.py`), it tells well which of them is about the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from retinue.tools import CodeExcerpt

LIKELY = 0.6
"""Reports name a definition that has at least this chance."""
UNLIKELY = 0.33
"""Reports do not explain code with a lower chance."""
USUAL = 0.35
"""The chance of code that does not answer."""
RANK_COST = 0.01
"""How much a rank of the search costs beside the chance that the model gives an excerpt."""
MIN_LOOKS = 3
"""Fewer looks do not tell what stands out."""
CERTAIN = 0.72
"""With this chance, an excerpt needs no further rival after `MIN_LOOKS`."""
RIVALS = 5
"""How many of the likeliest excerpts the best one is compared with."""
STANDS_OUT = 1.5
"""How much the lead of the best excerpt over its rivals counts beside its chance."""
CLEAR = 1.0
"""The confidence from which code has no rival, and from which an explanation or a yes is certain."""
SURE = 0.8
"""The confidence from which code is taken for the answer. Of 61 answers to known tasks above it, 56 were
right. On the sixteenth and seventeenth set of tasks, 13 of 16 places and values were, and 1 of 4 explanations
and yeses below `CLEAR`."""
MIN_FOR_PLACE = 0.7
"""The confidence from which the model is asked for a place or a yes."""
MIN_FOR_ANSWER = 0.5
"""The confidence from which the model is asked for an explanation, a value or a part of an answer. Of 24
known explanations, the likeliest code is right for 15 and wrong for five from it on. From 0.7 on, it is right
for seven and wrong for one."""
MIN_TO_QUOTE = 0.42
"""The confidence from which the likeliest code is quoted if no answer counts."""
MAX_CHOSEN = 2
"""From how many excerpts the model answers at most."""
NEARLY = 0.07
"""How much less likely than the best an excerpt may be that counts as about as likely."""


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
