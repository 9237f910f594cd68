"""Text cut to a number of tokens, with a word about what was cut (P4). Knows nothing of what it says."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.core import clip, counted, estimate_tokens

NOTE_TOKENS = 40
"""Kept free for saying what was cut."""
LETTERS_PER_TOKEN = 3
"""Of a single line that is longer than all the room: what surely fits."""


def lines_that_fit(lines: Sequence[str], tokens: int) -> int:
    """How many lines from the first on fit, leaving room for a note if not all do."""
    total = 0
    fitting = 0
    for number, line in enumerate(lines, 1):
        total += estimate_tokens(line + "\n")
        if total <= tokens - NOTE_TOKENS:
            fitting = number
        if total > tokens:
            return fitting
    return len(lines)


def bounded(text: str, tokens: int, more: str = "ask for less at a time") -> str:
    """The text, or its first lines and how many were cut; `more` says how to see the rest."""
    lines = text.split("\n")
    shown = lines_that_fit(lines, tokens)
    if shown == len(lines):
        return text
    if shown == 0:
        letters = max(1, (tokens - NOTE_TOKENS) * LETTERS_PER_TOKEN)
        return f"{clip(lines[0], letters)}\n[cut: {len(text)} characters in all; {more}]"
    return "\n".join([*lines[:shown], f"[cut: {shown} of {counted(len(lines), 'line')} shown; {more}]"])
