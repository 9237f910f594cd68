"""Retinue's own server over HTTP, with what the conformance suite calls by name added to it.

    python -m tests.conformance.fixture_server

Everything between the socket and the tools is the code that `retinue serve --http` runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult, Resource, ResourceTemplate
from pydantic import AnyUrl

from retinue.server import BindAddress, build_server, serve_http, start_logging
from retinue.server.mcp_server import RetinueServer
from retinue.service import Service
from retinue.wiring import build_service, lifetime, read_settings
from tests.conformance import fixture_content, fixture_input, fixture_tasks


class FixtureServer(RetinueServer):
    """Serves the resources of the suite, too. Those of Retinue are not registered one by one."""

    async def list_resources(self) -> list[Resource]:
        return [*await MCPServer.list_resources(self), *await super().list_resources()]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        return [*await MCPServer.list_resource_templates(self), *await super().list_resource_templates()]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Service, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        read = (
            MCPServer[Service].read_resource if str(uri).startswith("test:") else RetinueServer.read_resource
        )
        return await read(self, uri, context)


def build() -> RetinueServer:
    loaded = read_settings({})
    service = build_service(loaded)
    start_logging("info", "text", service.redactor.redact)
    starts_work = {tool.__name__ for tool in fixture_tasks.START_WORK}
    server = build_server(service, loaded.settings.tools.groups, lifetime(loaded), starts_work)
    server.__class__ = FixtureServer
    for tool in (*fixture_content.TOOLS, *fixture_input.TOOLS, *fixture_tasks.TOOLS):
        server.add_tool(tool, description="For the conformance suite.")
    fixture_content.add_prompts(server)
    fixture_content.add_resources(server)
    fixture_input.add_prompts(server)
    return server


if __name__ == "__main__":
    anyio.run(serve_http, build(), BindAddress("127.0.0.1", 0), None, ())
