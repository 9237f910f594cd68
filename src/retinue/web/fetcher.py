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
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
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
REDIRECTS = (301, 302, 303, 307, 308)
_BROKEN = (OSError, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException)
"""What a connection raises that a server or the network breaks."""
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE)


@cache
def user_agent() -> str:
    """Return the name under which requests are made."""
    from importlib.metadata import version

    return f"{AGENT_NAME}/{version('retinue')} (reads pages for one developer; obeys robots.txt)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits for one address."""

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


@dataclass(slots=True)
class _Seen:
    """The response to one request."""

    received: int = 0
    status: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One request that is about to be sent."""

    address: WebAddress
    method: str
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)
    why: str
    on_request: OnRequest

    @classmethod
    def to(
        cls,
        address: WebAddress,
        why: str,
        on_request: OnRequest,
        extra: Mapping[str, str],
        method: str,
        content: bytes | None,
    ) -> _Request:
        """Return the request with all its headers. `extra` are those of the caller."""
        headers = {
            "host": address.root.partition("://")[2], "user-agent": user_agent(), "accept": ACCEPTED,
            "accept-encoding": "gzip, deflate", "accept-language": "en", **extra,
        }  # fmt: skip
        if content is not None:
            headers["content-length"] = str(len(content))
        return cls(
            address=address, method=method, headers=headers, content=content, why=why, on_request=on_request
        )

    @property
    def size(self) -> int:
        """The bytes of the request as it is sent, without TLS."""
        parts = urlsplit(self.address.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers.items())
        return len(f"{self.method} {target} HTTP/1.1\r\n") + lines + len("\r\n") + len(self.content or b"")

    def report(self, seen: _Seen, *, is_sent: bool) -> None:
        """Tell the caller how the request ended."""
        note = RequestNote(
            host=self.address.host,
            address=clip(self.address.url, 300),
            method=self.method,
            why=self.why,
            sent=self.size if is_sent else 0,
            received=seen.received,
            status=seen.status,
            problem=seen.problem,
        )
        self.on_request(note)


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
                    request = _Request.to(address, why, on_request, headers or {}, method, content)
                    got = await self._exchange(request, accepts)
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

    async def _exchange(self, request: _Request, accepts: Callable[[str], bool]) -> FetchedBody | str:
        """Send one request and report it. Returns the body, or where a redirect leads."""
        address, seen = request.address, _Seen()
        network = PinnedNetwork(self.rules, address, self._resolve, self._network)
        try:
            async with (
                bounded_pool(self._certificates(), network) as pool,
                pool.stream(
                    request.method,
                    address.url,
                    headers=list(request.headers.items()),
                    content=request.content,
                ) as response,
            ):
                return await self._answer(address, response, accepts, seen)
        except BodyUnreadable as error:
            seen.problem = str(error)
            raise FetchFailed(f"{address.host}: {seen.problem}") from None
        except RetinueError as error:
            seen.problem = error.message
            raise
        except asyncio.CancelledError:
            seen.problem = "canceled, or out of time"
            raise
        except _BROKEN as error:
            seen.problem = _why_broken(error)
            raise FetchFailed(
                f"{address.host} {seen.problem}", hint="check the address, or try again later"
            ) from None
        finally:
            request.report(seen, is_sent=network.has_connected)

    async def _answer(
        self, address: WebAddress, response: httpcore2.Response, accepts: Callable[[str], bool], seen: _Seen
    ) -> FetchedBody | str:
        """Read an answer. Returns the body, or where a redirect leads. Raises if it is of no use."""
        seen.status = status = response.status
        headers = _header_of(response)
        if status in REDIRECTS and headers.get("location"):
            return headers["location"]
        if status != HTTPStatus.OK:
            raise FetchFailed(f"{address.host} answered with status {status}", status=status)
        written = headers.get("content-type", "")
        content_type = written.partition(";")[0].strip().lower()
        if not accepts(content_type):
            raise FetchFailed(f"{address.host} sent {_named(content_type)}, which is not read")
        chunks = self._counted(response.aiter_stream(), address, seen)
        body = await self._read(decompressed(chunks, headers.get("content-encoding", "")), address)
        named = _CHARSET.search(written)
        return FetchedBody(
            address=address, content_type=content_type, charset=named[1] if named else "", body=body
        )

    async def _counted(
        self, chunks: AsyncIterable[bytes], address: WebAddress, seen: _Seen
    ) -> AsyncGenerator[bytes]:
        """Yield a body as it arrives. Raises if it is too long."""
        async for chunk in read_fairly(chunks):
            seen.received += len(chunk)
            if seen.received > self.limits.max_bytes:
                raise FetchFailed(
                    f"{address.host} sent more than {self.limits.max_bytes:,} bytes",
                    hint="the page is too large to be read",
                )
            yield chunk

    async def _read(self, pieces: AsyncIterable[bytes], address: WebAddress) -> bytes:
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


def _header_of(response: httpcore2.Response) -> dict[str, str]:
    """Return the header of an answer, and note on its connection that a body follows."""
    extensions: Mapping[str, object] = cast("Any", response).extensions
    connection = extensions.get("network_stream")
    if isinstance(connection, BoundedConnection):
        connection.end_header()
    return {_text(name).lower(): _text(value) for name, value in response.headers}


def _text(header: bytes) -> str:
    """Return a part of a header as browsers read it: many servers write UTF-8 there."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


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
