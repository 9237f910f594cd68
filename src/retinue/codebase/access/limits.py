"""What a result leaves out, and why. A result without this would pass for the whole truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from retinue.core import DeadlineExceeded, InvalidInput, LimitExceeded, RetinueError, Stop


@dataclass(frozen=True, slots=True)
class Omitted:
    """Counts by reason. Nothing here names what was left out."""

    denied: int = 0
    """Files and folders that the policy hides."""
    ignored: int = 0
    """Files and folders that the project's own ignore files hide."""
    binary: int = 0
    """Files that are not text."""
    too_large: int = 0
    """Files over the policy's size limit."""
    unreadable: int = 0
    """Files and folders without permission, vanished, or with a name that is no text of one line."""
    over_limit: int = 0
    """Files, lines or matches known to lie past a limit; there may be more."""
    limits: tuple[str, ...] = ()
    """Which limits were reached: files, bytes, lines, line length, matches, entries, depth, time ..."""

    def __bool__(self) -> bool:
        return self != Omitted()

    def sentence(self) -> str:
        """For people: what is missing, or an empty string."""
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
    """Collects what a loop leaves out while it runs."""

    counts: Counter[str] = field(default_factory=Counter[str])
    limits: list[str] = field(default_factory=list[str])

    def refused(self, error: RetinueError) -> None:
        """Count a file that could not be opened under the reason its refusal carries."""
        self.counts[omission_reason(error)] += 1

    def reached(self, limit: str) -> None:
        if limit not in self.limits:
            self.limits.append(limit)

    def out_of_time(self, stop: Stop) -> bool:
        """Whether a loop must end with what it has. A cancel is raised: nobody waits for that result."""
        try:
            stop.check()
        except DeadlineExceeded:
            self.reached("time")
            return True
        return False

    def omitted(self) -> Omitted:
        return Omitted(**self.counts, limits=tuple(self.limits))


def omission_reason(error: RetinueError) -> str:
    """The field of `Omitted` under which a refused file is counted."""
    if isinstance(error, LimitExceeded):
        return "too_large"
    return str(error.data.get("reason", "unreadable"))


# MERGED bounds: How much one call may hand out. Knows nothing of who set the limits or of budgets over many calls.

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


def charge_nothing(files: int, size: int) -> None:
    """The `OnRead` of a call that belongs to no budget."""
