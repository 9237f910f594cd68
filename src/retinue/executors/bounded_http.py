"""HTTP for servers that are not trusted: bodies have a limit, whatever the server sends.

Knows nothing of MCP. It is a module of its own because httpx2 is loaded only if an agent has such a server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from retinue.core import read_fairly


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that cuts endless bodies and counts compressed ones by what they decompress to."""

    def __init__(self, *, max_body_bytes: int, max_stream_bytes: int) -> None:
        """`max_stream_bytes` is the limit for a stream of events, `max_body_bytes` for every other body."""
        super().__init__()
        self._max_body_bytes = max_body_bytes
        self._max_stream_bytes = max_stream_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"  # a server may compress its answer all the same
        received = await super().handle_async_request(request)
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
