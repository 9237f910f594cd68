"""Shortens, cleans and measures text for people and models. Also defines the `Redactor` port.

Tokens are estimated without a tokenizer. Tokenizers first split a text into pieces: a word with the space
before it, a punctuation mark, a line break. Counting the pieces by kind and weighting each kind comes close
to the result of any tokenizer. The weights were fitted to the vocabulary of Qwen; docs/decisions/tokens.md
shows how accurate they are for it and for another vocabulary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar, cast

T = TypeVar("T")

LONG_WORD = 128
MISSING_MARK_CHARS = 60
_IN_WORD = r"[!-~]{2}"
_LAST_BLANK = r"([^!-~])[!-~]*\Z"
_LAST_SEPARATOR = r"([^!-~]|[,;(){}\[\]<>|&])[^\s,;(){}\[\]<>|&\x80-\U0010ffff]*\Z"


@cache
def _pattern(regex: str) -> re.Pattern[str]:
    """Compile a regex when it is first used: these take 6 ms, and most processes use few of them."""
    return re.compile(regex)


def clip(text: str, limit: int) -> str:
    """Cut the text to at most `limit` characters, before a word. A cut text ends with `…`.

    Words stay whole because a secret that was cut in half is not recognized when the text is redacted (P6).
    """
    return text if len(text) <= limit else text[: _end_of_word(text, limit - 1)].rstrip() + "…"


def clip_start(text: str, limit: int) -> str:
    """Return the last lines of the text that fit into `limit` characters.

    Lines stay whole because a value alone does not show that it is a secret (P6).
    """
    if len(text) <= limit:
        return text
    _, newline, lines = text[-limit - 1 :].partition("\n")
    return lines if newline else "…"


@dataclass(frozen=True, slots=True)
class LongText:
    """A text of which the beginning and the end are at hand, and its size."""

    beginning: str
    end: str
    characters: int
    lines: int
    """Line breaks in the whole text."""

    @classmethod
    def of(cls, text: str) -> LongText:
        return cls(text, text, len(text), text.count("\n"))

    def shorten(self, limit: int) -> str:
        """Return at most about `limit` characters: the beginning, what is missing, and the end (P4).

        Cuts before or after a line or a word if there is one nearby.
        """
        if self.characters <= limit and len(self.beginning) == self.characters:
            return self.beginning
        half = max(0, limit - MISSING_MARK_CHARS) // 2
        head = _last_break(self.beginning, min(half, len(self.beginning)))
        tail = _first_break(self.end, max(0, len(self.end) - half))
        first, last = self.beginning[:head], self.end[tail:]
        characters = self.characters - len(first) - len(last)
        lines = self.lines - first.count("\n") - last.count("\n")
        missing = f"[… {counted(characters, 'character')}, {counted(lines, 'line')} missing here …]"
        return f"{first}\n{missing}\n{last}"


def _last_break(text: str, limit: int) -> int:
    """Return the end of the last line up to `limit`, or of the last word, if it is not far away."""
    near = max(0, limit - LONG_WORD)
    for found in (text.rfind("\n", near, limit), text.rfind(" ", near, limit)):
        if found > 0:
            return found
    return limit


def _first_break(text: str, start: int) -> int:
    """Return the beginning of the first line from `start` on, or of the first word, if it is not far away."""
    far = start + LONG_WORD
    for found in (text.find("\n", start, far), text.find(" ", start, far)):
        if found >= 0:
            return found + 1
    return start


def _end_of_word(text: str, limit: int) -> int:
    """Return the last place up to `limit` that is not inside a word."""
    if not _pattern(_IN_WORD).match(text, max(0, limit - 1)):
        return limit
    blank = _pattern(_LAST_BLANK).search(text, max(0, limit - LONG_WORD), limit)
    if blank is None:  # not a word but code or data without blanks
        blank = _pattern(_LAST_SEPARATOR).search(text, 0, limit)
    return blank.end(1) if blank else 0


def counted(number: float, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 file`, `2 files`. Pass the plural if it is irregular."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def join_notes(*notes: str | None) -> str | None:
    """Join the notes that are not empty; None if all are."""
    return " ".join(note for note in notes if note) or None


_ESCAPE_SEQUENCE = r"\x1b(?:\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_INVISIBLE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def strip_control_characters(value: T) -> T:
    """Remove terminal escape sequences, control characters and text direction marks.

    Lone surrogates, which cannot be encoded, become question marks. Takes a text, or a JSON-like value whose
    texts are cleaned.
    """
    if isinstance(value, str):
        plain = _pattern(_CONTROL).sub("", _pattern(_ESCAPE_SEQUENCE).sub("", value.replace("\r\n", "\n")))
        return cast(T, plain if plain.isascii() else plain.encode("utf-8", "replace").decode())
    if isinstance(value, dict):
        return cast(
            T,
            {
                strip_control_characters(key): strip_control_characters(each)
                for key, each in cast(dict[str, object], value).items()
            },
        )
    if isinstance(value, list | tuple):
        return cast(T, [strip_control_characters(each) for each in cast(list[object], value)])
    return value


def escape_invisible_characters(text: str) -> str:
    """Replace invisible characters and text direction marks with `\\u{...}` escapes.

    A person who allows a command must see all of it (P7).
    """
    return _pattern(_INVISIBLE).sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


_PIECE = (
    r"(?P<noise>(?=[A-Za-z+/]{0,24}[0-9])(?=[0-9+/]{0,24}[A-Za-z])[A-Za-z0-9+/]{32,})"  # hashes, encoded data
    r"|(?P<free>[ ](?:[A-Z]?[a-z]+|[A-Z]+(?![a-z])))"
    r"|(?P<glued>[A-Z]?[a-z]+|[A-Z]+(?![a-z]))"  # a word, or part of one, without a space before it
    r"|(?P<digit>[0-9])"
    r"|(?P<line>\s{0,32}\n)"
    r"|(?P<gap>[^\S\n]{2,32})"
    r"|(?P<marks>[^\w\s]{2,32}|_{2,32})"
    r"|(?P<mark>[^\w\s]|_)"
    r"|(?P<wide>[^\x00-\x7f]+)"
)
_TOKENS_PER_PIECE = {
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
"""(tokens, n): tokens added for each character after the first n, because long words are split."""
_PER_WIDE_BYTE = 0.212


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text. 0 only for an empty text."""
    total = 0.0
    for piece in _pattern(_PIECE).finditer(text):
        kind = str(piece.lastgroup)
        total += _TOKENS_PER_PIECE[kind]
        if kind in _PER_LETTER:
            weight, first = _PER_LETTER[kind]
            total += weight * max(0, piece.end() - piece.start() - first)
        elif kind == "wide":
            total += _PER_WIDE_BYTE * len(piece[0].encode("utf-8", "surrogatepass"))
    return max(round(total), min(1, len(text)))


class RedactedStream(Protocol):
    """Redacts text that arrives in pieces, wherever it is cut."""

    def feed(self, text: str) -> str:
        """Take the next piece and return the text that is ready, redacted."""
        ...

    def finish(self) -> str:
        """Return the rest of the stream, redacted."""
        ...


class Redactor(Protocol):
    """Removes secrets from text and values before they leave the process."""

    def redact(self, text: str, *, before: str = "") -> str:
        """Return the text with every secret replaced, also those that began in the text before it."""
        ...

    def hide(self, values: Iterable[str]) -> None:
        """Also redact these values from now on."""
        ...

    def redact_value(self, value: T) -> T:
        """Redact a JSON-like value. The names of its fields help to find secrets."""
        ...

    def redact_lines(self, lines: Sequence[str]) -> list[str]:
        """Redact consecutive lines and return as many. A secret may span several of them."""
        ...

    def stream(self) -> RedactedStream:
        """Return a redactor for one stream of text that arrives in pieces."""
        ...


def compact_json(value: object) -> str:
    """Return a value as JSON without spaces, as `JSON.stringify` writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def toml_string(text: str) -> str:
    """Return a text as a TOML string.

    It is written as JSON. U+007F is escaped too: JSON allows it in a string, TOML does not.
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
