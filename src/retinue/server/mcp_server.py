"""The MCP server itself: the groups of tools, the door, and failures in one shape. Knows no transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from mcp.server.extension import Extension
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, InputRequiredResult

from retinue import __version__
from retinue.core import TOOL_GROUPS, Run, RunId
from retinue.server import (
    agent_tools,
    child_tools,
    core_tools,
    prompts,
    research_tools,
    run_tools,
    workflow_tools,
)
from retinue.server.elicitation import Refusals
from retinue.server.errors import failed, fitting, unknown_arguments
from retinue.server.progress import StartedCalls
from retinue.server.redaction_middleware import Door
from retinue.server.tasks import STARTS_WORK, Tasks, refuse_undeclared_listening
from retinue.service import ADD_A_ROOT, Service

Lifetime = Callable[[Service], AbstractAsyncContextManager[Service]]
"""From the service that is configured to the one that is up, for as long as the server serves."""

BESIDES_TOOLS = ("prompts/", "resources/", "subscriptions/")


class RetinueServer(MCPServer[Service]):
    """Answers every failing tool with a structured error instead of prose."""

    is_down: anyio.Event
    """Set when everything the server had started has ended."""

    def add_tool(self, fn: Callable[..., Any], *args: Any, **options: Any) -> None:
        super().add_tool(fn, *args, **options)
        tool = self._tool_manager.get_tool(options.get("name") or fn.__name__)
        if tool is not None:
            drop_titles(tool)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Service, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool_manager.get_tool(name)
        output_schema = None if tool is None else tool.output_schema
        if tool is not None and (unknown := set(arguments) - set(tool.parameters["properties"])):
            return fitting(unknown_arguments(name, unknown, tool.parameters["properties"]), output_schema)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return fitting(failed(name, error), output_schema)

    async def serve_on(self, reading: anyio.AsyncFile[str], writing: anyio.AsyncFile[str]) -> None:
        """Serve on lines from elsewhere than standard input and output, until they end."""
        server = self._lowlevel_server
        async with stdio_server(reading, writing) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    def offer_tools_alone(self) -> None:
        """Say that there is nothing else: whoever connects would ask for it, and wait for each empty list."""
        handlers = self._lowlevel_server._request_handlers  # pyright: ignore[reportPrivateUsage] (no other way)
        for method in [name for name in handlers if name.startswith(BESIDES_TOOLS)]:
            del handlers[method]


def drop_titles(tool: Tool) -> None:
    """Those that are made from the names: a host would pay for each name twice (P4)."""
    for schema in (tool.parameters, *tool.parameters["properties"].values()):
        schema.pop("title", None)


def build_server(
    service: Service, groups: Sequence[str], lifetime: Lifetime, starts_work: Collection[str] = STARTS_WORK
) -> RetinueServer:
    """A server for a host, with the tools of these groups."""
    asks = "agents" in groups or "all" in groups
    names = service.agents.names() if asks and service.settings.agents.tool_for_each else []
    tasks = [Tasks({*starts_work, *map(agent_tools.tool_of, names)})] if asks else []
    server, calls = _bare_server(service, lifetime, instructions(service, asks=asks), tasks)
    if tasks:
        server.middleware.append(refuse_undeclared_listening)
    refused = Refusals()
    register: dict[str, Callable[[], None]] = {
        "core": lambda: core_tools.register(server),
        "research": lambda: research_tools.register(server, calls),
        "agents": lambda: agent_tools.register(server, calls, refused, tools_for=names),
        "runs": lambda: run_tools.register(server, refused),
        "workflows": lambda: workflow_tools.register(server, calls, refused),
    }
    for group in TOOL_GROUPS:
        if group in groups or "all" in groups:
            register[group]()
    if asks:
        prompts.register_agents(server, service)
    if "research" in groups or "all" in groups:
        prompts.register_research(server)
    if "workflows" in groups or "all" in groups:
        prompts.register_teams(server)
    return server


def child_server_of(service: Service, run: Run, lifetime: Lifetime) -> RetinueServer:
    """The server for this run's processes, with what its agent grants."""
    return build_child_server(
        service,
        run.id,
        lifetime,
        spawns=run.spec.limits.budget.spawns or 0,
        remembers=service.agents.has_memory(run.spec.agent),
    )


def build_child_server(
    service: Service, run_id: RunId, lifetime: Lifetime, *, spawns: int, remembers: bool = False
) -> RetinueServer:
    """A server for the processes of one run: the `child` group alone, and agents only if it may start any."""
    about = "You are a subagent. ask_parent asks whoever started you."
    tools = child_tools.tools_of(run_id, remembers=remembers)
    server, calls = _bare_server(service, lifetime, about, tools=tools)
    server.offer_tools_alone()
    if spawns:
        agent_tools.register(server, calls, Refusals(), parent=run_id)
    return server


def _bare_server(
    service: Service,
    lifetime: Lifetime,
    about: str,
    extensions: Sequence[Extension] = (),
    tools: Sequence[Tool] = (),
) -> tuple[RetinueServer, StartedCalls]:
    for tool in tools:
        drop_titles(tool)
    up: list[Service] = []
    is_down = anyio.Event()

    @asynccontextmanager
    async def lifespan(_: MCPServer[Service]) -> AsyncGenerator[Service]:
        try:
            async with lifetime(service) as running:
                up.append(running)
                yield running
        finally:
            is_down.set()

    calls = StartedCalls(lambda run_id: up[-1].runs.cancel(run_id))
    server = RetinueServer(
        "retinue",
        title="Retinue",
        version=__version__,
        instructions=about,
        lifespan=lifespan,
        middleware=[Door(service.redactor), calls],
        extensions=extensions,
        tools=list(tools),
    )
    server.is_down = is_down
    return server, calls


def instructions(service: Service, *, asks: bool = True) -> str:
    """What a host tells its model about us."""
    agents = service.agent_service.instructions() if asks and service.agent_service is not None else ""
    lines = ["Retinue runs subagents outside this conversation and returns small, checked answers."]
    if agents:
        lines.append(agents)
    if not service.roots:
        lines.append(ADD_A_ROOT)
    return "\n".join(lines)
