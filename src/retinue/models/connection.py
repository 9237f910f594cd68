"""The line to one server: bounded questions and streams, every fault of the transport as an error of ours.

Follows no redirect, and takes a proxy from the environment only for a server elsewhere: a question to this
machine must not leave it. Knows nothing of what is asked.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import httpx2

from retinue.core import ConfigInvalid, Json, ModelFailed, RetinueError, Unavailable, json_or_none
from retinue.models.endpoint_address import EndpointAddress
from retinue.models.server_errors import failure, is_loading

CONNECT_S = 5.0
KEEP_ALIVE_S = 2.0
"""Shorter than servers keep an idle connection, so that none is used that the other side is closing."""
ANSWER_S = 10.0
"""For what a server tells of itself."""
PROMPT = httpx2.Timeout(ANSWER_S, connect=CONNECT_S)
PATIENT = httpx2.Timeout(None, connect=CONNECT_S, write=60.0)
ATTEMPTS = 3
STALE_S = 1.0
"""A connection that was closed fails at once; what fails later was at work."""
MAX_ANSWER = 4 * 1024 * 1024
MAX_REFUSAL = 64 * 1024


class ServerRefused(Exception):
    """The server answered a request with another status than 200."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class ConnectionLost(Unavailable):
    """Nothing answers, or it broke off."""


class Loading(Unavailable):
    """The server asks to come again when its model is loaded."""


class ServerConnection:
    def __init__(self, address: EndpointAddress, key: str = "") -> None:
        if key and not (address.encrypted or address.loopback):
            raise ConfigInvalid(
                f"{address.root} would get its key over the network in the clear",
                hint="use https, reach the server through a tunnel to 127.0.0.1, or take `api_key_env` away",
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid(f"the key for {address.root} has characters that no key can have")
        try:
            httpx2.URL(address.root)
        except httpx2.InvalidURL:
            raise ConfigInvalid(f"{address.root} is not a URL that can be used") from None
        self.address = address
        self._key = key
        # Reading the machine's certificates takes 35 ms: not for a server that has none. The empty context
        # of those trusts nobody.
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

    async def ask(self, path: str, body: Json = None) -> object:
        """The JSON at a path below the server's root, posted to if there is a body; None if there is none."""
        method = "GET" if body is None else "POST"
        try:
            async with aclosing(await self._send(method, path, body, PROMPT)) as response:
                if response.status_code in (401, 403) or response.is_redirect:
                    raise self.failure(response.status_code, b"")
                whole = await _bounded(response, MAX_ANSWER)
                if is_loading(response.status_code, whole):
                    raise Loading(f"{self.address.base} is still loading its model", hint="try again later")
        except httpx2.TransportError as error:
            raise self.gone(error) from None
        except httpx2.HTTPError:
            return None
        return json_or_none(whole) if response.status_code == 200 else None

    @asynccontextmanager
    async def stream(self, path: str, body: Json) -> AsyncGenerator[httpx2.Response]:
        """An answer that begins well; `ServerRefused` otherwise. The caller limits the wait."""
        try:
            async with aclosing(await self._send("POST", path, body, PATIENT)) as response:
                if response.status_code != 200:
                    raise ServerRefused(response.status_code, await _bounded(response, MAX_REFUSAL))
                yield response
        except httpx2.TransportError as error:
            raise self.gone(error) from None
        except httpx2.HTTPError as error:
            raise ModelFailed(f"{self.address.base}: {type(error).__name__}") from None

    async def _send(self, method: str, path: str, body: Json, patience: httpx2.Timeout) -> httpx2.Response:
        """A connection from before may be closed by the server in the moment it is used again: then the
        request goes over another one."""
        request = self._client.build_request(method, self.address.root + path, json=body, timeout=patience)
        for _ in range(ATTEMPTS - 1):
            began = time.monotonic()
            try:
                return await self._client.send(request, stream=True)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
                if time.monotonic() - began > STALE_S:
                    raise
        return await self._client.send(request, stream=True)

    def gone(self, error: httpx2.TransportError) -> ConnectionLost:
        """The text of the transport's own error is not repeated: it may hold anything."""
        never = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        words = "does not answer" if never else f"broke the connection off ({type(error).__name__})"
        hint = "start the server, or correct `models.endpoint`; `retinue doctor` looks at all of them"
        return ConnectionLost(f"{self.address.base} {words}", hint=hint)

    def failure(self, status: int, body: bytes) -> RetinueError:
        return failure(self.address.base, status, body, self._key)


async def _bounded(response: httpx2.Response, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    async for piece in response.aiter_raw():
        parts.append(piece[:left])
        left -= len(piece)
        if left <= 0:
            break
    return b"".join(parts)
