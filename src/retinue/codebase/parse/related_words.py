"""Words that code uses for the words of people, learned from the comments and the code of public projects.

A question is also searched for the related words of its own words, with a lower weight. The table is
`related_words.txt`: the stem of a word, and after a colon the stems of the words that code uses for it.
`scripts/learn_related_words.py` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path


def related_terms(stems: Iterable[str]) -> dict[str, str]:
    """Return the related terms of some stems that are not among them, each with the stem it comes from."""
    own = list(stems)
    found: dict[str, str] = {}
    for source in own:
        for term in _table().get(source, ()):
            if term not in own:
                found.setdefault(term, source)
    return found


@cache
def _table() -> dict[str, tuple[str, ...]]:
    lines = Path(__file__).with_name("related_words.txt").read_text("utf-8").splitlines()
    return {word: tuple(related.split()) for word, _, related in (line.partition(":") for line in lines)}
