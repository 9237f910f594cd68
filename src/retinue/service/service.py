"""The object that the MCP server, the command line and the dashboard call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from retinue.config import Settings
from retinue.core import ConfigInvalid, Redactor, Root, Stop, Unauthorized, Unavailable

if TYPE_CHECKING:  # loaded by the first question or the first run, not by the start
    from retinue.core import Run, RunId, RunMemory
    from retinue.service.agents import AgentService
    from retinue.service.evolution import EvolutionService
    from retinue.service.memory import MemoryService
    from retinue.service.run_refusal import IsFromRun
    from retinue.service.runs import RunService
    from retinue.service.skills import SkillService
    from retinue.service.workflows import WorkflowService
    from retinue.store import Reports
    from retinue.web import WebPages

ScheduleJob = Callable[[Hashable, Callable[[Stop], object]], object]
"""Starts a background job, unless one with the same key is running."""

ADD_A_ROOT = (
    "No root is configured, so nothing can be read. Start the server with `--root DIR`, or with "
    "`--follow-host` to read the open project; or set `RETINUE_ROOTS`, or write "
    '`roots = ["DIR"]` in retinue.toml.'
)
NO_PROJECT_OPEN = (
    "Nothing can be read: the host offers no roots and started the server in the home folder, which is not "
    "read. Start the host in a project's folder, or the server with `--root DIR`."
)


@dataclass(frozen=True, slots=True)
class Service:
    """The services of this process, built by `wiring`. A copy may have more roots, never fewer checks."""

    roots: tuple[Root, ...]
    redactor: Redactor
    """The server, the command line and the dashboard apply it to all their output."""

    allow_host_roots: bool = False
    client_name: str = ""
    """The name with which the host introduced itself, in the service of one request."""
    settings: Settings = field(default_factory=Settings)
    is_from_run: IsFromRun = field(default=lambda client, server: False)
    """Tells which connections come from processes of runs."""
    schedule_job: ScheduleJob | None = None
    """Set while the server is running."""
    index_from: int = 0
    """The number of files from which an index is worth its cost."""

    agent_service: AgentService | None = None
    """Reads the agent files on demand."""

    run_service: RunService | None = None
    """Set while the server is running."""

    @property
    def runs(self) -> RunService:
        if self.run_service is None:
            raise Unavailable("the server is not running yet", hint="try again")
        return self.run_service

    open_web: Callable[[], WebPages] | None = None
    """Opens what reads the web for one run; None if the user has not allowed it."""

    open_reports: Callable[[], Reports] | None = None
    """Opens the stored reports of research."""

    @property
    def reports(self) -> Reports:
        if self.open_reports is None:
            raise Unavailable("this service stores no reports")
        return self.open_reports()

    open_workflows: Callable[[], WorkflowService] | None = None
    """Set while the server is running; loads the workflow service on first use."""

    @property
    def workflows(self) -> WorkflowService:
        if self.open_workflows is None:
            raise Unavailable("the server is not running yet", hint="try again")
        return self.open_workflows()

    open_evolution: Callable[[], EvolutionService] | None = None
    """Set while the server is running; loads the evolver on first use."""

    @property
    def evolution(self) -> EvolutionService:
        if self.open_evolution is None:
            raise Unavailable("the server is not running yet", hint="try again")
        return self.open_evolution()

    open_skills: Callable[[], SkillService] | None = None
    """Loads the skill service on first use. Reads the files of skills on demand."""

    @property
    def skills(self) -> SkillService:
        if self.open_skills is None:
            raise Unavailable("this service has no skills")
        return self.open_skills()

    open_memory: Callable[[tuple[Root, ...]], MemoryService] | None = None
    """Loads the memory of a project on first use; the same one for the same roots."""

    @property
    def memory(self) -> MemoryService:
        if self.open_memory is None:
            raise Unavailable("this service has no memory")
        return self.open_memory(self.roots)

    def uses_memory(self, run: Run) -> bool:
        """Whether a run may use the memory: its agent has it, and it is no trial of a draft."""
        return self.agents.uses_memory(run.spec.agent) and not run.spec.is_trial

    def memory_of_run(self, run_id: RunId) -> RunMemory:
        """The memory as a run sees it, whose agent must have one."""
        run = self.runs.active_run(run_id)
        if not self.uses_memory(run):
            raise Unauthorized("this agent has no memory", hint="set `memory: true` in its file")
        return self.memory.for_run(run.spec.agent, run.id)

    @property
    def agents(self) -> AgentService:
        if self.agent_service is None:
            raise Unavailable("this service has no agents")
        return self.agent_service

    def ping(self) -> str:
        return "pong"

    def list_roots(self) -> dict[str, object]:
        """The allowed roots, the folder of historical documents, and what to do if there are no roots."""
        listed: dict[str, object] = {"roots": [str(root) for root in self.roots]}
        if self.settings.thoughts_dir is not None:
            listed["thoughtsDir"] = str(self.settings.thoughts_dir)
        if not self.roots:
            listed["note"] = self.root_hint
        return listed

    @property
    def root_hint(self) -> str:
        """Tells the person at the host what to do if there are no roots."""
        # Imported here because only a server without roots needs it.
        from retinue.setup import host_of_client, root_advice

        host = host_of_client(self.client_name)
        if host is None:
            return NO_PROJECT_OPEN if self.allow_host_roots else ADD_A_ROOT
        return f"No folder may be read yet. {root_advice(host, is_followed=self.allow_host_roots)}"

    def with_host_roots(self, offered: Iterable[str]) -> Service:
        """The same service with the host's roots added, if the user allows them.

        Ignores paths that cannot be roots.
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
