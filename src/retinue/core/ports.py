"""The shapes that one room asks of another: whatever has the shape qualifies, fakes too."""

from __future__ import annotations

from typing import Protocol

from retinue.core.executor import Outcome, RunContext, Task


class Executor(Protocol):
    """A way to perform one task."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome: ...
