"""Words that code uses for what people say in everyday words: `csrf` for `forged`, `duplicate` for `twice`.

A question is also searched for the related words of its own words, with a lower weight. The table is
`related_words.txt`: a word or a phrase, and after a colon the words that code may use for it. It holds
general vocabulary of software alone, and leads from everyday words to words of code, not back.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.parse.terms import STOP_WORDS, stem

_MAX_PHRASE_WORDS = 3


class RelatedTerm(NamedTuple):
    """Where a related term comes from."""

    source: str
    """The first stem of the word or phrase."""
    is_phrase: bool


def related_terms(stems: list[str]) -> dict[str, RelatedTerm]:
    """Return the related terms of a row of stems that are not in the row, those of phrases first."""
    found: dict[str, RelatedTerm] = {}
    for length in range(_MAX_PHRASE_WORDS, 0, -1):
        for at in range(len(stems) - length + 1):
            for term in _table().get(tuple(stems[at : at + length]), ()):
                if term not in stems:
                    found.setdefault(term, RelatedTerm(stems[at], length > 1))
    return found


@cache
def _table() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Maps the stems of a word or a phrase to the stems of its related words that are searched for."""
    lines = Path(__file__).with_name("related_words.txt").read_text("utf-8").splitlines()
    return {
        tuple(map(stem, key.split())): tuple(
            dict.fromkeys(stem(word) for word in words.split() if word not in STOP_WORDS)
        )
        for key, _, words in (line.partition(":") for line in lines)
    }
