"""A tool's answer made short, keeping what bears on the task. Knows nothing of conversations."""

from __future__ import annotations

import re

from retinue.core import clip, estimate_tokens

SHORTENED = "[shortened; call again for all of it]"
_WORD = re.compile(r"[^\W\d_]{4,40}")
_LONGEST_LINE = 160


def words_of(text: str) -> frozenset[str]:
    """The words by which a line is told to bear on the text."""
    return frozenset(word.casefold() for word in _WORD.findall(text[:20_000]))


def shortened(answer: str, words: frozenset[str], tokens: int) -> str:
    """The first line, then those that share most words with the task, in their own order."""
    lines = answer.split("\n")
    ranked = sorted(
        range(1, len(lines)),
        key=lambda place: (-len(words & words_of(lines[place])), place),
    )
    room = tokens - estimate_tokens(SHORTENED) - 2
    kept: list[int] = []
    for place in [0, *ranked]:
        room -= estimate_tokens(clip(lines[place], _LONGEST_LINE)) + 1
        if room < 0 and kept:
            break
        kept.append(place)
    shown = [clip(lines[place], _LONGEST_LINE) for place in sorted(kept)]
    short = "\n".join([*shown, SHORTENED])
    return short if len(short) < len(answer) else answer
