"""Lists, shows and checks agents, decides who may run them, and trusts projects.

Knows nothing of runs, MCP or terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retinue.config import Settings
from retinue.core import (
    HOST,
    HOST_SESSION_VARIABLE,
    NO_PERMISSIONS,
    Agent,
    ConfigInvalid,
    Endpoint,
    Executor,
    ExecutorKind,
    ExecutorTable,
    InvalidInput,
    Permissions,
    Redactor,
    RetinueError,
    Root,
    Unauthorized,
    Unavailable,
    clip,
    find_executor,
)
from retinue.definitions import (
    AgentCatalog,
    AgentDefinition,
    did_you_mean,
    grants_in_worktree,
    permissions_beyond_reading,
    unsupported_fields,
)
from retinue.executors import CommandTemplate
from retinue.models import TIERS, EndpointPlan, ModelPlan, Models, TierPlan
from retinue.service import agent_views
from retinue.service.agent_state import AgentState, has_memory
from retinue.store import TrustedProjects

if TYPE_CHECKING:  # every start of the server loads this module
    from retinue.executors import LaunchPreview

INSTRUCTION_TOKENS = 500
"""Maximum size of the agent list in the server's instructions, with which every conversation begins."""

DESCRIPTION_CHARACTERS = 200
"""Maximum length of an agent's description in the description of its own tool."""

DEFAULT_TIER = "default"

UNLIMITED_TOKENS = 1_000_000
"""More tokens than any list has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentService:
    """The agents that are defined here, and who may run them."""

    catalog: AgentCatalog
    executors: Mapping[str, Callable[[Agent], Executor]]
    """Creates the executor of an agent, by executor name. Has only the executors that agents can run on."""
    executor_kinds: ExecutorTable
    """All executors, whether agents can run on them or not."""
    trusted: TrustedProjects
    models: Models
    redactor: Redactor
    tokens: int
    """Maximum size of an answer."""
    state: AgentState
    """What agents keep between runs."""
    preview: Callable[[Agent], LaunchPreview]
    """Returns what a run of the agent would start; raises the error that would prevent the start."""
    unset_variables: Callable[[Agent], Sequence[str]]
    """Returns the environment variables that the agent's file refers to and that are not set."""
    is_installed: Callable[[str], bool]
    """Whether a program of that name is installed."""
    sandbox_name: Callable[[Agent], str] = lambda agent: "none"
    """Returns the sandbox in which a run of the agent starts programs; `none` if there is none."""
    account: Callable[[Agent], str | None] = lambda _: None
    """Names the account whose usage limit an agent's runs spend; None if they spend none."""
    on_trust: Callable[[Path, bool], Mapping[str, Any]] = lambda project, trusted: {}
    """Called when a project becomes trusted or untrusted. Returns which of its skills are approved."""
    skill_names: Callable[[], Collection[str]] = frozenset
    """Returns the names of all skills, whether they may be used or not."""
    host: str = HOST
    """The caller name of the host."""
    memory_for_all: bool = False
    """Whether every trusted agent has the memory of the project."""

    def list_callable(self, caller: str | None = None) -> dict[str, Any]:
        """The agents that the caller may run; for agents that cannot run, also the reason."""
        found = [
            (definition, self.refusal(definition))
            for definition in self.catalog.agents().values()
            if caller is None or _may_call(definition.agent, caller)
        ]
        return self.redactor.redact_value(agent_views.agent_list(found, self.tokens))

    def list_all(self) -> dict[str, Any]:
        """All agents, without a token limit, for people."""
        found = [(each, self.refusal(each)) for each in self.catalog.agents().values()]
        return self.redactor.redact_value(agent_views.agent_list(found, UNLIMITED_TOKENS))

    def show(self, name: str) -> dict[str, Any]:
        """The effective agent, with the origin of each field and what its runs would start."""
        definition = self._definition(name)
        refusal = self.refusal(definition)
        view = agent_views.agent_details(definition, refusal)
        if definition.agent is not None and not isinstance(refusal, Unauthorized):
            agent = self.state.with_memory(definition, self._with_memory(definition, definition.agent))
            view |= agent_views.launch_view(self._preview_or_error(agent))
        return self.redactor.redact_value(view)

    def _preview_or_error(self, agent: Agent) -> LaunchPreview | RetinueError:
        try:
            return self.preview(agent)
        except RetinueError as error:
            return error

    def check(self, files: Sequence[Path] = ()) -> list[dict[str, Any]]:
        """All errors and warnings in these agent files, or in all agent files."""
        if files:
            definitions = [self.catalog.read(file) for file in files]
            others = ()
        else:
            definitions = [each for each in self.catalog.all_definitions() if each.scope != "built in"]
            others = self.catalog.profile_problems
        found = [row for definition in definitions for row in agent_views.problem_views(definition)]
        found += [agent_views.problem_view(str(file), problem) for file, problem in others]
        found += [
            agent_views.duplicate_name_problem(later, first) for first, later in _duplicate_names(definitions)
        ]
        for definition in definitions:
            if (error := self._command_error(definition.agent)) is not None:
                found.append(agent_views.key_problem(definition, "command", error))
            if (error := self._fallback_error(definition.agent)) is not None:
                found.append(agent_views.key_problem(definition, "fallback", error))
            if (error := _schema_error(definition.agent)) is not None:
                found.append(agent_views.key_problem(definition, "output_schema", error))
            for key, error in self._unsupported(definition.agent):
                found.append(agent_views.key_problem(definition, key, error))
            if definition.agent is not None and definition.agent.skills:
                known = self.skill_names()
                found += [
                    agent_views.missing_skill_problem(definition, name, known)
                    for name in definition.agent.skills
                    if name not in known
                ]
        return self.redactor.redact_value(found)

    def count_checked(self, files: Sequence[Path] = ()) -> int:
        """The number of files that `check` reads."""
        return len(files) or sum(each.scope != "built in" for each in self.catalog.all_definitions())

    def prompt(self) -> str:
        """A section about the agents for a main agent's system prompt."""
        return self.redactor.redact(agent_views.prompt_section([agent for agent, _ in self._offered()]))

    def instructions(self) -> str:
        """A short list of the agents for the server's instructions.

        Agents of untrusted projects are not in it, because a host trusts the instructions.
        """
        offered = list(self._offered())
        text = agent_views.instructions([agent for agent, _ in offered], INSTRUCTION_TOKENS)
        # Built-in agents contain no secrets. Without a redaction the server starts faster.
        return text if all(built_in for _, built_in in offered) else self.redactor.redact(text)

    def names(self, prefix: str = "") -> list[str]:
        """The names of the agents that can run."""
        return [
            name
            for name, definition in self.catalog.agents().items()
            if name.startswith(prefix) and self.refusal(definition) is None
        ]

    def descriptions(self) -> dict[str, str]:
        """The agents that can run, with their descriptions, which are empty in untrusted projects."""
        about = {agent.name: clip(agent.description, DESCRIPTION_CHARACTERS) for agent, _ in self._offered()}
        return self.redactor.redact_value({name: about.get(name, "") for name in self.names()})

    def runnable(self, name: str, caller: str | None) -> Agent:
        """Return the agent if this caller may run it now, else raise. A person (None) may run every agent."""
        definition = self._definition(name)
        refusal = self.refusal(definition)
        if refusal is not None:
            raise refusal
        agent = definition.agent
        if agent is None:
            raise Unavailable(f"agent {name} is not defined")
        if caller is not None and not _may_call(agent, caller):
            raise Unauthorized(
                f"agent {name} may not be called by {caller}",
                hint=f"its allowed_callers are: {', '.join(agent.allowed_callers or ()) or 'nobody'}",
            )
        return self.state.with_memory(definition, self._with_memory(definition, agent))

    def _with_memory(self, definition: AgentDefinition, agent: Agent) -> Agent:
        """The agent with the memory of the project if everybody has it, or without it if it is not trusted.

        What an agent of an untrusted project remembers could mislead the agents of others.
        """
        if not definition.trusted and agent.uses_memory:
            return agent.without_memory()
        if definition.trusted and self.memory_for_all and self.supports(agent, "memory"):
            return replace(agent, memory=True)
        return agent

    def uses_memory(self, name: str) -> bool:
        """Whether runs of the agent may use the memory of the project."""
        definition = self.catalog.agents().get(name)
        agent = None if definition is None else definition.agent
        return (
            definition is not None and agent is not None and self._with_memory(definition, agent).uses_memory
        )

    def has_memory(self, name: str) -> bool:
        """Whether the agent keeps a memory."""
        definition = self.catalog.agents().get(name)
        return definition is not None and has_memory(definition)

    def append_memory(self, name: str, note: str) -> dict[str, Any]:
        """Add a note for the agent's later runs."""
        return self.state.append_memory(self.catalog.agents().get(name), note)

    def executor(self, agent: Agent) -> Executor:
        """Create the executor that performs the agent's tasks."""
        return self.executors[agent.executor](agent)

    def permissions(self, name: str) -> Permissions:
        """The permission rules of an agent; empty if it is not defined, so that each request is asked."""
        definition = self.catalog.agents().get(name)
        agent = None if definition is None else definition.agent
        return NO_PERMISSIONS if agent is None else self.effective_permissions(agent)

    def effective_permissions(self, agent: Agent) -> Permissions:
        """The agent's own rules, and what it may do in its worktree without asking."""
        if agent.isolation != "worktree":
            return agent.permissions
        granted = grants_in_worktree(agent, sandboxed=self.sandbox_name(agent) != "none")
        return replace(agent.permissions, allow=(*agent.permissions.allow, *granted))

    def runs_in_worktree(self, name: str) -> bool:
        """Whether runs of the agent have a folder of their own."""
        definition = self.catalog.agents().get(name)
        agent = None if definition is None else definition.agent
        return agent is None or agent.isolation == "worktree"

    def executor_of(self, name: str) -> dict[str, str]:
        """The executor of an agent, and why it is this one."""
        definition = self.catalog.agents().get(name)
        if definition is None or definition.agent is None:
            return {}
        return {
            "executor": definition.agent.executor,
            "because": definition.origins.get("executor", definition.source),
        }

    def supports(self, agent: Agent, field: str) -> bool:
        """Whether the agent's executor enforces a field of agents."""
        return field in self._kind(agent).fields

    def endpoint(self, agent: Agent) -> Endpoint | None:
        """The model server whose slots the agent's runs share; None for agents on other executors."""
        if not self.asks_model(agent):
            return None
        return self.models.endpoint(agent.model or DEFAULT_TIER)

    async def survey(self, name: str, model: str | None = None) -> None:
        """Ask the model server of a run how many requests it serves at once. Call it before starting a run.

        `model` replaces the agent's own.
        """
        definition = self.catalog.agents().get(name)
        agent = None if definition is None else definition.agent
        if agent is not None and self.asks_model(agent):
            await self.models.survey(model or agent.model or DEFAULT_TIER)

    def refusal(self, definition: AgentDefinition) -> RetinueError | None:
        """Why no caller can run the agent; None if it can run."""
        agent = definition.agent
        if agent is None or definition.error is not None:
            where = f"{definition.source}:{definition.error.line}" if definition.error else definition.source
            return ConfigInvalid(
                f"agent {definition.name} is invalid: {where}: {definition.error}",
                hint="`retinue agents check` lists all problems",
            )
        if (error := self._command_error(agent)) is not None:
            return ConfigInvalid(f"agent {agent.name} is invalid: {error.message}", hint=error.hint)
        if not definition.trusted and (
            beyond_reading := next(permissions_beyond_reading(agent, self.executor_kinds), None)
        ):
            return Unauthorized(
                f"agent {agent.name} belongs to a project that is not trusted, and it {beyond_reading}",
                hint="read its file, then allow the project's agents with `retinue agents trust DIR`",
            )
        return self._unavailable_executor(definition, agent) or self._unmet_needs(agent)

    def _unavailable_executor(self, definition: AgentDefinition, agent: Agent) -> Unavailable | None:
        """Why the agent's executor cannot run here: it is not configured, unknown, or not installed."""
        kind = self._kind(agent)
        runs_anywhere = (
            definition.scope == "built in" and definition.origins.get("executor") != "agents.executor"
        )
        if agent.executor not in self.executors and kind.uses_models:
            other = "; or install claude, codex, gemini or opencode" if runs_anywhere else ""
            return Unavailable(
                f"agent {agent.name} needs a model, and none is configured",
                hint="start a model server and name it: `retinue config set models.endpoint "
                f"http://127.0.0.1:1234/v1`; `retinue doctor` finds servers that run{other}",
            )
        if agent.executor not in self.executors:
            return Unavailable(
                f"agent {agent.name} needs the executor {agent.executor}, which does not exist",
                hint=f"available executors: {', '.join(sorted(self.executors))}",
            )
        if not kind.program or agent.container or self.is_installed(kind.program):
            return None
        hint = "install it, or set `agents.executor` to another; `retinue doctor` lists them"
        if runs_anywhere:
            hint = (
                "install claude, codex, gemini or opencode, or set `models.endpoint` to a local model "
                "server; `retinue doctor` shows what is there"
            )
        return Unavailable(
            f"agent {agent.name} needs the program {kind.program}, which is not installed", hint=hint
        )

    def _unmet_needs(self, agent: Agent) -> Unavailable | None:
        """Why the agent cannot run on its executor: variables are not set, or fields are not supported."""
        if HOST_SESSION_VARIABLE in (unset := self.unset_variables(agent)):
            return Unavailable(
                f"agent {agent.name} starts from the conversation of Claude Code (`fork: true`), "
                "and Claude Code did not start this server",
                hint="run it from Claude Code, or remove `fork` from its file",
            )
        if unset:
            names = ", ".join(unset)
            return Unavailable(
                f"agent {agent.name} needs {'a variable' if len(unset) == 1 else 'variables'} that "
                f"{'is' if len(unset) == 1 else 'are'} not set: {names}",
                hint=f"set {names} where the server is started",
            )
        if missing := unsupported_fields(agent, self.executor_kinds):
            return Unavailable(
                f"agent {agent.name} uses fields that the executor {agent.executor} does not support yet: "
                + ", ".join(missing),
                hint="remove them from its file; Retinue does not run an agent without what it asks for",
            )
        return None

    def trust(self, folder: str, *, remove: bool = False) -> dict[str, Any]:
        """Trust a project, so that its agents may do more than read; or stop trusting it."""
        project = Root.at(folder).path
        if remove:
            self.trusted.remove(project)
        else:
            self.trusted.add(project)
        return {"trusted": self.trusted.paths(), **self.on_trust(project, not remove)}

    def _kind(self, agent: Agent) -> ExecutorKind:
        return find_executor(agent.executor, self.executor_kinds)

    def asks_model(self, agent: Agent) -> bool:
        """Whether runs of the agent ask one of the user's model servers."""
        return self._kind(agent).uses_models and self.models.plan.configured

    def _unsupported(self, agent: Agent | None) -> Iterator[tuple[str, ConfigInvalid]]:
        """The keys of the agent's file for which runs of it are refused."""
        if agent is None:
            return
        for key in unsupported_fields(agent, self.executor_kinds):
            supporting = [
                name for name, kind in self.executor_kinds.items() if kind.factory and key in kind.fields
            ]
            hint = f"these executors support it: {', '.join(supporting)}" if supporting else "remove it"
            yield key, ConfigInvalid(f"the executor {agent.executor} does not support this", hint=hint)

    def _fallback_error(self, agent: Agent | None) -> ConfigInvalid | None:
        """The error in the agent's fallback: an agent that does not exist."""
        if agent is None or isinstance(agent.fallback, str):
            return None
        known = self.catalog.agents()
        for name in agent.fallback:
            if name not in known:
                hint = did_you_mean(name, known) or "`retinue agents` lists the agents"
                return ConfigInvalid(f"there is no agent named {clip(name, 80)!r}", hint=hint)
        return None

    def _command_error(self, agent: Agent | None) -> ConfigInvalid | None:
        """The error in the agent's command line, such as an unknown placeholder."""
        if agent is None or not self._kind(agent).fills_command:
            return None
        try:
            CommandTemplate(agent.command)
        except ConfigInvalid as error:
            return error
        return None

    def _offered(self) -> Iterator[tuple[Agent, bool]]:
        """The trusted agents that the host may run now, each with whether it is built in."""
        for definition in self.catalog.agents().values():
            runs = definition.trusted and self.refusal(definition) is None
            if definition.agent is not None and runs and _may_call(definition.agent, self.host):
                yield definition.agent, definition.scope == "built in"

    def _definition(self, name: str) -> AgentDefinition:
        known = self.catalog.agents()
        if name in known:
            return known[name]
        near, lists = did_you_mean(name, known), "list_agents and `retinue agents` list all agents"
        raise InvalidInput(
            f"no agent is named {clip(name, 80)!r}", hint=lists if near is None else f"{near} {lists}"
        )


def _may_call(agent: Agent | None, caller: str) -> bool:
    return agent is None or agent.allowed_callers is None or caller in agent.allowed_callers


def _duplicate_names(
    definitions: Sequence[AgentDefinition],
) -> Iterator[tuple[AgentDefinition, AgentDefinition]]:
    """Pairs of definitions with the same name in one folder. Between folders, hiding is intended."""
    first: dict[tuple[Path, str], AgentDefinition] = {}
    for each in definitions:
        if each.file and first.setdefault((Path(each.file).parent, each.name), each) is not each:
            yield first[Path(each.file).parent, each.name], each


def _schema_error(agent: Agent | None) -> InvalidInput | None:
    if agent is None or agent.output_schema is None:
        return None
    from retinue.executors import check_output_schema  # for agents that promise a schema only

    try:
        check_output_schema(agent.output_schema)
    except InvalidInput as error:
        return error
    return None


def plan_models(settings: Settings) -> ModelPlan:
    given = settings.models
    tiers = {name: getattr(given.tiers, name) for name in TIERS}
    return ModelPlan(
        endpoint=given.endpoint,
        model=given.model,
        context=given.context,
        endpoints={
            name: EndpointPlan(each.url, each.api_key_env, each.slots, each.context)
            for name, each in given.endpoints.items()
        },
        tiers={name: TierPlan(tier.endpoint, tier.model) for name, tier in tiers.items()},
        patience_s=given.patience_s,
    )
