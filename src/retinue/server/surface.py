"""Builds the MCP server for a host or for a run: its groups of tools, its prompts and its instructions.

Knows nothing of transports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from retinue.core import TOOL_GROUPS, Run, RunId
from retinue.server import (
    agent_tools,
    core_tools,
    prompts,
    research_tools,
    run_tools,
)
from retinue.server.elicitation import RecentQuestions
from retinue.server.mcp_server import (
    OPTIONAL_CAPABILITIES,
    Lifetime,
    RetinueMiddleware,
    RetinueServer,
    StartedCalls,
)
from retinue.server.tasks import TASK_TOOLS, Tasks
from retinue.service import ADD_A_ROOT, Service

RESOURCE_GROUPS = ("research", "agents", "runs")
"""The groups of tools whose work is shown as resources."""
CHILD_INSTRUCTIONS = "You are a subagent. ask_parent asks whoever started you."


def build_server(
    service: Service, groups: Sequence[str], lifetime: Lifetime, task_tools: Collection[str] = TASK_TOOLS
) -> RetinueServer:
    """Build the server for a host, with the tools and prompts of the given groups.

    `task_tools` are the tools whose answer may be a task.
    """
    enabled = [group for group in TOOL_GROUPS if group in groups or "all" in groups]
    if service.open_web is None:
        enabled = [group for group in enabled if group != "web"]
    runs_agents = "agents" in enabled
    own_tools = service.agents.descriptions() if runs_agents and service.settings.agents.tool_for_each else {}
    calls, declined = StartedCalls(), RecentQuestions()
    task_tools = {*task_tools, *map(agent_tools.agent_tool_name, own_tools)}
    shown = [group for group in enabled if group in RESOURCE_GROUPS]
    hidden = () if shown or "skills" in enabled else OPTIONAL_CAPABILITIES

    async def group_of(tool: str) -> str | None:
        """The group that has this tool and is switched off; None if there is none."""
        for group in TOOL_GROUPS:
            if group not in enabled:
                other = RetinueServer(lifetime, service, middleware)
                _registrations(other, service, calls, declined, own_tools)[group]()
                if tool in [each.name for each in await other.list_tools()]:
                    return group
        return None

    middleware = RetinueMiddleware(
        service.redactor, calls, task_tools=task_tools if runs_agents else (), hidden=hidden
    )
    server = RetinueServer(
        lifetime,
        service,
        middleware,
        group_of=group_of,
        resource_groups=shown,
        has_card="runs" in enabled and bool({"agents", "workflows"} & {*enabled}),
        instructions=host_instructions(
            service,
            runs_agents=runs_agents,
            researches="research" in enabled,
            reads_skills="skills" in enabled,
            remembers="memory" in enabled,
        ),
        extensions=[Tasks()] if runs_agents else [],
    )

    register = _registrations(server, service, calls, declined, own_tools)
    for group in enabled:
        register[group]()
    prompts.register(server, enabled)
    return server


def _registrations(
    server: RetinueServer,
    service: Service,
    calls: StartedCalls,
    declined: RecentQuestions,
    own_tools: Mapping[str, str],
) -> Mapping[str, Callable[[], None]]:
    """Return the function that adds the tools of each group."""

    def register_workflows() -> None:
        from retinue.server import workflow_tools  # switched off by default, and slow to load

        workflow_tools.register(server, calls, declined)

    def register_skills() -> None:
        from retinue.server import skill_tools  # switched off by default

        skill_tools.register(server, service)

    def register_memory() -> None:
        from retinue.server import memory_tools  # switched off by default

        memory_tools.register(server)

    def register_web() -> None:
        from retinue.server import web_tools  # switched off by default

        web_tools.register(server, calls)

    return {
        "core": lambda: core_tools.register(server),
        "research": lambda: research_tools.register(server, calls, web=service.open_web is not None),
        "agents": lambda: agent_tools.register(server, calls, declined, own_tools=own_tools),
        "runs": lambda: run_tools.register(server, declined),
        "workflows": register_workflows,
        "skills": register_skills,
        "memory": register_memory,
        "web": register_web,
    }


def build_server_for_run(service: Service, run: Run, lifetime: Lifetime) -> RetinueServer:
    """Build the server for the processes of a run, with the tools that its agent grants."""
    return build_child_server(
        service,
        run.id,
        lifetime,
        spawns=run.spec.limits.budget.spawns or 0,
        has_memory=service.agents.has_memory(run.spec.agent) and not run.spec.is_trial,
        remembers=service.uses_memory(run),
        has_skills=service.skills.is_open_for(run.id),
    )


def build_child_server(
    service: Service,
    run_id: RunId,
    lifetime: Lifetime,
    *,
    spawns: int,
    has_memory: bool = False,
    remembers: bool = False,
    has_skills: bool = False,
) -> RetinueServer:
    """Build a server with the `child` group, and with the `agents` group if the run may start runs.

    It offers tools only: clients request every list that a server offers, and wait for each empty one.
    """
    from retinue.server import child_tools  # not for hosts

    calls = StartedCalls()
    tools = child_tools.build_child_tools(run_id, has_memory=has_memory, has_skills=has_skills)
    if remembers:
        from retinue.server import memory_tools  # few agents have the memory

        tools += memory_tools.build_memory_tools(run_id)
    server = RetinueServer(
        lifetime,
        service,
        RetinueMiddleware(service.redactor, calls, hidden=OPTIONAL_CAPABILITIES),
        instructions=CHILD_INSTRUCTIONS,
        tools=tools,
        subscriptions=False,
    )
    if spawns:
        agent_tools.register(server, calls, RecentQuestions(), parent=run_id)
    return server


def host_instructions(
    service: Service,
    *,
    runs_agents: bool = True,
    researches: bool = True,
    reads_skills: bool = False,
    remembers: bool = False,
) -> str:
    """The instructions of the server, which hosts pass to their model."""
    lines = ["Retinue runs subagents outside this conversation and returns small, checked answers."]
    if researches:
        lines.append("Pass identifiers that you expect in the code as `also`: research finds more lines.")
    if remembers:
        lines.append("recall tells what is known of this project; remember what the user decides or prefers.")
    if runs_agents and service.agent_service is not None and (agents := service.agent_service.instructions()):
        lines.append(agents)
    if reads_skills and (skills := service.skills.instructions()):
        lines.append(skills)
    if not service.roots and not service.allow_host_roots:
        lines.append(ADD_A_ROOT)
    return "\n".join(lines)
