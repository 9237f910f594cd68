"""Small texts for people and models: cut to a length, counted in the right number."""

from __future__ import annotations

import re
from typing import TypeVar, cast


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, with a mark where it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def counted(number: float, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`; `1 reply`, `2 replies` with the plural given."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def join_notes(*notes: str | None) -> str | None:
    """The notes that there are, as one."""
    return " ".join(note for note in notes if note) or None


# MERGED visible_text: Texts of models, programs and files, which say what they like, made fit to be shown to a person.

T = TypeVar("T")

_SEQUENCE = re.compile(r"\x1b(?:\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def strip_control_characters(said: T) -> T:
    """A text, or all texts of an answer, without what would command a terminal or reorder what is read."""
    if isinstance(said, str):
        return cast(T, _CONTROL.sub("", _SEQUENCE.sub("", said.replace("\r\n", "\n"))))
    if isinstance(said, dict):
        return cast(
            T,
            {
                strip_control_characters(key): strip_control_characters(value)
                for key, value in cast(dict[str, object], said).items()
            },
        )
    if isinstance(said, list | tuple):
        return cast(T, [strip_control_characters(each) for each in cast(list[object], said)])
    return said


def name_invisible_characters(text: str) -> str:
    """The text with a name in place of every letter that cannot be seen, or that reorders those around it.

    Whoever allows a command must see all of it: what is left out of sight is allowed too (P7).
    """
    return _UNSEEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


# MERGED tokens: How many tokens a text has, estimated without any tokenizer. Knows nothing of models.
#
# Tokenizers first cut a text into pieces: a word with the space before it, a mark, a line's end. Counting
# pieces by kind and weighing each kind comes close to any of them. The weights are a fit to the vocabulary
# of Qwen; docs/decisions/tokens.md tells how well it holds, there and on another vocabulary.

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
