"""How many tokens a prompt will have for one model, better with each reply. Knows nothing of servers.

Vocabularies differ, and so do the words that a server's template puts around a turn. Each reply tells what
the last prompt really took; the estimate follows at half the distance, within bounds that no odd count of
a server can push it out of.
"""

from __future__ import annotations

import json
from functools import lru_cache

from retinue.core import Prompt, estimate_tokens

PER_TURN = 5
"""Tokens that a template puts around each turn."""
MIN_FACTOR, MAX_FACTOR = 0.7, 2.0
"""Some servers do not count what they had in their cache; to expect too much is the safer error."""
MIN_TOKENS = 64
"""Shorter prompts are mostly template and teach nothing."""


class Calibrated:
    """Of one model at one endpoint."""

    def __init__(self) -> None:
        self._factor = 1.0

    @property
    def factor(self) -> float:
        return self._factor

    def estimate(self, prompt: Prompt) -> int:
        return round(plain_estimate(prompt) * self._factor)

    def learn(self, prompt: Prompt, prompt_tokens: int) -> None:
        """What the server counted for this prompt."""
        plain = plain_estimate(prompt)
        if plain < MIN_TOKENS or prompt_tokens <= 0:
            return
        seen = min(max(prompt_tokens / plain, MIN_FACTOR), MAX_FACTOR)
        self._factor += (seen - self._factor) / 2


@lru_cache(maxsize=2_048)
def _tokens_of(text: str) -> int:
    """Remembered: each step of an agent sends again what the step before it sent."""
    return estimate_tokens(text)


def plain_estimate(prompt: Prompt) -> int:
    """By the text alone."""
    texts = [turn.text for turn in prompt.turns]
    texts += [f"{call.name} {call.arguments}" for turn in prompt.turns for call in turn.calls]
    texts += [f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}" for tool in prompt.tools]
    return sum(map(_tokens_of, texts)) + PER_TURN * (len(prompt.turns) + len(prompt.tools))
