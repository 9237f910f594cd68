"""What one file, or one table of settings, defines. Knows nothing of how it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retinue.core import EXECUTORS, Agent, ExecutorTable
from retinue.definitions.places import AgentFormat, DefinitionScope
from retinue.definitions.problem import DefinitionProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """What one file (or table of settings) says: an agent, or why it is none."""

    name: str
    scope: DefinitionScope
    source: str
    """The file as people and hosts are shown it."""
    file: str = ""
    """The file's whole path, for its owner."""
    agent: Agent | None = None
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each field of the agent that was set, by what."""
    problems: tuple[DefinitionProblem, ...] = ()
    trusted: bool = True
    """False for a file of a project that the user has not said to trust."""
    left_out: str | None = None
    """Why it is no subagent, though nothing is wrong with it."""
    shadows: tuple[str, ...] = ()
    """Further definitions of the same name, farther away."""

    @property
    def error(self) -> DefinitionProblem | None:
        return next((problem for problem in self.problems if problem.fatal), None)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file lies, as far as its meaning goes."""

    name: str
    """Of the agent, if the file gives none."""
    source: str
    format: AgentFormat
    scope: DefinitionScope
    file: str = ""
    executor: str | None = None
    """The user's choice for files that name none."""
    executors: ExecutorTable = field(default_factory=lambda: EXECUTORS)
    """What a file may name."""
