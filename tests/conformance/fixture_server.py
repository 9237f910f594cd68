"""Retinue's own server over HTTP, with what the conformance suite calls by name added to it.

    python -m tests.conformance.fixture_server

Everything between the socket and the tools is the code that `retinue serve --http` runs.
"""

from __future__ import annotations

import anyio

from retinue.server import BindAddress, build_server, serve_http, start_logging
from retinue.server.mcp_server import RetinueServer
from retinue.wiring import build_service, lifetime, read_settings
from tests.conformance import fixture_content, fixture_input, fixture_tasks


def build() -> RetinueServer:
    loaded = read_settings({})
    service = build_service(loaded)
    start_logging("info", "text", service.redactor.redact)
    starts_work = {tool.__name__ for tool in fixture_tasks.START_WORK}
    server = build_server(service, loaded.settings.tools.groups, lifetime(loaded), starts_work)
    for tool in (*fixture_content.TOOLS, *fixture_input.TOOLS, *fixture_tasks.TOOLS):
        server.add_tool(tool, description="For the conformance suite.")
    fixture_content.add_prompts(server)
    fixture_content.add_resources(server)
    fixture_input.add_prompts(server)
    return server


if __name__ == "__main__":
    anyio.run(serve_http, build(), BindAddress("127.0.0.1", 0), None, ())
