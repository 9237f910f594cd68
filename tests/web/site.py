"""A web server on loopback that tests fill with pages, good and evil; and a network that leads to it.

`Site` speaks HTTP by hand, so that it can also break it. `PublicNetwork` lets names resolve to public
addresses and connects them to the site: the code under test sees the internet, and nothing leaves loopback.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpcore2

from retinue.redaction import SecretRedactor
from retinue.web import (
    Fetcher,
    FetchLimits,
    OutgoingGuard,
    PageCache,
    PageReader,
    RequestNote,
    WebPages,
    WebRules,
)
from tests.web.pages import PAGES

PUBLIC_IP = "93.184.215.14"


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """A request that the site received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


Answer = bytes | Callable[[SiteRequest, asyncio.StreamWriter], Awaitable[None]]


def answer(
    body: bytes | str, content_type: str = "text/html; charset=utf-8", status: int = 200, **headers: str
) -> bytes:
    """Return a whole HTTP response."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + data


def redirect(location: str, status: int = 302) -> bytes:
    return answer("", status=status, location=location)


@dataclass(slots=True)
class Site:
    """The pages of a server, by path. The twelve kinds of pages are there from the beginning."""

    answers: dict[str, Answer] = field(
        default_factory=lambda: {page.path: answer(page.body, page.content_type) for page in PAGES}
    )
    requests: list[SiteRequest] = field(default_factory=list[SiteRequest])
    port: int = 0
    tls_port: int = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            pairs = (line.partition(":") for line in head[1:] if line)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = SiteRequest(method, path, headers, body)
            self.requests.append(request)
            found = self.answers.get(path) or self.answers.get(path.partition("?")[0])
            if found is None:
                found = answer("not found", status=404)
            if isinstance(found, bytes):
                writer.write(found)
                await writer.drain()
            else:
                await found(request, writer)
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def serve(self, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Site]:
        """Serve on loopback; with `tls` on a second port too."""
        plain = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = plain.sockets[0].getsockname()[1]
        servers = [plain]
        if tls is not None:
            servers.append(await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls))
            self.tls_port = servers[1].sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            for server in servers:
                server.close()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """Return the paths that were requested, without `robots.txt`."""
        return [each.path for each in self.requests if each.path != "/robots.txt"]


class PublicNetwork(httpcore2.AsyncNetworkBackend):
    """Connects every address to the site, port 80 to its plain port and port 443 to the one with TLS."""

    def __init__(self, site: Site, names: Mapping[str, Sequence[str]] | None = None) -> None:
        self._site = site
        self.names = dict(names or {})
        self.connected: list[str] = []
        self.asked: list[str] = []
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a name: those that the test gave it, or a public one."""
        self.asked.append(host)
        return self.names.get(host, [PUBLIC_IP])

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.connected.append(host)
        to = {80: self._site.port, 443: self._site.tls_port}.get(port, port)
        return await self._network.connect_tcp("127.0.0.1", to, timeout, local_address, socket_options)


@dataclass(slots=True)
class Notes:
    """The requests that were reported."""

    notes: list[RequestNote] = field(default_factory=list[RequestNote])

    def __call__(self, note: RequestNote) -> None:
        self.notes.append(note)


@dataclass(slots=True, kw_only=True)
class Reader:
    """`WebPages` on a site, with what it needs."""

    pages: WebPages
    network: PublicNetwork
    notes: Notes

    async def read(self, url: str, **options: Any) -> Any:
        return await self.pages.read(url, why="test", on_request=self.notes, **options)


@asynccontextmanager
async def reading(
    site: Site,
    folder: Path,
    *,
    rules: WebRules | None = None,
    limits: FetchLimits | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    certificates: Callable[[], ssl.SSLContext] | None = None,
    roots: Sequence[Path] = (),
    hours: float = 24,
    read_seconds: float = 10.0,
) -> AsyncGenerator[Reader]:
    """Yield what reads pages of the site, as if the site were on the internet."""
    network = PublicNetwork(site, names)
    fetcher = Fetcher(
        rules or WebRules(),
        limits or FetchLimits(),
        resolve=network.resolve,
        network=network,
        **({} if certificates is None else {"certificates": certificates}),
    )
    guard = OutgoingGuard(SecretRedactor(), roots)
    cache = PageCache(folder / "web", hours * 3600)
    async with WebPages(fetcher, cache, guard, reader=PageReader(read_seconds)) as pages:
        yield Reader(pages=pages, network=network, notes=Notes())
