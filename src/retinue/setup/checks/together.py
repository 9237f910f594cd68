"""Runs tasks at the same time and waits for them no longer than it may. Knows nothing of what they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    reason: str


class _Task(threading.Thread, Generic[T]):
    """A daemon: a task that hangs, say on a dead network folder, must not keep the program from ending."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.result: T | Failure = Failure("did not finish in time")

    def run(self) -> None:
        try:
            self.result = self._work()
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            # The error's own text may hold a path or a value that must not be shown.
            self.result = Failure(f"failed unexpectedly ({type(error).__name__})")


def together(work: Sequence[Callable[[], T]], seconds: float) -> list[T | Failure]:
    """The results in order; a task that fails or is late gives a `Failure` and holds up no other."""
    deadline = time.monotonic() + seconds
    tasks = [_Task(each) for each in work]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join(max(0.0, deadline - time.monotonic()))
    return [task.result for task in tasks]
