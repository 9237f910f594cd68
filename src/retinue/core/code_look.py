"""The question to a model whether some code answers another question, and the chance of a yes in its reply.

A look costs one word of a reply. Not all servers tell how likely the words of a reply were: then a yes and a
no count as two fixed chances.
"""

from __future__ import annotations

import re

from retinue.core.model import Prompt, Reply, Turn

LOOK_RULES = (
    "You are an expert programmer who explains code briefly and exactly. You see numbered lines of some "
    "files, and use only what these lines say."
)
LOOK_TASK = "Does this code answer the question? Reply with yes or no."
LOOK_TOKENS, WORD_CHOICES = 1, 20
"""Tokens of the reply, and how many likely words the server should report."""
PLAIN_YES, PLAIN_NO = 0.71, 0.4
"""The chances that count if the server tells none."""
MIN_MASS = 0.2
"""How likely a yes or a no must be at least. A model that begins with a thought says neither."""

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
