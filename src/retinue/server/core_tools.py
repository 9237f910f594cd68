"""The `core` group (`ping`, `list_roots`), and what the tools of all groups share.

Shared are the types of tool parameters, the tool annotations, and progress notifications for long calls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve
from mcp_types import InputRequiredResult, ListRootsResult, ToolAnnotations
from pydantic import Field

from retinue.service import Service

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
PROGRESS_INTERVAL_S = 5.0

ToolContext = Context[Service, Any]
"""The type of the parameter through which a tool receives its call."""
ToolResponse = dict[str, Any] | InputRequiredResult
"""The answer of a tool that may first need input from the person at the host."""
WaitSeconds = Annotated[
    float | None, Field(description="Seconds to wait for the result; then a handle is returned.")
]


def register(server: MCPServer[Service]) -> None:
    """Add the tools of the `core` group."""
    server.add_tool(ping, description='Answers "pong".', annotations=READ_ONLY)
    server.add_tool(list_roots, description="The directories that may be read.", annotations=READ_ONLY)


async def offered_roots(ctx: ToolContext) -> ListRoots | ListRootsResult:
    """Request the roots of the host.

    Asks only if the user allows it and the host declares roots: another host would report an error.
    """
    service = ctx.request_context.lifespan_context
    capabilities = ctx.client_capabilities
    if service.allow_host_roots and capabilities is not None and capabilities.roots is not None:
        return ListRoots()
    return ListRootsResult(roots=[])


async def service_with_host_roots(
    ctx: ToolContext, offered: Annotated[ListRootsResult, Resolve(offered_roots)]
) -> Service:
    """The service for one request, with the name of the host and its roots added."""
    params = ctx.session.client_params
    name = "" if params is None else params.client_info.name
    service = replace(ctx.request_context.lifespan_context, client_name=name)
    return service.with_host_roots(local_paths(offered))


RequestService = Annotated[Service, Resolve(service_with_host_roots)]
"""The type of the parameter through which a tool receives the service."""


def local_paths(offered: ListRootsResult) -> list[str]:
    """The paths of the offered `file:` roots on this machine. Other URIs are ignored."""
    uris = [urlsplit(str(root.uri)) for root in offered.roots]
    return [
        url2pathname(uri.path)
        for uri in uris
        if uri.scheme == "file" and uri.hostname in (None, "localhost") and "%00" not in uri.path
    ]


async def ping(service: RequestService) -> str:
    return service.ping()


async def list_roots(service: RequestService) -> dict[str, object]:
    return service.list_roots()


@asynccontextmanager
async def report_progress(ctx: ToolContext, activity: str) -> AsyncGenerator[None]:
    """Send a progress notification every few seconds while the block runs.

    Many hosts restart their timeout when they receive one.
    """

    async def notify() -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            seconds = round(time.monotonic() - started)
            await ctx.report_progress(seconds, None, f"{activity}: {seconds} s")

    # Not a task group, which would wrap the errors of the block in an exception group.
    notifier = asyncio.create_task(notify())
    try:
        yield
    finally:
        notifier.cancel()
        await asyncio.gather(notifier, return_exceptions=True)
