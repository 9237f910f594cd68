"""What every surface talks to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from retinue.config import Settings
from retinue.core import ConfigInvalid, Redactor, Root, Stop, Unavailable

if TYPE_CHECKING:  # loaded by the first question or the first run, not by the start
    from retinue.service.agents import AgentService
    from retinue.service.runs import RunService
    from retinue.service.workflows import WorkflowService

Later = Callable[[Hashable, Callable[[Stop], object]], object]

ADD_A_ROOT = (
    "No root is configured, so nothing can be read. Start the server with `--root DIR`, set `RETINUE_ROOTS`, "
    'or write `roots = ["DIR"]` in retinue.toml.'
)


@dataclass(frozen=True, slots=True)
class Service:
    """The parts that `wiring` put together. A copy of it may see more roots, never fewer checks."""

    roots: tuple[Root, ...]
    redactor: Redactor
    """The surfaces apply it to everything that leaves."""

    allow_host_roots: bool = False
    settings: Settings = field(default_factory=Settings)
    later: Later | None = None
    """Takes work that nobody waits for; there while the server is up."""
    index_from: int = 0
    """Files from which on an index is worth making."""

    agent_service: AgentService | None = None
    """Who can be asked; files are read when somebody looks."""

    run_service: RunService | None = None
    """There while the server is up."""

    @property
    def runs(self) -> RunService:
        if self.run_service is None:
            raise Unavailable("the server is not up yet", hint="try again")
        return self.run_service

    open_workflows: Callable[[], WorkflowService] | None = None
    """There while the server is up; loaded when somebody asks."""

    @property
    def workflows(self) -> WorkflowService:
        if self.open_workflows is None:
            raise Unavailable("the server is not up yet", hint="try again")
        return self.open_workflows()

    @property
    def agents(self) -> AgentService:
        if self.agent_service is None:
            raise Unavailable("no agents are defined here")
        return self.agent_service

    def ping(self) -> str:
        return "pong"

    def list_roots(self) -> dict[str, object]:
        """The allowlisted roots only, and what to do when there is none."""
        listed: dict[str, object] = {"roots": [str(root) for root in self.roots]}
        if not self.roots:
            listed["note"] = ADD_A_ROOT
        return listed

    def with_host_roots(self, offered: Iterable[str]) -> Service:
        """The same service, reading what the host offers too, where the user allowed that.

        What cannot be a root is left out: the host's list is a wish, not configuration.
        """
        if not self.allow_host_roots:
            return self
        roots = list(self.roots)
        for path in offered:
            try:
                root = Root.at(path)
            except ConfigInvalid:
                continue
            if root not in roots:
                roots.append(root)
        return replace(self, roots=tuple(roots))
