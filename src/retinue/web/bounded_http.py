"""HTTP for servers that are not trusted: headers and bodies have a limit, whatever the server sends.

Knows nothing of MCP or of pages.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from functools import cache
from typing import Any, cast

import httpcore2
import httpx2

from retinue.core import read_fairly

MAX_HEADER_BYTES = 64 << 10
"""What a server may send before the header of its answer is complete, with all answers such as 102."""
HEADER_READ_BYTES = 4 << 10
"""How much of a header is read at once: parsing thousands of small answers would keep the event loop busy."""

PIECE_BYTES = 1 << 16
"""How much is decompressed at once."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates of the system, loaded once: that takes 20 ms of the event loop."""
    return httpx2.create_ssl_context()


def bounded_transport(*, max_body_bytes: int, max_stream_bytes: int) -> httpx2.AsyncBaseTransport:
    """Return a transport for `httpx2.AsyncClient` that cuts endless headers and bodies."""
    return BoundedTransport(max_body_bytes=max_body_bytes, max_stream_bytes=max_stream_bytes)


def bounded_pool(
    certificates: ssl.SSLContext, network: httpcore2.AsyncNetworkBackend | None = None
) -> httpcore2.AsyncConnectionPool:
    """Return a pool whose connections cut endless headers. `network` opens them."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=certificates, max_connections=100, network_backend=BoundedNetwork(network)
    )


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that cuts endless headers and bodies. Compressed bodies count decompressed."""

    def __init__(self, *, max_body_bytes: int, max_stream_bytes: int) -> None:
        """`max_stream_bytes` is the limit for a stream of events, `max_body_bytes` for every other body."""
        certificates = trusted_certificates()
        super().__init__(verify=certificates)
        self._pool = bounded_pool(certificates)
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
        encoding = self._response.headers.get("content-encoding", "")
        try:
            async for chunk in decompressed(read_fairly(self._response.aiter_raw()), encoding):
                left -= len(chunk)
                if left < 0:
                    raise httpx2.ReadError(f"the body is longer than {self._max_bytes} bytes")
                yield chunk
        except BodyUnreadable as error:
            raise httpx2.ReadError(str(error)) from None

    async def aclose(self) -> None:
        await self._response.aclose()


class BodyUnreadable(Exception):
    """A body is damaged, or in an encoding that was not asked for."""


async def decompressed(chunks: AsyncIterable[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """Yield a body without its compression, at most 64 KB at a time, however small it was compressed.

    Only gzip and deflate are known, and only once: a body that is compressed twice, or with brotli, can grow
    to gigabytes within one piece.
    """
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise BodyUnreadable("the body has an encoding that was not asked for")
    inflater: Any = None
    async for chunk in chunks:
        data = chunk
        while data:
            if inflater is None:
                # Some servers send raw deflate data, without the header that the standard wants.
                has_header = coding != "deflate" or (data[0] & 0x0F) == 8
                inflater = zlib.decompressobj(47 if has_header else -15)
            try:
                piece = inflater.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise BodyUnreadable("the body cannot be decompressed") from None
            if piece:
                yield piece
            if not inflater.eof:
                data = inflater.unconsumed_tail
                continue
            data = inflater.unused_data
            inflater = None
            if not data.startswith(b"\x1f\x8b"):  # what follows is not another part of the same kind
                break


class BoundedNetwork(httpcore2.AsyncNetworkBackend):
    """Opens connections that limit the header of an answer."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._network = network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

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
