"""Ids that are safe in URLs, paths and shells, and that sort by creation time.

A `RunId` comes from `new` or `parse`, so it is always valid and may be joined into a path. Parse text from
outside before you use it as an id.
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

MIN_PART_LETTERS = 4
"""The shortest part of an id that callers may pass instead of the whole."""

_clock_lock = threading.Lock()
_last_micros = 0


def _next_micros() -> int:
    """The time in microseconds, strictly increasing within the process so that ids keep their order."""
    global _last_micros
    with _clock_lock:
        _last_micros = max(_last_micros + 1, time.time_ns() // 1000)
        return _last_micros


def _encode(number: int, count: int) -> str:
    """Write the number in base 32 with the given number of letters."""
    letters = [""] * count
    for place in range(count - 1, -1, -1):
        letters[place] = _ALPHABET[number & 31]
        number >>= 5
    return "".join(letters)


class Id(str):
    """Fifteen lower-case letters and digits: eleven encode the time, four are random."""

    __slots__ = ()

    @classmethod
    def new(cls) -> Self:
        """Create an id."""
        random = int.from_bytes(os.urandom(4), "big")
        return cls(_encode(_next_micros(), _TIME_LETTERS) + _encode(random, _RANDOM_LETTERS))

    @classmethod
    def parse(cls, text: object) -> Self:
        """Check text from outside. Raises `InvalidInput` if it is not an id."""
        if isinstance(text, str) and cls.is_valid(text):
            return cls(text)
        raise InvalidInput(
            f"not a {cls.noun()} id: {str(text)[:40]!r}",
            hint="use an id as it was returned, fifteen lower-case letters and digits, or at least four from "
            "its beginning or end",
        )

    @classmethod
    def is_valid(cls, text: str) -> bool:
        """Whether the text has the format of an id."""
        return _SHAPE.fullmatch(text) is not None

    @classmethod
    def is_part(cls, text: str) -> bool:
        """Whether the text may be the beginning or the end of an id, long enough to mean one."""
        return len(text) >= MIN_PART_LETTERS and set(text) <= set(_ALPHABET) and not cls.is_valid(text)

    @classmethod
    def noun(cls) -> str:
        """What the id identifies, such as `run`, for error messages."""
        return cls.__name__.removesuffix("Id").lower()


class RunId(Id):
    """The id of a run."""

    __slots__ = ()


class MessageId(Id):
    """The id of a message."""

    __slots__ = ()


class OwnerId(Id):
    """The id of one server process, from its start to its end."""

    __slots__ = ()
