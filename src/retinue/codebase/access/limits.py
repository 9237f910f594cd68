"""Limits on what one call returns, and counts of what a result leaves out.

Knows nothing of who set the limits, or of budgets over several calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from retinue.core import DeadlineExceeded, InvalidInput, LimitExceeded, RetinueError, Stop

OnRead = Callable[[int, int], None]
"""Called with (files, bytes) just before text is returned. May raise LimitExceeded to refuse it.

This enforces a budget over several calls. Only returned text is charged, not what a search scans or an index
reads.
"""


def charge_nothing(files: int, size: int) -> None:
    """Accept any read: the `OnRead` of a call without a budget."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on what one call returns."""

    max_files: int = 50
    """Files whose text one call returns."""
    max_bytes: int = 1_048_576
    """Bytes of text that one call returns, as UTF-8."""
    max_lines: int = 2_000
    """Lines of one excerpt."""
    max_matches: int = 200
    """Matching lines of one search."""
    max_matches_per_file: int = 20
    """Matching lines of one file, so that a file full of matches does not hide the others."""
    max_entries: int = 1_000
    """Names in one listing or glob."""
    max_line_chars: int = 500
    """Characters of one line. Longer lines are cut around the relevant part, with a mark at each cut."""

    def __post_init__(self) -> None:
        for bound in fields(self):
            value = getattr(self, bound.name)
            if value < 1:
                raise InvalidInput(f"{bound.name} must be at least 1, not {value}")


@dataclass(frozen=True, slots=True)
class Omitted:
    """Counts of what a result leaves out, by reason. Never names an omitted file."""

    denied: int = 0
    """Files and folders that the policy hides."""
    ignored: int = 0
    """Files and folders that the project's own ignore files hide."""
    binary: int = 0
    """Files that are not text."""
    too_large: int = 0
    """Files over the policy's size limit."""
    unreadable: int = 0
    """Files and folders without read permission, that disappeared, or whose names do not fit on one line."""
    over_limit: int = 0
    """Files, lines or matches beyond a limit, as far as they were counted."""
    limits: tuple[str, ...] = ()
    """Which limits were reached: files, bytes, lines, line length, matches, entries, depth, time ..."""

    def __bool__(self) -> bool:
        return self != Omitted()

    def sentence(self) -> str:
        """Return a sentence that says what is missing, or an empty string if nothing is."""
        counted = {
            "hidden by the policy": self.denied,
            "ignored by the project": self.ignored,
            "binary": self.binary,
            "too large": self.too_large,
            "unreadable": self.unreadable,
            "past a limit": self.over_limit,
        }
        parts = [f"{count} {reason}" for reason, count in counted.items() if count]
        left_out = [f"Left out: {', '.join(parts)}."] if parts else []
        reached = [f"Limits reached: {', '.join(self.limits)}."] if self.limits else []
        return " ".join(left_out + reached)


@dataclass(slots=True)
class OmissionTally:
    """Counts what a loop leaves out while it runs."""

    counts: Counter[str] = field(default_factory=Counter[str])
    limits: list[str] = field(default_factory=list[str])

    def add_refused(self, error: RetinueError) -> None:
        """Count a file that could not be opened, under the reason that the error carries."""
        self.counts[omission_reason(error)] += 1

    def add_limit(self, limit: str) -> None:
        """Record that a limit was reached."""
        if limit not in self.limits:
            self.limits.append(limit)

    def out_of_time(self, stop: Stop) -> bool:
        """Return whether the deadline has passed, so that the loop must end with what it has.

        Raises if the work was cancelled, because then no caller needs the result.
        """
        try:
            stop.check()
        except DeadlineExceeded:
            self.add_limit("time")
            return True
        return False

    def omitted(self) -> Omitted:
        return Omitted(**self.counts, limits=tuple(self.limits))


def omission_reason(error: RetinueError) -> str:
    """Return the field of `Omitted` that counts a file refused with this error."""
    if isinstance(error, LimitExceeded):
        return "too_large"
    return str(error.data.get("reason", "unreadable"))
