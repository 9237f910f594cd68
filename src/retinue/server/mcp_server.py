"""Builds the MCP server: its groups of tools, its prompts, its middleware, and one shape for all tool errors.

Knows nothing of transports.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from difflib import get_close_matches
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, InputRequiredResult, TextContent, Tool as ListedTool
from pydantic import ValidationError

from retinue import __version__
from retinue.core import TOOL_GROUPS, InternalError, InvalidInput, RetinueError, Run, RunId
from retinue.server import (
    agent_tools,
    child_tools,
    core_tools,
    prompts,
    research_tools,
    run_tools,
    workflow_tools,
)
from retinue.server.elicitation import DeclinedQuestions
from retinue.server.middleware import RetinueMiddleware, StartedCalls
from retinue.server.tasks import TASK_TOOLS, Tasks
from retinue.service import ADD_A_ROOT, Service

log = logging.getLogger(__name__)

Lifetime = Callable[[Service], AbstractAsyncContextManager[Service]]
"""Takes the configured service and yields the running one for as long as the server serves."""

CHILD_INSTRUCTIONS = "You are a subagent. ask_parent asks whoever started you."


def build_server(
    service: Service, groups: Sequence[str], lifetime: Lifetime, task_tools: Collection[str] = TASK_TOOLS
) -> RetinueServer:
    """Build the server for a host, with the tools and prompts of the given groups.

    `task_tools` are the tools whose answer may be a task.
    """
    enabled = [group for group in TOOL_GROUPS if group in groups or "all" in groups]
    runs_agents = "agents" in enabled
    own_tools = service.agents.names() if runs_agents and service.settings.agents.tool_for_each else []
    calls, declined = StartedCalls(), DeclinedQuestions()
    server = RetinueServer(
        lifetime,
        service,
        RetinueMiddleware(service.redactor, calls, serves_tasks=runs_agents),
        instructions=host_instructions(service, runs_agents=runs_agents),
        extensions=[Tasks({*task_tools, *map(agent_tools.agent_tool_name, own_tools)})]
        if runs_agents
        else [],
    )
    register: dict[str, Callable[[], None]] = {
        "core": lambda: core_tools.register(server),
        "research": lambda: research_tools.register(server, calls),
        "agents": lambda: agent_tools.register(server, calls, declined, own_tools=own_tools),
        "runs": lambda: run_tools.register(server, declined),
        "workflows": lambda: workflow_tools.register(server, calls, declined),
    }
    for group in enabled:
        register[group]()
    if runs_agents:
        prompts.register_agents(server, service)
    if "research" in enabled:
        prompts.register_research(server)
    if "workflows" in enabled:
        prompts.register_teams(server)
    return server


def build_server_for_run(service: Service, run: Run, lifetime: Lifetime) -> RetinueServer:
    """Build the server for the processes of a run, with the tools that its agent grants."""
    return build_child_server(
        service,
        run.id,
        lifetime,
        spawns=run.spec.limits.budget.spawns or 0,
        has_memory=service.agents.has_memory(run.spec.agent),
    )


def build_child_server(
    service: Service, run_id: RunId, lifetime: Lifetime, *, spawns: int, has_memory: bool = False
) -> RetinueServer:
    """Build a server with the `child` group, and with the `agents` group if the run may start runs.

    It offers tools only: clients request every list that a server offers, and wait for each empty one.
    """
    calls = StartedCalls()
    server = RetinueServer(
        lifetime,
        service,
        RetinueMiddleware(service.redactor, calls, tools_only=True),
        instructions=CHILD_INSTRUCTIONS,
        tools=child_tools.build_child_tools(run_id, has_memory=has_memory),
        subscriptions=False,
    )
    if spawns:
        agent_tools.register(server, calls, DeclinedQuestions(), parent=run_id)
    return server


def host_instructions(service: Service, *, runs_agents: bool = True) -> str:
    """The instructions of the server, which hosts pass to their model."""
    lines = ["Retinue runs subagents outside this conversation and returns small, checked answers."]
    if runs_agents and service.agent_service is not None and (agents := service.agent_service.instructions()):
        lines.append(agents)
    if not service.roots:
        lines.append(ADD_A_ROOT)
    return "\n".join(lines)


class RetinueServer(MCPServer[Service]):
    """An MCP server that answers every failing tool call with a structured error."""

    def __init__(
        self, lifetime: Lifetime, service: Service, middleware: RetinueMiddleware, **options: Any
    ) -> None:
        self.is_down = asyncio.Event()
        """Set when everything that the server started has ended."""

        @asynccontextmanager
        async def lifespan(_: MCPServer[Service]) -> AsyncGenerator[Service]:
            try:
                async with lifetime(service) as running:
                    yield running
            finally:
                self.is_down.set()

        super().__init__(
            "retinue",
            title="Retinue",
            version=__version__,
            lifespan=lifespan,
            middleware=[middleware],
            **options,
        )

    async def list_tools(self) -> list[ListedTool]:
        """The tools without the titles that pydantic derives from names, which cost a host tokens (P4)."""
        tools = await super().list_tools()
        return [
            tool.model_copy(update={"input_schema": _without_titles(tool.input_schema)}) for tool in tools
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Service, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Errors become results, and unknown arguments are errors instead of being dropped."""
        tool = next((tool for tool in await super().list_tools() if tool.name == name), None)
        output_schema = None if tool is None else tool.output_schema
        if tool is not None and (unknown := set(arguments) - set(tool.input_schema["properties"])):
            return _error_result(
                _unknown_arguments(name, unknown, tool.input_schema["properties"]), output_schema
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return _error_result(_public_error(name, error), output_schema)

    async def serve_on(self, reader: anyio.AsyncFile[str], writer: anyio.AsyncFile[str]) -> None:
        """Serve on line streams other than standard input and output, until the reader ends."""
        # `MCPServer` has no public method for this: `run_stdio_async` always takes the process's own streams.
        server = self._lowlevel_server
        async with stdio_server(reader, writer) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def _without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key != "title"}
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    kept["properties"] = {
        name: {key: value for key, value in details.items() if key != "title"}
        for name, details in properties.items()
    }
    return kept


def _public_error(tool: str, error: ToolError) -> RetinueError:
    """The error to show for a tool that failed. Unexpected errors are logged and not shown."""
    cause = error.__cause__
    if isinstance(cause, RetinueError):
        return cause
    if isinstance(cause, ValidationError):
        return _wrong_arguments(tool, cause)
    if cause is None:
        return InvalidInput(f"no tool is named {tool!r}", hint="tools/list lists all tools")
    log.error("tool %s failed", tool, exc_info=cause)
    return InternalError(f"{tool} failed because of a bug in Retinue", hint="see the log of the server")


def _unknown_arguments(tool: str, unknown: Iterable[str], known: Iterable[str]) -> InvalidInput:
    allowed = sorted(known)
    names = sorted(unknown)
    wrong = [
        {"argument": name, "problem": "no such argument", "nearest": get_close_matches(name, allowed, 1)}
        for name in names
    ]
    takes = f"{tool} takes: {', '.join(allowed)}" if allowed else f"{tool} takes no arguments"
    return InvalidInput(f"{tool}: no such argument: {', '.join(names)}", hint=takes, arguments=wrong)


def _wrong_arguments(tool: str, error: ValidationError) -> InvalidInput:
    """Name each wrong argument and what was expected, without the values that were given."""
    wrong: list[dict[str, Any]] = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        argument = ".".join(str(part) for part in problem["loc"]) or "arguments"
        wrong.append({"argument": argument, "problem": problem["msg"]})
    problems = "; ".join(f"{item['argument']}: {item['problem']}" for item in wrong)
    return InvalidInput(f"{tool}: {problems}", hint="correct the arguments and call again", arguments=wrong)


def _error_result(error: RetinueError, output_schema: Mapping[str, Any] | None) -> CallToolResult:
    """The result of a failed call.

    It has no structured content if the output schema of the tool names fields: clients check the structured
    content of errors against the schema too, and would show the model that mismatch instead of our error.
    """
    body = {"error": error.as_dict()}
    return CallToolResult(
        content=[TextContent(type="text", text=json.dumps(body, ensure_ascii=False))],
        structured_content=None if output_schema and output_schema.get("properties") else body,
        is_error=True,
    )
