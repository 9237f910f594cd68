"""The shapes that one room asks of another: whatever has the shape qualifies, fakes too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from retinue.core.executor import Outcome, RunContext, Task

T = TypeVar("T")


class Redactor(Protocol):
    """Takes secrets out of what leaves."""

    def redact(self, text: str) -> str: ...

    def hide(self, values: Iterable[str]) -> None:
        """Take these values out too, from now on."""
        ...

    def redact_value(self, value: T) -> T:
        """The same for a JSON-like value, whose names help to find them."""
        ...

    def lines(self) -> Callable[[str], str]:
        """The same for a text that comes line by line: it remembers what began in an earlier line."""
        ...


class Executor(Protocol):
    """A way to perform one task."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome: ...
