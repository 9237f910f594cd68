"""Finds a quotation on its page again, and makes the link at which a browser shows it (P3).

A text fragment names the first and the last words of a quotation. A browser looks for each of them within one
block of the page and shows the first place that it finds, so the words are chosen to lead to the quotation
and nowhere else. Knows nothing of how passages are chosen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote as percent_encode

FEWEST_WORDS = 3
"""A fragment of fewer words would match at many places of a page."""
END_WORDS = 5
MOST_WORDS = 12
WHOLE_WORDS = 10
"""A quotation of at most this many words is the fragment as a whole."""
_MARKED = re.compile(r"[`*\[\]()<>|#~\\]|^_|_$|^[-+>]+$")
"""A word that a browser may display differently from the text of the page."""
_FULL_STOP = re.compile(r"([\u3002\uff01\uff1f]) ?")
_FENCE = "```"
_FENCE_LINE = re.compile(r" {0,3}```[^`]*")


@dataclass(frozen=True, slots=True)
class PageWords:
    """The words of a page, each with the number of the block that it is in."""

    words: tuple[str, ...]
    blocks: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> PageWords:
        words: list[str] = []
        blocks: list[int] = []
        block = 0
        for line in text.split("\n"):
            block += 1
            if _FENCE_LINE.fullmatch(line):  # the name of a language in it is not displayed
                continue
            for word in _split(line.replace(_FENCE, " ")):
                block += word == "|"  # a cell of a table
                words.append(word)
                blocks.append(block)
        return cls(tuple(words), tuple(blocks))

    def find(self, phrase: tuple[str, ...], start: int = 0, *, in_one_block: bool = False) -> int | None:
        """Return where some words follow each other for the first time."""
        first, size = phrase[0], len(phrase)
        at = start - 1
        while True:
            try:
                at = self.words.index(first, at + 1)
            except ValueError:
                return None
            if self.words[at : at + size] == phrase and not (
                in_one_block and self.blocks[at] != self.blocks[at + size - 1]
            ):
                return at


def find_fragment(quotation: str, page: PageWords) -> str | None:
    """Return the text fragment that leads to a quotation; None if the page does not contain it.

    An empty fragment means that no words lead there.
    """
    words = tuple(_split(quotation))
    at = page.find(words) if words else None
    if at is None:
        return None
    last = at + len(words) - 1
    if (
        len(words) <= WHOLE_WORDS
        and page.blocks[at] == page.blocks[last]
        and not any(map(_MARKED.search, words))
    ):
        return _encoded(words)
    begin = _begin(page, at, last)
    if begin is None:
        return ""
    first, after = begin
    end = _end(page, after, last)
    return _encoded(page.words[first:after]) + ("" if end is None else f",{_encoded(end)}")


def _begin(page: PageWords, at: int, last: int) -> tuple[int, int] | None:
    """Return the first plain words of a quotation that occur nowhere before it: their start and end."""
    first = at
    while first <= last:
        after = first
        while (
            after <= last
            and page.blocks[after] == page.blocks[first]
            and not _MARKED.search(page.words[after])
        ):
            after += 1
            size = after - first
            is_shown_there = page.find(page.words[first:after], in_one_block=True) == first
            if size >= min(END_WORDS, last + 1 - first) and (is_shown_there or size >= MOST_WORDS):
                return first, after
        if after - first >= FEWEST_WORDS:
            return first, after
        first = after + 1
    return None


def _end(page: PageWords, after: int, last: int) -> tuple[str, ...] | None:
    """Return the last plain words of a quotation; None if it has no more than those that it begins with."""
    while last >= after and _MARKED.search(page.words[last]):
        last -= 1
    first = last
    while first > after and last - first < END_WORDS - 1:
        if page.blocks[first - 1] != page.blocks[last] or _MARKED.search(page.words[first - 1]):
            break
        first -= 1
    return page.words[first : last + 1] if last >= after else None


def _split(text: str) -> list[str]:
    """Return the words of a text. No blank follows the end of a sentence in Chinese and Japanese."""
    return _FULL_STOP.sub(r"\1 ", text).split()


def _encoded(words: tuple[str, ...]) -> str:
    text = _FULL_STOP.sub(r"\1", " ".join(words))
    return percent_encode(text, safe="").replace("-", "%2D")
