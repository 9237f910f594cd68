"""Serves an MCP server on standard input and output, over HTTP, or on an open connection of a run.

HTTP listens on loopback by default, asks for a bearer token, and checks the Host and Origin headers. Knows
nothing of tools.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from retinue.core import InvalidInput, RunId
from retinue.server.first_answers import HostLines
from retinue.server.mcp_server import RetinueServer
from retinue.server.surface import build_server_for_run
from retinue.service import Service, refuse_runs

MAX_SESSIONS = 200
"""Sessions of streamable HTTP. The SDK ends those that were idle for half an hour."""
SHUTDOWN_LIMIT_S = 8.0
"""Seconds after a signal at which the process exits even if runs have not ended yet."""


async def serve_stdio(server: RetinueServer, lines: HostLines | None = None) -> None:
    """Serve on standard input and output, or on these lines of them, until the input closes.

    SIGTERM, SIGINT and SIGHUP end everything that the server started, then the process.
    """
    received = _wait_for_signal()
    streams = cast("anyio.AsyncFile[str] | None", lines)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve_on(streams, streams, may_change=lines is not None))
        await asyncio.wait((serving, received), return_when=asyncio.FIRST_COMPLETED)
        if received.done():
            serving.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(SHUTDOWN_LIMIT_S):
                    await server.is_down.wait()
            # The thread that reads standard input cannot be interrupted. Returning would wait for the next
            # line of the host, which may never come.
            os._exit(128 + received.result())


def _wait_for_signal() -> asyncio.Future[int]:
    """A future for the number of the first signal that asks the process to end."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[int] = loop.create_future()

    def receive(number: int) -> None:
        if not received.done():
            received.set_result(number)

    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, receive, number)
    return received


async def serve_child_session(
    service: Service, run_id: RunId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve the tools of a run on an open connection until the process of the run closes it."""
    server = build_server_for_run(service, service.runs.store.runs.get(run_id), _already_running)
    lines = cast("anyio.AsyncFile[str]", _ConnectionLines(reader, writer))
    await server.serve_on(lines, lines, may_change=False)


@asynccontextmanager
async def _already_running(service: Service) -> AsyncGenerator[Service]:
    yield service


class _ConnectionLines:
    """Makes a connection look like the text file that the MCP library reads from and writes to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def __aiter__(self) -> _ConnectionLines:
        return self

    async def __anext__(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        with suppress(ConnectionError):  # the reading side notices that the peer is gone
            await self._writer.drain()


@dataclass(frozen=True, slots=True)
class BindAddress:
    """The host and port that `serve_http` listens on."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> BindAddress:
        """Read `HOST:PORT`. IPv6 hosts may be written in brackets."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise InvalidInput(f"not an address: {text!r}", hint="write HOST:PORT, such as 127.0.0.1:8765")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url_host(self) -> str:
        """The host as it is written in a URL, with IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host


async def serve_http(
    server: RetinueServer, address: BindAddress, token: str | None, allowed_hosts: Sequence[str]
) -> None:
    """Serve streamable HTTP until interrupted. Without a token, only a loopback address is allowed."""
    if token is None and not address.is_loopback:
        raise InvalidInput(
            f"other machines can connect to {address.url_host}, so it requires a token",
            hint="leave out --no-token, or serve on 127.0.0.1",
        )
    # Imported here because most servers serve stdio.
    from retinue.http_server import drop_incomplete_requests, listen, mark_authenticated, serve_app

    listener = listen(address.host, address.port, "choose another port: another program may use this one")
    host, port = address.url_host, listener.getsockname()[1]
    hosts = [f"{name}:{port}" for name in dict.fromkeys((host, "127.0.0.1", "localhost", "[::1]"))]
    app: ASGIApp = server.streamable_http_app(
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[*hosts, *allowed_hosts],
            allowed_origins=[f"http://{name}" for name in (*hosts, *allowed_hosts)],
        ),
        max_sessions=MAX_SESSIONS,
    )
    app = refuse_runs(drop_incomplete_requests(app), server.service.is_from_run)
    # Outermost, because to find out who is calling takes milliseconds.
    app = BearerToken(app, token, mark_authenticated)
    print(f"retinue: serving http://{host}:{port}/mcp", file=sys.stderr, flush=True)
    await serve_app(app, listener, timeout_graceful_shutdown=1)


class BearerToken:
    """ASGI middleware that rejects requests without the bearer token. Compares in constant time."""

    def __init__(self, app: ASGIApp, token: str | None, on_accepted: Callable[[Scope], None]) -> None:
        """Accepts every request if `token` is None. Calls `on_accepted` with each request that it accepts."""
        self._app = app
        self._on_accepted = on_accepted
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif self._is_authorized(scope):
            self._on_accepted(scope)
            await self._app(scope, receive, send)
        else:
            message = "a bearer token is required; `retinue token` prints it"
            body = {"error": {"code": "unauthorized", "message": message}}
            await JSONResponse(body, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)

    def _is_authorized(self, scope: Scope) -> bool:
        if self._expected is None:
            return True
        given = [value for name, value in scope.get("headers", []) if name == b"authorization"]
        return len(given) == 1 and secrets.compare_digest(given[0], self._expected)
