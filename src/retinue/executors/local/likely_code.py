"""Asks a model whether some code answers a question, and reads how likely it says yes.

A small model answers from whatever it is shown, and chooses badly among several excerpts. Asked about one
excerpt at a time, it tells well which of them is about the question. Each look costs one word of a reply.
Not all servers tell how likely the words of a reply were: then the search's order stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from retinue.core import Prompt, Reply, Turn

LOOK_RULES = (
    "You are an expert programmer who explains code briefly and exactly. You see numbered lines of some "
    "files, and use only what these lines say."
)
LOOK_TASK = "Does this code answer the question? Reply with yes or no."
LOOK_TOKENS, WORD_CHOICES = 1, 20
"""Tokens of the reply, and how many likely words the server should report."""
LIKELY, SURE, DOUBTFUL, UNLIKELY = 0.6, 0.47, 0.41, 0.33
"""An answer counts if the model gives its code at least the second chance to answer the question. From the
third on, it counts if the model gives it again. So does an answer from code with too few words of the
question, if that code gets at least the first chance. Code below the last one is not explained in reports."""
RANK_COST = 0.03
"""How much a rank of the search costs beside the chance that the model gives an excerpt. Of 30 known
questions, the first two excerpts had the answer for 19, and for 11 in the search's order."""


def look_prompt(code: str, question: str) -> Prompt:
    """Return the prompt that asks whether some code answers a question."""
    return Prompt(
        turns=(Turn("system", LOOK_RULES), Turn("user", f"{code}\n\nQuestion: {question}\n\n{LOOK_TASK}")),
        max_tokens=LOOK_TOKENS,
        temperature=0.0,
        alternatives=WORD_CHOICES,
    )


def chance_of_yes(reply: Reply) -> float | None:
    """Return how likely the reply was a yes and not a no. None if the server does not tell."""
    yes, no = (reply.first_words.get(word, 0.0) for word in ("yes", "no"))
    return yes / (yes + no) if yes + no > 0 else None


def says_yes(reply: Reply) -> bool:
    return reply.text.strip().casefold().startswith("yes")


def likeliest(chances: Sequence[float]) -> list[int]:
    """Return the numbers of some excerpts, the likeliest first. They are given in the search's order."""
    return sorted(range(len(chances)), key=lambda number: RANK_COST * number - chances[number])
