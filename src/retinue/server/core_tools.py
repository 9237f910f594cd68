"""The `core` group (`ping`, `list_roots`), and what the tools of all groups share.

Shared are the types of tool parameters, the tool annotations, and progress notifications for long calls.
Annotations are not texts in this module, because the SDK evaluates those of the resolvers for every tool.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve
from mcp_types import CallToolResult, InputRequiredResult, ListRootsResult, TextContent, ToolAnnotations
from pydantic import Field

from retinue.core import RunStatus, compact_json
from retinue.server.icons import icons
from retinue.service import Service

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
FIRST_PROGRESS_S, PROGRESS_INTERVAL_S = 1.0, 5.0

ToolContext = Context[Service, Any]
"""The type of the parameter through which a tool receives its call."""
ToolResponse = dict[str, Any] | InputRequiredResult
"""The answer of a tool that may first need input from the person at the host."""
WaitSeconds = Annotated[
    float | None, Field(description="Seconds to wait; then run_id is returned instead of the result.")
]


def register(server: MCPServer[Service]) -> None:
    """Add the tools of the `core` group."""
    server.add_tool(
        ping,
        title="Ping",
        description='Answers "pong", if Retinue works.',
        annotations=READ_ONLY,
        icons=icons("core"),
    )
    server.add_tool(
        list_roots,
        title="List roots",
        description="The folders that Retinue may read.",
        annotations=READ_ONLY,
        icons=icons("core"),
    )


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
async def report_progress(
    ctx: ToolContext, activity: str, doing: Callable[[], str] = lambda: ""
) -> AsyncGenerator[None]:
    """Send a progress notification every few seconds while the block runs: what is being done, and how long.

    Many hosts restart their timeout when they receive one. `doing` is called in a thread.
    """

    async def notify() -> None:
        started = time.monotonic()
        await asyncio.sleep(FIRST_PROGRESS_S)
        while True:
            seconds = round(time.monotonic() - started)
            now = await asyncio.to_thread(doing) or activity
            await ctx.report_progress(seconds, None, f"{now} ({seconds} s)")
            await asyncio.sleep(PROGRESS_INTERVAL_S)

    # Not a task group, which would wrap the errors of the block in an exception group.
    notifier = asyncio.create_task(notify())
    try:
        yield
    finally:
        notifier.cancel()
        await asyncio.gather(notifier, return_exceptions=True)


def answer_of_run(outcome: dict[str, Any]) -> ToolResponse:
    """The answer of a tool that performs a run: an error of the tool if the run has failed."""
    status = RunStatus(outcome["status"])
    if not status.ended or status is RunStatus.SUCCESS:
        return outcome
    text = TextContent(type="text", text=compact_json(outcome))
    failed = CallToolResult(content=[text], structured_content=outcome, is_error=True)
    # The SDK sends it as it is. In the type of a tool it would change the tool's output schema.
    return cast("ToolResponse", failed)
