"""Opens connections to checked addresses: resolves a name once, checks what came back, and uses that.

A name server that answers differently the second time changes nothing, because it is not asked twice. The TLS
name and the `Host` header stay those of the URL. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

import httpcore2

from retinue.core import FetchFailed
from retinue.web.addresses import WebAddress, WebRules

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host."""


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Ask the name servers of this machine."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        raise FetchFailed(f"{host} is not known to the name server", hint="check the address") from None
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class PinnedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to one checked address of one host."""

    def __init__(
        self,
        rules: WebRules,
        address: WebAddress,
        resolve: Resolve,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._rules = rules
        self._address = address
        self._resolve = resolve
        self._network = network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        self.has_connected = False
        """Whether anything can have been sent."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        resolved = await self._resolve(self._address.host, port)
        chosen = self._rules.choose_ip(self._address, resolved)
        failure: Exception | None = None
        for ip in chosen[:3]:
            try:
                stream = await self._network.connect_tcp(ip, port, timeout, local_address, socket_options)
                self.has_connected = True
                return stream
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # noqa: S101 - `choose_ip` returns at least one
        raise failure

    async def connect_unix_socket(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("only hosts of the web are opened")
