"""A real MCP server over HTTP in this process. It records the `Authorization` headers it receives."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send


@asynccontextmanager
async def serving_http() -> AsyncGenerator[tuple[str, list[str]]]:
    """Yield its URL and the list of `Authorization` headers."""
    seen: list[str] = []
    server = MCPServer("web")

    @server.tool()
    def double(number: int) -> str:
        return str(2 * number)

    inner: ASGIApp = server.streamable_http_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            seen.extend(value.decode() for name, value in scope["headers"] if name == b"authorization")
        await inner(scope, receive, send)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        running = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", seen
            finally:
                running.should_exit = True
