"""Words of code and of questions: identifiers split into stems. Knows nothing of files.

A stem is always a prefix of the word it came from, so a plain substring search for the stem
finds every line that can hold the word. Cold answers rely on that: ripgrep narrows by stems.
"""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W\d_]\w*|\d{2,}")
"""An identifier as written, or a number worth looking for (an error code, a year)."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")

_SHORTEST_STEM = 3
_SHORTEST_AT_STEM = 4
_LONGEST_WORD = 64
"""Bytes; longer ones are data: hashes, encoded images."""


def stem(word: str) -> str:
    """`word`, lower case, without its inflection: `retries` and `retry`, `validation` and `validator` agree."""
    if len(word) <= _SHORTEST_STEM or not word.isascii():
        return word
    word = _without_plural(word)
    for suffix in ("ations", "ation", "ators", "ator", "ating", "ated", "ate"):
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_AT_STEM:
            return word[: -len(suffix)]
    for suffix in ("ing", "ed"):
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            word = _undoubled(word[: -len(suffix)])
            break
    for suffix in ("ion", "able", "ible", "ment", "ive", "ly", "er", "or"):
        if word.endswith(suffix) and len(word) - len(suffix) > _SHORTEST_STEM:
            word = _undoubled(word[: -len(suffix)])
            break
    if word[-1] in "ey" and len(word) > _SHORTEST_STEM:
        word = word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return word[:-3]
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and word[-2] not in "siu":
        return word[:-1]
    return word


def _undoubled(word: str) -> str:
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word


def parts(identifier: str) -> list[str]:
    """`getHTTPResponse_code` as `get`, `http`, `response`, `code`."""
    return [part.lower() for part in _PART.findall(identifier)]


class _Stems(dict[str, str]):
    """Part as written to its stem; a part too short to be looked for has none."""

    def __missing__(self, part: str) -> str:
        self[part] = found = stem(part.lower()) if len(part) > 1 else ""
        return found


class Vocabulary(dict[bytes, str]):
    """A word as it stands in a file to what it is found by, each worked out once.

    The terms are the stems of the word's parts and, when there are several, the whole; space between.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stems = _Stems()

    def __missing__(self, word: bytes) -> str:
        identifier = word.decode(errors="replace") if len(word) <= _LONGEST_WORD else ""
        pieces = _PART.findall(identifier)
        stems = self._stems
        if len(pieces) > 1:
            found = {stems[piece]: None for piece in pieces}
            found[identifier.replace("_", "").lower()] = None
            self[word] = terms = " ".join(filter(None, found))
        else:
            self[word] = terms = stems[pieces[0]] if pieces else ""
        return terms


_BETWEEN_WORDS = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(256)
)


def words(data: bytes) -> bytes:
    """`data` with a space for every byte that belongs to no identifier; `split()` gives the words."""
    return data.translate(_BETWEEN_WORDS)
