"""CPU time of a piece of work with all it starts, and limits that figures are held against."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable


def cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cost(work: Callable[[], object]) -> float:
    before = cpu()
    work()
    return cpu() - before


class Checks:
    """Prints figures as they come, and remembers those over their limit."""

    def __init__(self) -> None:
        self._missed: list[str] = []

    def say(self, line: str) -> None:
        print(line, flush=True)

    def ratio(self, name: str, value: float, limit: float) -> None:
        self._held(name, f"{value:.2f} x", value, limit)

    def seconds(self, name: str, value: float, limit: float) -> None:
        self._held(name, f"{value:.2f} s", value, limit)

    def figure(self, name: str, value: float, limit: float) -> None:
        self._held(name, f"{value:.0f}", value, limit)

    def _held(self, name: str, shown: str, value: float, limit: float) -> None:
        missed = value > limit
        self.say(f"{name}: {shown} (limit {limit:g}){'  MISSED' if missed else ''}")
        if missed:
            self._missed.append(name)

    def verdict(self) -> int:
        """The exit code."""
        if self._missed:
            self.say(f"missed: {'; '.join(self._missed)}")
        return int(bool(self._missed))
