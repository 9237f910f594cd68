"""An agent: who may be asked to do a task, and within what limits. Knows nothing of how it is performed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    description: str
    executor: str
    """The way its tasks are performed, such as `command`."""
    program: str | None = None
    """The program that performs them, where there is one."""
    timeout_s: float
    """Seconds from a run's start after which it is ended."""
    spawns: int = 0
    """Runs that one of its runs may start."""
    source: str
    """The file, variable or flag that defined it."""
