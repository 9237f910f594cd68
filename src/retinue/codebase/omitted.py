"""What a result leaves out, and why. A result without this would pass for the whole truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from retinue.core import DeadlineExceeded, LimitExceeded, RetinueError, Stop


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
class Tally:
    """Collects what a loop leaves out while it runs."""

    counts: Counter[str] = field(default_factory=Counter[str])
    limits: list[str] = field(default_factory=list[str])

    def refused(self, error: RetinueError) -> None:
        """Count a file that could not be opened under the reason its refusal carries."""
        self.counts[reason_of(error)] += 1

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


def reason_of(error: RetinueError) -> str:
    """The field of `Omitted` under which a refused file is counted."""
    if isinstance(error, LimitExceeded):
        return "too_large"
    return str(error.data.get("reason", "unreadable"))
