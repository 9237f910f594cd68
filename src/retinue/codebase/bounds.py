"""How much one call may hand out. Knows nothing of who set the limits or of budgets over many calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from retinue.core import InvalidInput

OnRead = Callable[[int, int], None]
"""Told (files, bytes) just before text is handed out; may raise LimitExceeded to refuse it.

The one place where a budget over many calls plugs in. What a search scans or an index reads is not
charged: only text that leaves this room is.
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    max_files: int = 50
    """Files whose text one call hands out."""
    max_bytes: int = 1_048_576
    """Bytes of text one call hands out, as UTF-8."""
    max_lines: int = 2_000
    """Lines of one excerpt."""
    max_matches: int = 200
    """Matching lines of one search."""
    max_matches_per_file: int = 20
    """So that one file full of matches does not hide the others."""
    max_entries: int = 1_000
    """Names in one listing or glob."""
    max_line_chars: int = 500
    """Longer lines are cut around what matters, with a mark where."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise InvalidInput(f"{field.name} must be at least 1, not {value}")


def free_of_charge(files: int, size: int) -> None:
    """The `OnRead` of a call that belongs to no budget."""
