"""Streamable HTTP: loopback by default, a bearer token, Host and Origin checks. Knows no tool."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from retinue.core import InvalidInput, Unavailable
from retinue.server.mcp_server import RetinueServer


@dataclass(frozen=True, slots=True)
class BindAddress:
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> BindAddress:
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise InvalidInput(f"not an address: {text!r}", hint="write HOST:PORT, such as 127.0.0.1:8765")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class BearerToken:
    """Lets a request in only with the token, compared in constant time."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._admits(scope):
            await self._app(scope, receive, send)
        else:
            body = {"error": {"code": "unauthorized", "message": "a bearer token is needed: `retinue token`"}}
            await JSONResponse(body, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        given = [value for name, value in scope.get("headers", []) if name == b"authorization"]
        return len(given) == 1 and secrets.compare_digest(given[0], self._expected)


async def serve_http(
    server: RetinueServer, address: BindAddress, token: str | None, allowed_hosts: Sequence[str]
) -> None:
    """Serve until interrupted. Without a token only loopback is served."""
    if token is None and not address.is_loopback:
        raise InvalidInput(
            f"{address.shown_host} can be reached from other machines, so a token is needed there",
            hint="leave out --no-token, or serve on 127.0.0.1",
        )
    listener = _listen(address)
    host, port = address.shown_host, listener.getsockname()[1]
    hosts = [f"{name}:{port}" for name in dict.fromkeys((host, "127.0.0.1", "localhost", "[::1]"))]
    app: ASGIApp = server.streamable_http_app(
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[*hosts, *allowed_hosts],
            allowed_origins=[f"http://{name}" for name in (*hosts, *allowed_hosts)],
        ),
    )
    if token is not None:
        app = BearerToken(app, token)
    print(f"retinue: serving http://{host}:{port}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


def _listen(address: BindAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {address.shown_host}:{address.port}: {error.strerror}",
            hint="another server may have the port: choose another one",
        ) from None
