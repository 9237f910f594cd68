"""Judges a draft by what happened with it and without it.

Each past task is tried both ways, as often with the draft as without. A task counts once, however often it
was tried: tries of one task are not independent of each other. It speaks for the draft if more of its tries
pass with the draft, and against it if fewer do. If chance alone would give a lead like this less than once in
twenty times (the sign test, both directions together), the draft helps or harms. Six tasks that all speak for
it are the fewest that can show this. Every other result is "no difference shown", which is not a gain.

If the same tasks pass, tokens are compared in the same way. Knows nothing of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from statistics import median
from typing import Any

from retinue.core import as_object

MAX_CHANCE = 0.05
"""The largest probability that a lead which is called gain or harm comes from chance alone."""


class DraftVerdict(StrEnum):
    """The verdict of a trial. The values are part of `retinue evolve try --json`."""

    HELPS = "helps"
    HARMS = "harms"
    SAVES = "saves tokens"
    COSTS = "costs tokens"
    UNSHOWN = "no difference shown"


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one run of a past task ended."""

    passed: bool
    """Whether its acceptance commands, or its output schema, accepted the work."""
    steps: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskTrial:
    """The attempts at one past task."""

    run_id: str
    """The past run."""
    task: str
    without: Sequence[Attempt]
    with_draft: Sequence[Attempt]

    @property
    def lead(self) -> int:
        """How many more attempts pass with the draft than without it."""
        return _passed(self.with_draft) - _passed(self.without)

    @property
    def saving(self) -> float:
        """Tokens that the draft saves in an attempt that passes; 0 if none passes on one of the sides."""
        with_draft = [each.tokens for each in self.with_draft if each.passed]
        without = [each.tokens for each in self.without if each.passed]
        return median(without) - median(with_draft) if with_draft and without else 0.0


@dataclass(frozen=True, slots=True)
class DraftTrial:
    """A whole trial."""

    tasks: tuple[TaskTrial, ...]
    skipped: tuple[str, ...] = ()
    """Why the trial has fewer attempts than it was meant to have."""

    @property
    def verdict(self) -> DraftVerdict:
        leads = [task.lead for task in self.tasks]
        match _direction(leads):
            case 1:
                return DraftVerdict.HELPS
            case -1:
                return DraftVerdict.HARMS
            case _:
                pass
        match _direction([task.saving for task in self.tasks]) if sum(leads) >= 0 else 0:
            case 1:
                return DraftVerdict.SAVES
            case -1:
                return DraftVerdict.COSTS
            case _:
                return DraftVerdict.UNSHOWN

    def as_json(self) -> dict[str, Any]:
        """The figures for people and programs."""
        leads = [task.lead for task in self.tasks]
        return {
            "verdict": self.verdict.value,
            "tasks": len(self.tasks),
            "attempts": sum(len(task.with_draft) for task in self.tasks),
            "better": sum(lead > 0 for lead in leads),
            "worse": sum(lead < 0 for lead in leads),
            "same": sum(lead == 0 for lead in leads),
            "chance": round(chance_of_lead(leads), 4),
            "without": _side(self.tasks, lambda task: task.without),
            "with": _side(self.tasks, lambda task: task.with_draft),
            "by_task": [
                {
                    "run_id": task.run_id,
                    "task": task.task,
                    "passed_without": f"{_passed(task.without)} of {len(task.without)}",
                    "passed_with": f"{_passed(task.with_draft)} of {len(task.with_draft)}",
                }
                for task in self.tasks
            ],
            **({"skipped": list(self.skipped)} if self.skipped else {}),
        }


def read_figures(value: Any) -> dict[str, Any] | None:
    """Return the figures of an earlier trial; None if they are not what `DraftTrial.as_json` returns."""
    figures = as_object(value)
    sides = {way: as_object(figures.get(way)) for way in ("without", "with")}
    counts = [figures.get(name) for name in ("tasks", "attempts", "better", "worse", "same", "chance")]
    counts += [side.get(name) for side in sides.values() for name in ("passed", "steps", "tokens", "seconds")]
    skipped = figures.get("skipped", [])
    if (
        figures.get("verdict") not in list(DraftVerdict)
        or not all(isinstance(each, int | float) for each in counts)
        or not isinstance(skipped, list)
    ):
        return None
    return dict(figures)


def chance_of_lead(votes: Iterable[float]) -> float:
    """Return the probability that a lead at least as clear as this one, in either direction, is chance.

    Votes of zero do not count. It is 1 if there is no lead.
    """
    votes = [vote for vote in votes if vote]
    wins = max(sum(vote > 0 for vote in votes), sum(vote < 0 for vote in votes))
    tail = sum(comb(len(votes), k) for k in range(wins, len(votes) + 1))
    return min(1.0, 2 * tail / 2 ** len(votes))


def _direction(votes: Sequence[float]) -> int:
    """1 if the votes are in favour, -1 if they are against, 0 if chance explains them."""
    if chance_of_lead(votes) > MAX_CHANCE:
        return 0
    return 1 if sum(vote > 0 for vote in votes) > sum(vote < 0 for vote in votes) else -1


def _passed(attempts: Sequence[Attempt]) -> int:
    return sum(each.passed for each in attempts)


def _side(
    tasks: Sequence[TaskTrial], attempts_of: Callable[[TaskTrial], Sequence[Attempt]]
) -> dict[str, Any]:
    """The figures of all attempts with the draft, or without it. Amounts are means of an attempt."""
    attempts = [attempt for task in tasks for attempt in attempts_of(task)]
    count = len(attempts) or 1
    return {
        "passed": _passed(attempts),
        "steps": round(sum(each.steps for each in attempts) / count, 1),
        "tokens": round(sum(each.tokens for each in attempts) / count),
        "seconds": round(sum(each.seconds for each in attempts) / count, 1),
    }
