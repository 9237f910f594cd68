"""Asks a model whether some code answers a question, and reads how likely it says yes.

A small model answers from whatever it is shown, and chooses badly among several excerpts. Asked about one
excerpt at a time, it tells well which of them is about the question. Each look costs one word of a reply.
Not all servers tell how likely the words of a reply were: then a yes and a no count as two fixed chances.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from retinue.core import Prompt, Reply, Turn
from retinue.tools import CodeExcerpt

LOOK_RULES = (
    "You are an expert programmer who explains code briefly and exactly. You see numbered lines of some "
    "files, and use only what these lines say."
)
LOOK_TASK = "Does this code answer the question? Reply with yes or no."
LOOK_TOKENS, WORD_CHOICES = 1, 20
"""Tokens of the reply, and how many likely words the server should report."""
LIKELY, UNLIKELY = 0.6, 0.33
"""Reports name a definition with the first chance, and do not explain code below the second one."""
PLAIN_YES, PLAIN_NO, USUAL = 0.71, 0.4, 0.35
"""The chances that count if the server tells none, and the one of code that does not answer."""
MIN_MASS = 0.2
"""How likely a yes or a no must be at least. A model that begins with a thought says neither."""
RANK_COST = 0.01
"""How much a rank of the search costs beside the chance that the model gives an excerpt."""
MIN_LOOKS, CERTAIN = 3, 0.72
"""After so many looks, no further one is needed if an excerpt has at least this chance."""
RIVALS, STANDS_OUT = 5, 1.5
"""How many of the likeliest excerpts the best one is compared with, and how much it counts that it stands
out."""
SURE, FAIR, DOUBTFUL = 0.8, 0.7, 0.54
"""The confidence from which on code is taken for the answer, the one from which on it is named as a likely
place, and the one below which the model is not asked. Of the answers to 176 known tasks,
56 of 61 above the first were right; of places and explanations, 13 of 19 below it and 3 of 11 below the
second."""
MAX_CHOSEN, NEARLY = 2, 0.07
"""From how many excerpts the model answers, and how much less likely the second may be than the first."""


_FIRST_WORD = re.compile(r"\W*(\w+)")


def look_prompt(code: str, question: str) -> Prompt:
    """Return the prompt that asks whether some code answers a question."""
    return Prompt(
        turns=(Turn("system", LOOK_RULES), Turn("user", f"{code}\n\nQuestion: {question}\n\n{LOOK_TASK}")),
        max_tokens=LOOK_TOKENS,
        temperature=0.0,
        alternatives=WORD_CHOICES,
    )


def chance_of_yes(reply: Reply) -> float | None:
    """Return how likely the reply was a yes and not a no. None if it is neither."""
    yes, no = (reply.first_words.get(word, 0.0) for word in ("yes", "no"))
    if reply.first_words:
        return yes / (yes + no) if yes + no >= MIN_MASS else None
    said = _FIRST_WORD.match(reply.text)
    return {"yes": PLAIN_YES, "no": PLAIN_NO}.get(said[1].casefold()) if said else None


def likeliest(chances: Sequence[float]) -> list[int]:
    """Return the numbers of some excerpts, the likeliest first. They are given in the search's order."""
    return sorted(range(len(chances)), key=lambda number: RANK_COST * number - chances[number])


@dataclass(frozen=True, slots=True)
class LikelyExcerpt:
    """An excerpt that a model has looked at."""

    excerpt: CodeExcerpt
    chance: float
    """How likely it answers the question."""
    rank: int
    """Its place in the order of its search."""

    @property
    def score(self) -> float:
        return self.chance - RANK_COST * self.rank


@dataclass(slots=True)
class Looks:
    """The excerpts that a model has looked at for one question."""

    looked: list[LikelyExcerpt] = field(default_factory=list[LikelyExcerpt])
    refused: set[str] = field(default_factory=set[str])
    """The places from which the model gave no answer that counts. They stay rivals of the others."""

    def add(self, excerpt: CodeExcerpt, chance: float, rank: int) -> None:
        self.looked.append(LikelyExcerpt(excerpt, chance, rank))

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
        return sorted(self.candidates, key=lambda one: -one.score)

    @property
    def chosen(self) -> list[CodeExcerpt]:
        """The excerpts that most likely answer the question."""
        best = self.ordered[:MAX_CHOSEN]
        least = max((one.chance for one in best), default=0.0) - NEARLY
        return [one.excerpt for one in best if one.chance >= least]

    def __str__(self) -> str:
        told = [f"{one.excerpt.place} {one.chance:.2f}" for one in self.ordered]
        return f"{', '.join(told)}; confidence {self.confidence:.2f}"
