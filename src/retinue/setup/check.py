"""The result of one doctor check, and a helper that runs checks in parallel with a deadline.

Knows nothing of what the checks look at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

CheckStatus = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of `retinue doctor`."""

    name: str
    status: CheckStatus
    """`problem`: something does not work. `warning`: it works, but read `fix`. `ok`: nothing to do."""
    finding: str
    fix: str = ""
    """What to do, or what you gain by doing it. Empty if there is nothing to do."""

    def as_dict(self) -> dict[str, str]:
        fields = {"name": self.name, "status": self.status, "finding": self.finding}
        return {**fields, "fix": self.fix} if self.fix else fields


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Stands in for the result of a task that raised an error or missed the deadline."""

    reason: str


def run_in_parallel(tasks: Sequence[Callable[[], T]], seconds: float) -> list[T | TaskFailure]:
    """Run every task in its own thread and return the results in order.

    A task that raises or is not done after `seconds` yields a `TaskFailure`; the others are not affected.
    """
    deadline = time.monotonic() + seconds
    threads = [_TaskThread(task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread.result for thread in threads]


class _TaskThread(threading.Thread, Generic[T]):
    """Runs one task in a daemon thread, so that a task that hangs cannot block the exit of the process."""

    def __init__(self, task: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._task = task
        self.result: T | TaskFailure = TaskFailure("did not finish in time")

    def run(self) -> None:
        try:
            self.result = self._task()
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            # Only the type: the message may contain a path or a value that must not be shown.
            self.result = TaskFailure(f"failed unexpectedly ({type(error).__name__})")
