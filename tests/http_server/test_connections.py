"""Clients that hold connections open cannot keep others out, and get a limited time for everything (P1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Receive, Scope, Send

from retinue.core import Unavailable
from retinue.http_server import ConnectionLimits, GuardedServer, guarded_config, listen, mark_authenticated

pytestmark = pytest.mark.anyio

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
SECRET_REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\nX-Token: t\r\n\r\n"
HALF_HEADER = b"GET / HTTP/1.1\r\nHost: h\r\nX-"
HALF_BODY = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf"
LARGE = 64 << 20


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts requests with a token. `/large` answers with more than any buffer holds."""
    if any(name == b"x-token" for name, _ in scope["headers"]):
        mark_authenticated(scope)
    more = True
    while more and scope["method"] == "POST":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
    size = LARGE if scope["path"] == "/large" else 2
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    for _ in range(0, size, 1 << 20):
        await send({"type": "http.response.body", "body": b"x" * min(size, 1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Site:
    """A running server, and connections to it that end with it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, data: bytes = b"") -> Connected:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(writer)
        writer.write(data)
        await writer.drain()
        return reader, writer

    async def ask(self, data: bytes = REQUEST) -> int | None:
        return await status(await self.connect(data))

    async def close_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)
        self._writers.clear()


@asynccontextmanager
async def served(limits: ConnectionLimits) -> AsyncGenerator[Site]:
    listener = listen("127.0.0.1", 0, "no hint")
    server = GuardedServer(guarded_config(app, limits, lifespan="off", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    site = Site(listener.getsockname()[1])
    try:
        yield site
    finally:
        await site.close_all()
        server.should_exit = True
        await serving


async def status(connected: Connected) -> int | None:
    """The status of the answer; None if the connection was closed without one."""
    async with asyncio.timeout(20):
        try:
            line = await connected[0].readline()
        except ConnectionError:
            return None
    return int(line.split()[1]) if line else None


async def test_too_many_connections_close_the_oldest_that_sent_nothing() -> None:
    async with served(ConnectionLimits(connections=8)) as site:
        waiting = [await site.connect(HALF_HEADER) for _ in range(40)]
        assert [await site.ask() for _ in range(5)] == [200] * 5
        assert await status(waiting[0]) in (503, None)
        await site.close_all()
        assert await site.ask() == 200


async def test_authenticated_connections_are_never_closed_for_others() -> None:
    async with served(ConnectionLimits(connections=8)) as site:
        mine = await site.connect(SECRET_REQUEST)
        assert await status(mine) == 200
        for _ in range(40):
            await site.connect(HALF_HEADER)
        await mine[0].readuntil(b"xx")
        mine[1].write(SECRET_REQUEST)
        assert await status(mine) == 200


async def test_when_all_connections_are_authenticated_new_ones_get_503() -> None:
    async with served(ConnectionLimits(connections=4)) as site:
        mine = [await site.connect(SECRET_REQUEST) for _ in range(4)]
        assert [await status(each) for each in mine] == [200] * 4
        assert await site.ask() == 503
        await site.close_all()
        await asyncio.sleep(0.1)
        assert await site.ask() == 200


@pytest.mark.parametrize("sent", [b"", HALF_HEADER, b"G"], ids=["nothing", "half a header", "a letter"])
async def test_a_header_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with served(ConnectionLimits(header_s=0.2)) as site:
        assert await status(await site.connect(sent)) == 408


async def test_a_header_that_comes_letter_by_letter_has_the_same_time() -> None:
    async with served(ConnectionLimits(header_s=0.3)) as site:
        reader, writer = await site.connect()
        answered = asyncio.create_task(status((reader, writer)))
        while not answered.done():
            writer.write(b"X")
            await asyncio.sleep(0.05)
        assert await answered in (408, None)


async def test_the_second_header_of_a_connection_has_a_limit_too() -> None:
    async with served(ConnectionLimits(header_s=0.2)) as site:
        connected = await site.connect(REQUEST)
        assert await status(connected) == 200
        await connected[0].readuntil(b"xx")
        connected[1].write(HALF_HEADER)
        assert await status(connected) == 408


async def test_a_body_that_does_not_come_ends_the_connection() -> None:
    async with served(ConnectionLimits(body_s=0.2)) as site:
        assert await status(await site.connect(HALF_BODY)) is None
        assert await site.ask() == 200


async def test_a_client_that_never_reads_its_answer_is_disconnected() -> None:
    async with served(ConnectionLimits(read_answer_s=0.3)) as site:
        reader, writer = await site.connect(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        received = 0
        try:
            while part := await reader.read(1 << 20):
                received += len(part)
        except ConnectionError:
            pass
        assert received < LARGE


async def test_a_half_closed_connection_is_closed() -> None:
    async with served(ConnectionLimits()) as site:
        reader, writer = await site.connect(HALF_HEADER)
        writer.write_eof()
        async with asyncio.timeout(5):
            assert await reader.read() == b""


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with served(ConnectionLimits()) as site:
        reader, writer = await site.connect(REQUEST * 20)
        for _ in range(20):
            assert await status((reader, writer)) == 200
            await reader.readuntil(b"xx")


async def test_a_port_in_use_is_reported_with_a_hint() -> None:
    with listen("127.0.0.1", 0, "") as first, pytest.raises(Unavailable, match="cannot listen") as raised:
        listen("127.0.0.1", first.getsockname()[1], "choose another")
    assert raised.value.hint == "choose another"
    assert raised.value.message.count("127.0.0.1") == 1  # the system's own text repeats the address
