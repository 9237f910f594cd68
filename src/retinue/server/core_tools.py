"""The `core` group: is the server there, and what may it read."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from retinue.server.request import RequestService
from retinue.service import Service

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


async def ping(service: RequestService) -> str:
    return service.ping()


async def list_roots(service: RequestService) -> dict[str, object]:
    return service.list_roots()


def register(server: MCPServer[Service]) -> None:
    server.add_tool(ping, description='Answers "pong".', annotations=READ_ONLY)
    server.add_tool(list_roots, description="The directories that may be read.", annotations=READ_ONLY)
