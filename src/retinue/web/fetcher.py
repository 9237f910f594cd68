"""Fetches one address over HTTP, within limits that hold whatever the server sends.

Each step of a redirect is checked like a new address and gets a connection of its own. Only gzip and deflate
are accepted, once, and decompressed in small pieces: a body that grows beyond its limit is given up. There
are no cookies, no credentials but those that the caller passes for one host, and no proxy. Every request is
reported, also one that fails. Knows nothing of pages.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast
from urllib.parse import urlsplit

import httpcore2

from retinue.core import FetchFailed, RetinueError, clip, read_fairly
from retinue.web.addresses import WebAddress, WebRules
from retinue.web.bounded_http import (
    BodyUnreadable,
    BoundedConnection,
    bounded_pool,
    decompressed,
    trusted_certificates,
)
from retinue.web.pinned_network import PinnedNetwork, Resolve, resolve_by_system

AGENT_NAME = "Retinue"
"""The name by which `robots.txt` may address this program."""
ACCEPTED = (
    "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/pdf;q=0.8, */*;q=0.1"
)
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE)


@cache
def user_agent() -> str:
    """Return the name under which requests are made."""
    from importlib.metadata import version

    return f"{AGENT_NAME}/{version('retinue')} (reads pages for one developer; obeys robots.txt)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """What one address may cost."""

    seconds: float = 20.0
    """For all redirects together."""
    max_bytes: int = 5 << 20
    """Bytes of a body as they arrive."""
    max_decompressed_bytes: int = 12 << 20
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestNote:
    """One request that left this machine, or was about to."""

    host: str
    address: str
    method: str
    why: str
    """What the request is for."""
    sent: int = 0
    """Bytes of the request, without TLS."""
    received: int = 0
    """Bytes of the body."""
    status: int | None = None
    """The status of the answer; None if there was none."""
    problem: str = ""
    """Why there is no usable answer."""

    def as_dict(self) -> dict[str, Any]:
        """Return the note as the event of a run."""
        shown: dict[str, Any] = {
            "host": self.host, "address": self.address, "method": self.method, "why": self.why,
            "sent": self.sent, "received": self.received, "status": self.status, "problem": self.problem,
        }  # fmt: skip
        return {name: value for name, value in shown.items() if value not in (None, "")}

    def __str__(self) -> str:
        end = self.problem or f"status {self.status}"
        return (
            f"web: {self.method} {self.host} for {self.why}: {end}, {self.sent} bytes out, "
            f"{self.received} bytes in"
        )


OnRequest = Callable[[RequestNote], None]
"""Called with each request when it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBody:
    """The answer of a server, complete and decompressed."""

    address: WebAddress
    """Where it came from, after all redirects."""
    content_type: str
    """In lower case, without parameters; empty if the server names none."""
    charset: str
    body: bytes = field(repr=False)


class Fetcher:
    """Fetches addresses by the user's rules, with the name servers and certificates of the system."""

    def __init__(
        self,
        rules: WebRules,
        limits: FetchLimits | None = None,
        *,
        resolve: Resolve = resolve_by_system,
        network: httpcore2.AsyncNetworkBackend | None = None,
        certificates: Callable[[], ssl.SSLContext] = trusted_certificates,
    ) -> None:
        self.rules = rules
        self.limits = limits or FetchLimits()
        self._resolve = resolve
        self._network = network
        self._certificates = certificates

    async def fetch(
        self,
        url: str,
        *,
        why: str,
        on_request: OnRequest,
        accepts: Callable[[str], bool] = lambda content_type: True,
        may_open: Callable[[WebAddress], Any] | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        content: bytes | None = None,
        follow: bool = True,
    ) -> FetchedBody:
        """Fetch an address. Raises `AddressDenied` or `FetchFailed`.

        `accepts` decides by the content type whether the body is read. `may_open` is awaited before each
        address, also before those that redirects lead to.
        """
        address = self.rules.check(url)
        try:
            async with asyncio.timeout(self.limits.seconds):
                for _ in range(self.limits.redirects + 1):
                    if may_open is not None:
                        await may_open(address)
                    got = await self._exchange(
                        address, why, on_request, accepts, headers or {}, method, content
                    )
                    if isinstance(got, FetchedBody):
                        return got
                    if not follow:
                        raise FetchFailed(f"{address.host} leads elsewhere, which is not followed here")
                    address = self.rules.follow(address, got)
        except TimeoutError:
            raise FetchFailed(
                f"{address.host} did not answer within {self.limits.seconds:g} seconds",
                hint="try again later",
            ) from None
        raise FetchFailed(f"{address.host} leads from one address to the next without end")

    async def _exchange(
        self,
        address: WebAddress,
        why: str,
        on_request: OnRequest,
        accepts: Callable[[str], bool],
        extra: Mapping[str, str],
        method: str,
        content: bytes | None,
    ) -> FetchedBody | str:
        """Send one request. Returns the body, or where a redirect leads."""
        headers = {
            "host": address.root.partition("://")[2], "user-agent": user_agent(), "accept": ACCEPTED,
            "accept-encoding": "gzip, deflate", "accept-language": "en", **extra,
        }  # fmt: skip
        if content is not None:
            headers["content-length"] = str(len(content))
        sent = 0
        received = [0]
        status: int | None = None
        problem = ""
        network = PinnedNetwork(self.rules, address, self._resolve, self._network)
        try:
            async with bounded_pool(self._certificates(), network) as pool:
                sent = _request_size(method, address, headers, content)
                async with pool.stream(
                    method, address.url, headers=list(headers.items()), content=content
                ) as response:
                    status = response.status
                    extensions: Mapping[str, object] = cast("Any", response).extensions
                    connection = extensions.get("network_stream")
                    if isinstance(connection, BoundedConnection):
                        connection.end_header()
                    answered = {
                        name.decode("latin-1").lower(): value.decode("latin-1")
                        for name, value in response.headers
                    }
                    if status in (301, 302, 303, 307, 308) and answered.get("location"):
                        return answered["location"]
                    if status != 200:
                        raise FetchFailed(f"{address.host} answered with status {status}", status=status)
                    content_type = answered.get("content-type", "").partition(";")[0].strip().lower()
                    if not accepts(content_type):
                        raise FetchFailed(f"{address.host} sent {_named(content_type)}, which is not read")
                    chunks = _counted(response.aiter_stream(), received, self.limits.max_bytes, address.host)
                    body = await self._read(
                        decompressed(chunks, answered.get("content-encoding", "")), address
                    )
                    named = _CHARSET.search(answered.get("content-type", ""))
                    return FetchedBody(
                        address=address,
                        content_type=content_type,
                        charset=named[1] if named else "",
                        body=body,
                    )
        except BodyUnreadable as error:
            problem = str(error)
            raise FetchFailed(f"{address.host}: {problem}") from None
        except RetinueError as error:
            problem = error.message
            raise
        except asyncio.CancelledError:
            problem = "canceled, or out of time"
            raise
        except (
            OSError,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.TimeoutException,
        ) as error:
            problem = _why_broken(error)
            raise FetchFailed(
                f"{address.host} {problem}", hint="check the address, or try again later"
            ) from None
        finally:
            on_request(
                RequestNote(
                    host=address.host,
                    address=clip(address.url, 300),
                    method=method,
                    why=why,
                    sent=sent if network.has_connected else 0,
                    received=received[0],
                    status=status,
                    problem=problem,
                )
            )

    async def _read(self, pieces: AsyncIterator[bytes], address: WebAddress) -> bytes:
        """Return the whole body. Raises if it decompresses to too much."""
        parts: list[bytes] = []
        left = self.limits.max_decompressed_bytes
        async for piece in pieces:
            parts.append(piece)
            left -= len(piece)
            if left < 0:
                raise FetchFailed(
                    f"{address.host} sent a body that decompresses to more than "
                    f"{self.limits.max_decompressed_bytes:,} bytes",
                    hint="the page is too large to be read",
                )
        return b"".join(parts)


def _named(content_type: str) -> str:
    """Return a content type for a message, without what else a server may write there."""
    return (
        content_type
        if re.fullmatch(r"[\w.+-]{1,40}/[\w.+-]{1,40}", content_type)
        else "an unknown kind of data"
    )


def _request_size(method: str, address: WebAddress, headers: Mapping[str, str], content: bytes | None) -> int:
    """Return the bytes of a request as it is sent."""
    parts = urlsplit(address.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = sum(len(name) + len(value) + len(": \r\n") for name, value in headers.items())
    return len(f"{method} {target} HTTP/1.1\r\n") + lines + len("\r\n") + len(content or b"")


def _why_broken(error: Exception) -> str:
    """Say what broke, without the words of the server or the library."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "has no certificate that this machine trusts"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout):
        return "does not answer"
    return f"broke the connection ({type(error).__name__})"


async def _counted(
    chunks: AsyncIterator[bytes], received: list[int], limit: int, host: str
) -> AsyncIterator[bytes]:
    async for chunk in read_fairly(chunks):
        received[0] += len(chunk)
        if received[0] > limit:
            raise FetchFailed(
                f"{host} sent more than {limit:,} bytes", hint="the page is too large to be read"
            )
        yield chunk
