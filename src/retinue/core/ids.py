"""Identifiers that are safe in a URL, a path and a shell, and that sort by the time they were made.

Whoever holds a `RunId` holds a checked one: it comes from `new` or from `parse`, so it may be joined
into a path. Plain text from outside may not.
"""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Self

from retinue.core.errors import InvalidInput

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_LETTERS = 11  # microseconds since 1970, enough for a thousand years
_RANDOM_LETTERS = 4
_SHAPE = re.compile(rf"[{_ALPHABET}]{{{_TIME_LETTERS + _RANDOM_LETTERS}}}", re.ASCII)

_clock_lock = threading.Lock()
_last_micros = 0


def _next_micros() -> int:
    """Strictly increasing within the process, so that ids made in a row sort in that order."""
    global _last_micros
    with _clock_lock:
        _last_micros = max(_last_micros + 1, time.time_ns() // 1000)
        return _last_micros


def _letters(number: int, count: int) -> str:
    letters = [""] * count
    for place in range(count - 1, -1, -1):
        letters[place] = _ALPHABET[number & 31]
        number >>= 5
    return "".join(letters)


class Id(str):
    """Fifteen lower-case letters and digits: eleven of time, four of chance."""

    __slots__ = ()

    @classmethod
    def new(cls) -> Self:
        chance = int.from_bytes(os.urandom(4), "big")
        return cls(_letters(_next_micros(), _TIME_LETTERS) + _letters(chance, _RANDOM_LETTERS))

    @classmethod
    def parse(cls, text: object) -> Self:
        """The one gate for ids from outside."""
        if isinstance(text, str) and cls.is_valid(text):
            return cls(text)
        raise InvalidInput(
            f"not a {cls.noun()} id: {str(text)[:40]!r}",
            hint="use an id exactly as it was returned, fifteen lower-case letters and digits",
        )

    @classmethod
    def is_valid(cls, text: str) -> bool:
        return _SHAPE.fullmatch(text) is not None

    @classmethod
    def noun(cls) -> str:
        return cls.__name__.removesuffix("Id").lower()


class RunId(Id):
    __slots__ = ()


class MessageId(Id):
    __slots__ = ()


class OwnerId(Id):
    """One server process, from its start to its end."""

    __slots__ = ()
