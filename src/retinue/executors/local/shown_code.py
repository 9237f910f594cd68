"""Finds lines, names and definitions in the code that a model was shown. Knows nothing of questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from retinue.tools import CodeExcerpt

MIN_QUOTE_CHARS = 6
MIN_SIMILAR, MIN_SIMILAR_CHARS = 0.85, 20
"""How similar a line must be to one that a model copies with a slip, and how long."""

_ACTION = re.compile(
    r"^(?!\s*(?:#\[|@|#include|import\b|from\b|use\b|.*\brequire\()).*(?:\w\s*\(|\b(?:if|for|while|return|match|switch|case|raise|throw)\b)"
)
COMMENT = re.compile(r"^\s*(?:#|//|/?\*|\"\"\"|--)")
_DEFINED = r"(?<![\w.]){name}\b[^=\n]{{0,60}}(?::=|=>?)\s*[^=>].*(?:{holds})"
_SPACE = re.compile(r"\s+")
_QUOTATION = re.compile(r"[\"'`]")
_LINE_IN_WORDS = re.compile(r"\blines? (\d{1,7})\b", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"^\s*\d+\s*:\s?")


def place_of_line(quote: str, excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that the model copied: the longest one of several, or a similar one."""
    wanted = plain_line(_LINE_NUMBER.sub("", quote))
    if len(wanted) < MIN_QUOTE_CHARS:
        return None
    lines = [
        (plain_line(line), place_at(excerpt, number))
        for excerpt in excerpts
        for number, line in excerpt.lines
    ]
    if whole := [place for plain, place in lines if wanted in plain]:
        return whole[0]
    joined = [(len(plain), place) for plain, place in lines if plain in wanted]
    length, place = max(joined, key=lambda one: one[0], default=(0, None))
    if length >= MIN_QUOTE_CHARS:
        return place
    if len(wanted) < MIN_SIMILAR_CHARS:
        return None
    similar = [(SequenceMatcher(None, plain, wanted).ratio(), place) for plain, place in lines]
    ratio, place = max(similar, key=lambda one: one[0], default=(0.0, None))
    return place if ratio >= MIN_SIMILAR else None


def place_by_number(answer: str, excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that an answer names by its number, as the model saw it."""
    for found in _LINE_IN_WORDS.finditer(answer):
        for excerpt in excerpts:
            if any(number == int(found[1]) for number, _ in excerpt.lines):
                return place_at(excerpt, int(found[1]))
    return None


def definition_of(
    names: Sequence[str], excerpts: Sequence[CodeExcerpt], holds: str
) -> tuple[str, str] | None:
    """Return the place and the text of a shown line that gives one of these names a value.

    The value must match the regular expression `holds`.
    """
    for name in names:
        pattern = re.compile(_DEFINED.format(name=re.escape(name), holds=holds))
        for excerpt in excerpts:
            for number, line in excerpt.lines:
                if pattern.search(line):
                    return place_at(excerpt, number), line.strip()
    return None


def line_with_names(names: Sequence[str], excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that has most of these names; None if no line has one."""
    counts = {
        place_at(excerpt, number): sum(has_word(name, text) for name in names)
        for excerpt in excerpts
        for number, text in excerpt.lines
    }
    best = max(counts, key=lambda place: counts[place], default=None)
    return best if best and counts[best] else None


def number_line(values: Sequence[CodeExcerpt]) -> tuple[str, str] | None:
    """Return the place and the text of the line with a number; None if there is none or they disagree."""
    lines = [(one.place, one.first_line[1].strip()) for one in values]
    found = [(place, line) for place, line in lines if re.search(r"\d", line)]
    return found[0] if len({line for _, line in found}) == 1 else None


def acts(excerpt: CodeExcerpt, line: int) -> bool:
    """Return whether the definition that a line belongs to does something, and not only declares it."""
    inside = excerpt.line <= line <= excerpt.end
    return any(
        _ACTION.search(text)
        for number, text in excerpt.lines
        if not COMMENT.match(text)
        and (number != excerpt.line or excerpt.end == excerpt.line)
        and (not inside or excerpt.line <= number <= excerpt.end)
    )


def place_at(excerpt: CodeExcerpt, line: int) -> str:
    return f"{excerpt.path}:{line}"


def last_name(excerpt: CodeExcerpt) -> str:
    """Return the name of a definition without the class or module that it belongs to."""
    return excerpt.symbol.rpartition(".")[2]


def text_of(excerpts: Sequence[CodeExcerpt]) -> str:
    """Return the lines of some excerpts, without their numbers."""
    return "\n".join(text for excerpt in excerpts for _, text in excerpt.lines)


def has_word(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def has_name(name: str, folded: str) -> bool:
    """Return whether a text, in lower case, contains a name of an answer."""
    return name.casefold().removesuffix("()") in folded


def plain_line(text: str) -> str:
    """Return a text without differences that a model makes when it copies a line into JSON."""
    return _SPACE.sub(" ", _QUOTATION.sub("", text)).strip().casefold()
