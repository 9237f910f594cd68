"""HTTP for servers that are not trusted: headers and bodies have a limit, whatever the server sends.

Knows nothing of MCP. It is a module of its own because httpx2 is loaded only if an agent has such a server.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import Any, cast

import httpcore2
import httpx2

from retinue.core import read_fairly

MAX_HEADER_BYTES = 64 << 10
"""What a server may send before the header of its answer is complete, with all answers such as 102."""
HEADER_READ_BYTES = 4 << 10
"""How much of a header is read at once: parsing thousands of small answers would keep the event loop busy."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates of the system, loaded once: that takes 20 ms of the event loop."""
    return httpx2.create_ssl_context()


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that cuts endless headers and bodies. Compressed bodies count decompressed."""

    def __init__(self, *, max_body_bytes: int, max_stream_bytes: int) -> None:
        """`max_stream_bytes` is the limit for a stream of events, `max_body_bytes` for every other body."""
        certificates = trusted_certificates()
        super().__init__(verify=certificates)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=certificates, max_connections=100, network_backend=BoundedNetwork()
        )
        self._max_body_bytes = max_body_bytes
        self._max_stream_bytes = max_stream_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"  # a server may compress its answer all the same
        received = await super().handle_async_request(request)
        connection = received.extensions.get("network_stream")
        if isinstance(connection, BoundedConnection):
            connection.end_header()
        is_stream = received.headers.get("content-type", "").startswith("text/event-stream")
        headers = [
            (name, value)
            for name, value in received.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        return httpx2.Response(
            received.status_code,
            headers=headers,
            stream=BoundedBody(received, self._max_stream_bytes if is_stream else self._max_body_bytes),
            extensions=received.extensions,
        )


class BoundedBody(httpx2.AsyncByteStream):
    """The decompressed body of a response, read in fair slices. A body over the limit is an error."""

    def __init__(self, response: httpx2.Response, max_bytes: int) -> None:
        self._response = response
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for chunk in read_fairly(self._response.aiter_bytes()):
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the body is longer than {self._max_bytes} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


class BoundedNetwork(httpcore2.AsyncNetworkBackend):
    """Opens connections that limit the header of an answer."""

    def __init__(self) -> None:
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return BoundedConnection(await self._network.connect_tcp(*args, **options))


class BoundedConnection(httpcore2.AsyncNetworkStream):
    """A connection on which a server may send only so much before the header of its answer is complete."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._header_left: int | None = MAX_HEADER_BYTES
        """None while a body is read."""

    def end_header(self) -> None:
        """Note that the header has arrived: what follows is a body, which has its own limit."""
        self._header_left = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._header_left is None:
            return await self._stream.read(max_bytes, timeout)
        if self._header_left <= 0:
            raise httpcore2.ReadError(f"the header is longer than {MAX_HEADER_BYTES} bytes")
        data = await self._stream.read(min(max_bytes, HEADER_READ_BYTES), timeout)
        self._header_left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self._header_left = MAX_HEADER_BYTES  # a request: its answer follows
        await self._stream.write(buffer, timeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return BoundedConnection(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
