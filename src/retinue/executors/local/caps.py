"""The hard limits of one agent's loop. Knows nothing of what is done within them.

Tokens are counted as the size of a request, prompt and reply together: history is sent again at each step,
so a sum would run out after a few of them, while the size is what a loaded model can hold. The sum is
bounded by the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_STEPS = 15
MAX_TOKENS = 8_000
CONTEXT_SHARE = 0.3
"""Of what the loaded model can hold: others may want to use it at the same time."""
MAX_STRIKES = 3
"""Broken calls in a row."""
ANSWER_TRIES = 3
"""At an answer that must fit its schema."""
MAX_REPLY = 2_048
MAX_TOOL_ANSWER = 1_500
MAX_CALLS = 8
"""In one reply."""
AFTER_OVERFLOW = 0.7
"""Of the size that was too much."""


@dataclass(frozen=True, slots=True)
class Caps:
    steps: int
    """Requests to the model, every kind of them."""
    tokens: int
    """Of one request, prompt and reply together."""
    strikes: int = MAX_STRIKES
    tries: int = ANSWER_TRIES

    @classmethod
    def of(cls, context: int) -> Caps:
        """For a model that can hold so many tokens."""
        return cls(steps=MAX_STEPS, tokens=min(MAX_TOKENS, int(CONTEXT_SHARE * context)))

    @property
    def reply(self) -> int:
        """Tokens kept free for a reply, at the least."""
        return min(1_024, self.tokens // 4)

    def tool_answer(self, free: int, calls: int) -> int:
        """Tokens for the answer of one of several calls: a share of what is free, or can be made free."""
        return max(self.tokens // 6, min(MAX_TOOL_ANSWER, free // max(1, calls)))
