"""The service as one request may use it: with the host's own roots where the user allows them.

Asks the host in the way of its protocol era (the SDK's resolvers do that). Knows nothing of single tools.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp.server.mcpserver import Context, ListRoots, Resolve
from mcp_types import ListRootsResult

from retinue.service import Service


async def offered_roots(ctx: Context[Service, Any]) -> ListRoots | ListRootsResult:
    """Ask only a host that says it has roots, and only if the user allows it: another would see an error."""
    service = ctx.request_context.lifespan_context
    capabilities = ctx.client_capabilities
    if service.allow_host_roots and capabilities is not None and capabilities.roots is not None:
        return ListRoots()
    return ListRootsResult(roots=[])


async def service_of_request(
    ctx: Context[Service, Any], offered: Annotated[ListRootsResult, Resolve(offered_roots)]
) -> Service:
    return ctx.request_context.lifespan_context.with_host_roots(local_paths(offered))


RequestService = Annotated[Service, Resolve(service_of_request)]
"""The type of a tool's parameter that receives the service."""


def local_paths(offered: ListRootsResult) -> list[str]:
    """Paths of the `file:` roots on this machine; anything else is not ours to read."""
    uris = [urlsplit(str(root.uri)) for root in offered.roots]
    return [
        url2pathname(uri.path)
        for uri in uris
        if uri.scheme == "file" and uri.hostname in (None, "localhost") and "%00" not in uri.path
    ]
