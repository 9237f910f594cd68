"""Asks a model whether some code answers a question, and reads how likely it says yes.

A small model answers from whatever it is shown, and chooses badly among several excerpts. Asked about one
excerpt at a time, it tells well which of them is about the question. Each look costs one word of a reply.
Not all servers tell how likely the words of a reply were: then a yes and a no count as two fixed chances.
"""

from __future__ import annotations

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
PLAIN_YES, PLAIN_NO, USUAL = 0.66, 0.4, 0.35
"""The chances that count if the server tells none, and the one of code that does not answer."""
RANK_COST = 0.01
"""How much a rank of the search costs beside the chance that the model gives an excerpt."""
MIN_LOOKS, CERTAIN = 3, 0.67
"""After so many looks, no further one is needed if an excerpt has at least this chance."""
RIVALS, STANDS_OUT = 5, 1.5
"""How many of the likeliest excerpts the best one is compared with, and how much it counts that it stands
out."""
SURE, FAIR, DOUBTFUL = 0.8, 0.65, 0.54
"""The confidence from which on code is taken for the answer, the one from which on it is named as a likely
place, and the one below which the model is not asked. On known tasks, 32 of 35 answers above the first were
right; of places and explanations, 8 of 13 below it and none of 4 below the second."""
MAX_CHOSEN, NEARLY = 2, 0.07
"""From how many excerpts the model answers, and how much less likely the second may be than the first."""


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
    if yes + no > 0:
        return yes / (yes + no)
    said = reply.text.strip().casefold()
    return PLAIN_YES if said.startswith("yes") else PLAIN_NO if said.startswith("no") else None


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

    def add(self, excerpt: CodeExcerpt, chance: float, rank: int) -> None:
        self.looked.append(LikelyExcerpt(excerpt, chance, rank))

    def leave_out(self, excerpts: Sequence[CodeExcerpt]) -> None:
        """Forget excerpts from which the model gave no answer that counts."""
        places = {excerpt.place for excerpt in excerpts}
        self.looked = [one for one in self.looked if one.excerpt.place not in places]

    @property
    def is_enough(self) -> bool:
        """Whether an excerpt is so likely that it needs no rival."""
        return len(self.looked) >= MIN_LOOKS and max(one.chance for one in self.looked) >= CERTAIN

    @property
    def confidence(self) -> float:
        """The chance of the likeliest excerpt, and how far it stands out. Zero if there is none."""
        chances = sorted((one.chance for one in self.looked), reverse=True)
        rivals = [*chances[:RIVALS], *[USUAL] * (MIN_LOOKS - len(chances))]
        return chances[0] + STANDS_OUT * (chances[0] - median(rivals)) if chances else 0.0

    @property
    def ordered(self) -> list[LikelyExcerpt]:
        """The excerpts, the likeliest first."""
        return sorted(self.looked, key=lambda one: -one.score)

    @property
    def chosen(self) -> list[CodeExcerpt]:
        """The excerpts that most likely answer the question."""
        best = self.ordered[:MAX_CHOSEN]
        least = max((one.chance for one in best), default=0.0) - NEARLY
        return [one.excerpt for one in best if one.chance >= least]

    def __str__(self) -> str:
        told = [f"{one.excerpt.place} {one.chance:.2f}" for one in self.ordered]
        return f"{', '.join(told)}; confidence {self.confidence:.2f}"
