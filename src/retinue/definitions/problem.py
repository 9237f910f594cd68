"""What is wrong with a file, and where. Knows nothing of any format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Problem:
    line: int
    """From 1, as editors count."""
    message: str
    hint: str | None = None
    fatal: bool = True
    """False for what is worth saying but takes nothing away."""

    def __str__(self) -> str:
        return self.message + (f"; {self.hint}" if self.hint else "")


class Malformed(Exception):
    """A file, or a value in it, that cannot be understood."""

    def __init__(self, line: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(line, message, hint)


def did_you_mean(given: str, known: Iterable[str]) -> str | None:
    near = get_close_matches(given, list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else None
