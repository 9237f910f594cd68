"""The interface between the server and the module of an executor.

A module that `ExecutorKind.factory` names has the two functions of `ExecutorModule`. It gets `Surroundings`
and returns an `Executor` or a `LaunchPreview`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from retinue.core import Agent, Executor, Redactor

if TYPE_CHECKING:  # every start of the server loads this module, and these are slow to load
    from retinue.codebase import Codebase, Locator, Policy
    from retinue.core import OpenSkills
    from retinue.executors.sandbox import Sandbox
    from retinue.models import Models
    from retinue.web import WebPages

WEB_IS_OFF = "the web is off; only `web = true` under `[network]` in your own settings file switches it on"
NO_HOST_LIMIT = (
    "it cannot be held to `network.allow_hosts` and `network.deny_hosts` of your settings file; agents on "
    "`executor: local` can"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """Whether the user lets agents read the web, and which hosts."""

    is_open: bool = False
    allow_hosts: tuple[str, ...] = ()
    """If there are any, no other hosts may be opened."""
    deny_hosts: tuple[str, ...] = ()

    @property
    def closed_to_clis(self) -> str:
        """Why coding CLIs do not get their own tools for the web; empty if they do."""
        if not self.is_open:
            return WEB_IS_OFF
        return NO_HOST_LIMIT if self.allow_hosts or self.deny_hosts else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The services that every executor can use. Each takes what it needs."""

    data_dir: Path
    """The server's data folder, which no run may see."""
    environment: Mapping[str, str] = field(repr=False)
    """The server's own environment. Programs see only the allowed part."""
    cwd: Path
    """Where runs work: the first root, or the folder in which the server was started."""
    roots: tuple[Path, ...] = ()
    """The folders that agents may read."""
    redactor: Redactor
    models: Models
    open_codebase: Callable[[], Codebase]
    """Opens the files that agents may read."""
    policy: Callable[[], Policy]
    """Returns what agents may read."""
    open_locator: Callable[[Codebase], Locator]
    """Opens what ranks these files for a question."""
    open_skills: OpenSkills = lambda run_id, agent, task: None
    """Returns the skills of a run."""
    open_web: Callable[[], WebPages] | None = None
    """Opens what reads the web; None if the user has not allowed it."""
    web_access: WebAccess = field(default_factory=WebAccess)

    @property
    def cli_state_folder(self) -> Path:
        """Where coding CLIs keep their state for agents."""
        return self.data_dir.resolve() / "clis"

    @property
    def project_folders(self) -> tuple[Path, ...]:
        """The folders of projects. No program is taken from there, even if they are on PATH."""
        return (self.cwd, *self.roots)

    def choose_sandbox(self, agent: Agent) -> Sandbox:
        """Return the sandbox that the agent asks for; by default bubblewrap, if it is installed."""
        from retinue.executors.sandbox import (
            NoSandbox,
            find_bubblewrap,
            find_container_engine,
            require_bubblewrap,
        )

        if agent.container:
            return find_container_engine(agent.container, self.environment, self.project_folders)
        if agent.sandbox == "bwrap":
            return require_bubblewrap(self.environment, self.project_folders)
        found = None if agent.sandbox == "none" else find_bubblewrap(self.environment, self.project_folders)
        return found or NoSandbox()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPreview:
    """A preview of the program that a run would start, and how."""

    command: tuple[str, ...] = ()
    """The whole command line, including the sandbox. Empty if the executor starts no program."""
    env: tuple[str, ...] = ()
    """The names of all variables that the program gets."""
    folder: str
    """The working directory."""
    isolation: str = "none"
    model: str | None = None
    """The model that is asked for; None if the program chooses."""
    task: str = "on stdin"
    """How the program gets the task."""
    secret_files: int = 0
    """How many secrets the program reads from files in memory."""
    notes: tuple[str, ...] = ()


class ExecutorModule(Protocol):
    """The functions of a module that `ExecutorKind.factory` names."""

    def make(self, agent: Agent, surroundings: Surroundings) -> Executor:
        """Return what performs the agent's tasks. Raises what would prevent its runs."""
        ...

    def preview(self, agent: Agent, surroundings: Surroundings) -> LaunchPreview:
        """Return what a run of the agent would start. Raises what would prevent its start."""
        ...
