"""Limits what the clients of an HTTP server can take of it: connections, descriptors and time.

A connection is unauthenticated until the app accepts a request on it. If there are too many connections, the
oldest unauthenticated one is answered with 503 and closed, so clients that send requests get through while
others only hold connections open. The number of connections follows from the number of files that the process
may open: three quarters stay free for runs and for the store.

A client has a limited time to send the header and the body of a request, and to read the answer. Uvicorn
itself closes connections that stay idle between two requests. Knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import deque
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from retinue.core import Unavailable

MAX_CONNECTIONS = 512
SHARE_OF_FILES = 4
"""Connections take at most one in so many of the files that the process may open."""
UNAUTHENTICATED_SHARE = 2
"""Unauthenticated connections take at most one in so many of all connections."""
ACCEPTED_AT_ONCE = 64
"""The most connections that asyncio accepts in one go, before any of them is counted."""
QUEUE = 1024
"""Connections that may wait in the system to be accepted. If it is full, clients try again a second later."""
MAX_WAITING_BODY = 4 << 20
"""The largest body in bytes for which a request waits."""
CONNECTION = "retinue.connection"
"""The key of the connection in the `state` of an ASGI scope."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on the connections, time and bytes that clients may use."""

    connections: int | None = None
    """By default, what the number of files that this process may open allows."""
    header_s: float = 10.0
    """Time to send the header of a request."""
    body_s: float = 60.0
    """Time to send the body of a request."""
    read_answer_s: float = 60.0
    """How long a client may read nothing of an answer that waits for it."""


class ConnectionGuard:
    """Knows the connections of one server, and decides which of them has to go."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._max_connections = limits.connections or connections_allowed()
        self._max_unauthenticated = max(1, self._max_connections // UNAUTHENTICATED_SHARE)
        self._unauthenticated: dict[GuardedConnection, None] = {}
        """In the order of their beginning."""
        self._authenticated: set[GuardedConnection] = set()

    def admit(self, connection: GuardedConnection) -> None:
        """Count a new connection, and refuse the oldest unauthenticated one if it is one too many."""
        self._unauthenticated[connection] = None
        count = len(self._unauthenticated)
        if count > self._max_unauthenticated or count + len(self._authenticated) > self._max_connections:
            oldest = next(iter(self._unauthenticated))
            self.forget(oldest)
            oldest.refuse("503 Service Unavailable")

    def authenticate(self, connection: GuardedConnection) -> None:
        """Take a connection out of those that may be refused."""
        if connection in self._unauthenticated:
            del self._unauthenticated[connection]
            self._authenticated.add(connection)

    def forget(self, connection: GuardedConnection) -> None:
        self._unauthenticated.pop(connection, None)
        self._authenticated.discard(connection)


class GuardedConnection(H11Protocol):
    """One connection, with time limits for its client."""

    guard: ClassVar[ConnectionGuard]

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._awaited: object = None
        """What the client has to send: its header, the body of a request (which is the value), or nothing."""
        self._sending: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connected: socket.socket | None = transport.get_extra_info("socket")
        if connected is not None:  # notices clients that have vanished
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._limit_sending()
        self.guard.admit(self)

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)
            self._limit_sending()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit_sending()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self._reading or self.loop.call_later(
            self.guard.limits.read_answer_s, self.transport.abort
        )

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reading = _cancel(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.guard.forget(self)
        self._sending, self._reading = _cancel(self._sending), _cancel(self._reading)

    def refuse(self, status: str) -> None:
        """Answer with an error, unless an answer has begun, and close."""
        if self.transport.is_closing():
            return
        cycle = self._request
        if cycle is not None and not cycle.response_complete:
            self.transport.abort()
            return
        self.transport.write(
            f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n".encode()
        )
        self.transport.close()

    @property
    def _request(self) -> RequestResponseCycle | None:
        """The current request, or the last one; None before the first."""
        return cast("RequestResponseCycle | None", self.cycle)

    def _limit_sending(self) -> None:
        """Start the timer for what the client has to send now, or stop it."""
        cycle = self._request
        if cycle is None or (cycle.response_complete and self.conn.trailing_data[0]):
            awaited, seconds = "header", self.guard.limits.header_s
        elif cycle.more_body and not cycle.response_complete:
            awaited, seconds = cycle, self.guard.limits.body_s
        else:
            awaited, seconds = None, 0.0
        if awaited == self._awaited:
            return
        self._awaited = awaited
        self._sending = _cancel(self._sending)
        if awaited is not None:
            self._sending = self.loop.call_later(seconds, self.refuse, "408 Request Timeout")


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def guarded_config(app: ASGIApp, limits: ConnectionLimits | None = None, **options: Any) -> uvicorn.Config:
    """The configuration of a uvicorn server whose connections are limited. `options` are uvicorn's own."""

    class Connection(GuardedConnection):
        guard = ConnectionGuard(limits or ConnectionLimits())

    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,  # it would contain the dashboard's token
        proxy_headers=False,
        server_header=False,
        # What is accepted and closed at once takes files, too, and runs need some to start programs.
        backlog=max(1, min(ACCEPTED_AT_ONCE, connections_allowed() // 4)),
        **options,
    )


class GuardedServer(uvicorn.Server):
    """A uvicorn server on open sockets, which accepts few connections at once and lets many wait."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)  # for asyncio, both numbers are one


async def serve_app(app: ASGIApp, listener: socket.socket, **options: Any) -> None:
    """Serve an app until interrupted. `options` are uvicorn's own."""
    await GuardedServer(guarded_config(app, **options)).serve(sockets=[listener])


def mark_authenticated(scope: MutableMapping[str, Any]) -> None:
    """Tell the connection of a request that the app has accepted the request."""
    connection = scope.get("state", {}).get(CONNECTION)
    if isinstance(connection, GuardedConnection):
        connection.guard.authenticate(connection)


def drop_incomplete_requests(app: ASGIApp) -> ASGIApp:
    """Return an app that gets only requests whose body has arrived.

    Otherwise a client that disconnects within the body makes the app fail, with a traceback in the log.
    Bodies larger than `MAX_WAITING_BODY` are passed on as they arrive. Call it for authorised clients only.
    """

    async def wait_for_body(scope: Scope, receive: Receive, send: Send) -> None:
        messages: deque[Message] = deque()
        size, more = 0, scope["type"] == "http"
        while more and size <= MAX_WAITING_BODY:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            messages.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)

        async def replay() -> Message:
            return messages.popleft() if messages else await receive()

        await app(scope, replay, send)

    return wait_for_body


def connections_allowed() -> int:
    """How many connections this process can take, by the number of files that it may open."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // SHARE_OF_FILES)
    )


def listen(host: str, port: int, hint: str) -> socket.socket:
    """Open a listening socket. Port 0 means any free port. `hint` says what to do if it is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        shown = f"[{host}]" if ":" in host else host
        why = os.strerror(error.errno) if error.errno else str(error)  # `strerror` repeats the address
        raise Unavailable(f"cannot listen on {shown}:{port}: {why}", hint=hint) from None
