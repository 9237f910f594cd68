"""How many tokens a text has, estimated without any tokenizer. Knows nothing of models.

Tokenizers first cut a text into pieces: a word with the space before it, a mark, a line's end. Counting
pieces by kind and weighing each kind comes close to any of them. The weights are a fit to the vocabulary
of Qwen; docs/decisions/tokens.md tells how well it holds, there and on another vocabulary.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"(?P<noise>(?=[A-Za-z+/]{0,24}[0-9])(?=[0-9+/]{0,24}[A-Za-z])[A-Za-z0-9+/]{32,})"  # hashes, encoded data
    r"|(?P<free>[ ](?:[A-Z]?[a-z]+|[A-Z]+(?![a-z])))"
    r"|(?P<glued>[A-Z]?[a-z]+|[A-Z]+(?![a-z]))"  # a word, or part of one, without a space of its own
    r"|(?P<digit>[0-9])"
    r"|(?P<line>\s{0,32}\n)"
    r"|(?P<gap>[^\S\n]{2,32})"
    r"|(?P<marks>[^\w\s]{2,32}|_{2,32})"
    r"|(?P<mark>[^\w\s]|_)"
    r"|(?P<wide>[^\x00-\x7f]+)"
)
_EACH = {
    "free": 1.04,
    "glued": 0.44,
    "digit": 1.09,
    "line": 1.12,
    "gap": 0.45,
    "marks": 1.37,
    "mark": 0.89,
    "wide": 1.32,
    "noise": 0.0,
}
_PER_LETTER = {"free": (0.139, 8), "glued": (0.104, 5), "noise": (0.765, 0)}
"""Tokens for each character beyond so many: long words are cut into several tokens."""
_PER_WIDE_BYTE = 0.212


def estimate_tokens(text: str) -> int:
    """Rounded to the nearest; 0 only for an empty text."""
    total = 0.0
    for piece in _PIECE.finditer(text):
        kind = str(piece.lastgroup)
        total += _EACH[kind]
        if kind in _PER_LETTER:
            weight, free_of_charge = _PER_LETTER[kind]
            total += weight * max(0, piece.end() - piece.start() - free_of_charge)
        elif kind == "wide":
            total += _PER_WIDE_BYTE * len(piece[0].encode("utf-8", "surrogatepass"))
    return max(round(total), min(1, len(text)))
