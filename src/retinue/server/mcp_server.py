"""The MCP server itself: the groups of tools, the door, and failures in one shape. Knows no transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult

from retinue import __version__
from retinue.core.groups import GROUPS
from retinue.server import core_tools, research_tools
from retinue.server.door import Door
from retinue.server.errors import failed, fitting, unknown_arguments
from retinue.service.service import ADD_A_ROOT, Service

REGISTER: Mapping[str, Callable[[MCPServer[Service]], None]] = {
    "core": core_tools.register,
    "research": research_tools.register,
}


class RetinueServer(MCPServer[Service]):
    """Answers every failing tool with a structured error instead of prose."""

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


def build_server(service: Service, groups: Sequence[str]) -> RetinueServer:
    """A server with the tools of these groups."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[Service]) -> AsyncGenerator[Service]:
        yield service

    server = RetinueServer(
        "retinue",
        title="Retinue",
        version=__version__,
        instructions=instructions(service),
        lifespan=lifespan,
        middleware=[Door(service.redact)],
    )
    for group in GROUPS:
        if group in groups or "all" in groups:
            REGISTER[group](server)
    return server


def instructions(service: Service) -> str:
    """What a host tells its model about us."""
    lines = ["Retinue runs subagents outside this conversation and returns small, checked answers."]
    if not service.roots:
        lines.append(ADD_A_ROOT)
    return "\n".join(lines)
