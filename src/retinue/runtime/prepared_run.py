"""A run that is ready to start, and who performs its task if its account is spent. Starts nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from retinue.core import Delegate, Executor, RunId, RunSpec, ToolRequest, Verdict

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to start: its specification, its executor and its working folder."""

    spec: RunSpec
    executor: Executor
    cwd: Path
    env: Callable[[RunId], Environment] = field(default=lambda _: {})
    """Creates the environment variables through which the run's processes reach this server.

    Called within the transaction that records the run."""
    permit: Callable[[RunId, ToolRequest], Awaitable[Verdict]] | None = None
    """Decides on tool requests that the agent's rules do not cover; None denies them."""
    account: str | None = None
    """The account whose usage limit the executor spends; None if it spends none."""
    fallback: Fallback | None = None
    """Who performs the task if the account is spent; None if the run waits."""
    start: str | None = None
    """The branch of an earlier run whose work this run continues."""
    delegate: Callable[[RunId], Delegate] | None = None
    """Returns what starts other agents for the run; None if it may start none."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """Which other agents may perform a task if the account of its own agent is spent."""

    mode: Literal["ask", "chain"]
    names: Sequence[str]
    prepare: Callable[[str], PreparedRun]
    """Prepares the same task for another agent. Raises if that agent cannot run it."""
