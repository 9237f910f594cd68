"""The HTTP connection to one model server. Limits the size of answers and maps transport errors to our own.

Never follows a redirect. Uses a proxy from the environment only for a server on another machine, because a
request to this machine must not leave it. Knows nothing of what is requested.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import httpx2

from retinue.core import ConfigInvalid, Json, ModelFailed, RetinueError, Unavailable, json_or_none
from retinue.models.endpoint_address import EndpointAddress
from retinue.models.server_errors import error_from_response, is_loading

CONNECT_TIMEOUT_S = 5.0
KEEP_ALIVE_S = 2.0
"""Shorter than the keep-alive of servers, so that we never use a connection that the server is closing."""
ANSWER_TIMEOUT_S = 10.0
"""Timeout for requests that ask for the server's models or properties."""
INFO_TIMEOUT = httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
STREAM_TIMEOUT = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S, write=60.0)
MAX_ATTEMPTS = 3
STALE_CONNECTION_S = 1.0
"""A reused connection that the server has closed fails within this time. Later failures are not retried."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024


class ServerRefused(Exception):
    """The server answered a streaming request with a status other than 200."""

    def __init__(self, status: int, body: bytes, retry_after: str = "") -> None:
        """`retry_after` is the header of that name."""
        super().__init__(status)
        self.status = status
        self.body = body
        self.retry_after = retry_after


class ConnectionLost(Unavailable):
    """The server does not answer, or the connection broke."""


class ServerLoading(Unavailable):
    """The server is still loading its model."""


class ServerConnection:
    """Sends requests to one server. Close it with `aclose`."""

    def __init__(self, address: EndpointAddress, key: str = "") -> None:
        """Raises `ConfigInvalid` if the key or the address cannot be used."""
        if key and not (address.encrypted or address.loopback):
            raise ConfigInvalid(
                f"the key for {address.root} would be sent unencrypted over the network",
                hint="use https, reach the server through a tunnel to 127.0.0.1, or remove `api_key_env`",
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid(
                f"the key for {address.root} contains characters that a key cannot have",
                hint="check the value of the variable that `api_key_env` names",
            )
        try:
            httpx2.URL(address.root)
        except httpx2.InvalidURL:
            raise ConfigInvalid(
                f"{address.root} is not a usable URL", hint="correct the endpoint's URL"
            ) from None
        self.address = address
        self._key = key
        # Loading the machine's certificates takes 35 ms. A server without TLS gets an empty context instead,
        # which trusts no certificate.
        headers = {"accept-encoding": "identity", "user-agent": "retinue"}
        self._client = httpx2.AsyncClient(
            headers={**headers, "authorization": f"Bearer {key}"} if key else headers,
            follow_redirects=False,
            trust_env=not address.loopback,
            verify=address.encrypted or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_S),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def request_json(self, path: str, body: Json = None) -> object:
        """GET a path below the server's root, or POST `body` to it, and return the JSON.

        Returns None if the answer is not JSON or its status is not 200.
        """
        method = "GET" if body is None else "POST"
        try:
            async with aclosing(await self._send(method, path, body, INFO_TIMEOUT)) as response:
                if response.status_code in (401, 403) or response.is_redirect:
                    raise self.error_for(response.status_code, b"")
                whole = await _read_at_most(response, MAX_ANSWER_BYTES)
                if is_loading(response.status_code, whole):
                    raise ServerLoading(
                        f"{self.address.base} is still loading its model", hint="try again later"
                    )
        except httpx2.TransportError as error:
            raise self._connection_lost_error(error) from None
        except httpx2.HTTPError:
            return None
        return json_or_none(whole) if response.status_code == 200 else None

    @asynccontextmanager
    async def stream(self, path: str, body: Json) -> AsyncGenerator[httpx2.Response]:
        """POST `body` and yield the open response. Raises `ServerRefused` for any status but 200.

        There is no read timeout; the caller must set one.
        """
        try:
            async with aclosing(await self._send("POST", path, body, STREAM_TIMEOUT)) as response:
                if response.status_code != 200:
                    body = await _read_at_most(response, MAX_ERROR_BYTES)
                    raise ServerRefused(response.status_code, body, response.headers.get("retry-after", ""))
                yield response
        except httpx2.TransportError as error:
            raise self._connection_lost_error(error) from None
        except httpx2.HTTPError as error:
            raise ModelFailed(f"{self.address.base}: {type(error).__name__}") from None

    async def _send(self, method: str, path: str, body: Json, timeouts: httpx2.Timeout) -> httpx2.Response:
        """Send a request, and retry at once if the server has closed the reused connection."""
        request = self._client.build_request(method, self.address.root + path, json=body, timeout=timeouts)
        for _ in range(MAX_ATTEMPTS - 1):
            began = time.monotonic()
            try:
                return await self._client.send(request, stream=True)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
                if time.monotonic() - began > STALE_CONNECTION_S:
                    raise
        return await self._client.send(request, stream=True)

    def _connection_lost_error(self, error: httpx2.TransportError) -> ConnectionLost:
        """Build the error without the transport's own message, which may contain anything."""
        never_connected = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        reason = "does not answer" if never_connected else f"broke the connection ({type(error).__name__})"
        hint = "start the server, or correct `models.endpoint`; `retinue doctor` checks all endpoints"
        return ConnectionLost(f"{self.address.base} {reason}", hint=hint)

    def error_for(self, status: int, body: bytes, retry_after: str = "") -> RetinueError:
        """Map an error response of this server to one of our errors."""
        return error_from_response(self.address.base, status, body, self._key, retry_after)


async def _read_at_most(response: httpx2.Response, limit: int) -> bytes:
    """Read the first `limit` bytes of a response."""
    parts: list[bytes] = []
    left = limit
    async for piece in response.aiter_raw():
        parts.append(piece[:left])
        left -= len(piece)
        if left <= 0:
            break
    return b"".join(parts)
