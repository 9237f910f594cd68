"""Hostile programs and servers, as `python tests/attacks/hostile.py KIND`.

`events` floods stdout with short JSON events, as a coding CLI could. `mcp-stderr` and `mcp-stdout` are MCP
servers that answer properly and flood one of their streams; `mcp-requests` floods with requests. `http` is an
HTTP server that prints its port; the first part of a path says how it misbehaves, see `HTTP_ANSWERS`.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

BOMB_BYTES = 2 << 30
"""What the gzip bomb decompresses to."""


def flood(descriptor: int, block: bytes) -> None:
    """Write the block again and again, as fast as it is read."""
    with open(descriptor, "wb", 0, closefd=False) as stream:
        while True:
            stream.write(block)


def serve_mcp(flooded: int, block: bytes) -> None:
    """Answer `initialize` and `tools/list`, and flood a stream from then on."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        tool: dict[str, Any] = {
            "name": "t",
            "description": "t",
            "inputSchema": {"type": "object", "properties": {}},
        }
        answers: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
        }
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}
        print(json.dumps(answer), flush=True)
        if asked["method"] == "tools/list":
            threading.Thread(target=flood, args=(flooded, block), daemon=True).start()


Write = Callable[[bytes], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def sse(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JSON_BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


async def send_bytewise(write: Write) -> None:
    """An endless stream of empty deltas, every byte in a chunk of its own."""
    await write(STREAM)
    block = b"".join(chunk(bytes([byte])) for byte in sse("")) * 50
    while True:
        await write(block)


async def send_slowly(write: Write) -> None:
    """An endless stream with one piece of text a second."""
    await write(STREAM)
    while True:
        await write(chunk(sse("x ")))
        await asyncio.sleep(1)


async def send_bomb(write: Write) -> None:
    """A small body that decompresses to gigabytes."""
    await write(JSON_BODY + b"Content-Encoding: gzip\r\n\r\n")
    member = chunk(gzip.compress(bytes(16 << 20)))  # several members: one after the other
    for _ in range(BOMB_BYTES // (16 << 20)):
        await write(member)
    await write(b"0\r\n\r\n")


async def send_single_bomb(write: Write) -> None:
    """The same as one gzip member, compressed as a whole."""
    import zlib

    await write(JSON_BODY + b"Content-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for _ in range(BOMB_BYTES // (1 << 20)):
        if packed := packer.compress(bytes(1 << 20)):
            await write(chunk(packed))
    await write(chunk(packer.flush()) + b"0\r\n\r\n")


async def send_endless_body(write: Write) -> None:
    await write(JSON_BODY + b"\r\n")
    while True:
        await write(chunk(b" " * 65536))


async def send_endless_headers(write: Write) -> None:
    await write(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        await write(b"X-%d: %b\r\n" % (number, b"x" * 1000))


async def send_endless_hints(write: Write) -> None:
    """Endlessly many answers that say only that the real one is on its way."""
    while True:
        await write(b"HTTP/1.1 102 Processing\r\n\r\n" * 2_000)


async def send_requests(write: Write) -> None:
    """A stream of requests, all with the same id, and never an answer."""
    await write(STREAM)
    event = b'event: message\ndata: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n'
    while True:
        await write(chunk(event * 500))


async def send_endless_event(write: Write) -> None:
    """One event of a stream that never ends."""
    await write(STREAM + chunk(b"data: "))
    while True:
        await write(chunk(b"x" * 65536))


async def send_events(write: Write) -> None:
    """Endlessly many small events."""
    await write(STREAM)
    event = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
    while True:
        await write(chunk(event * 500))


async def send_comments(write: Write) -> None:
    await write(STREAM)
    while True:
        await write(chunk(b":\n" * 30_000))


HTTP_ANSWERS: dict[str, Callable[[Write], Awaitable[None]]] = {
    "bytewise": send_bytewise,
    "slow": send_slowly,
    "bomb": send_bomb,
    "single-bomb": send_single_bomb,
    "endless-body": send_endless_body,
    "endless-headers": send_endless_headers,
    "endless-event": send_endless_event,
    "endless-hints": send_endless_hints,
    "requests": send_requests,
    "events": send_events,
    "comments": send_comments,
}


async def answer_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            for line in head.lower().splitlines():
                if line.startswith("content-length:"):
                    await reader.readexactly(int(line.split(":")[1]))
            kind, _, rest = head.split(" ")[1].lstrip("/").partition("/")
            if rest.startswith(("v1/models", "api/", "props", "version", "health")):
                models = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode()
                found = rest == "v1/models"
                status = b"200 OK" if found else b"404 Not Found"
                body = models if found else b"{}"
                await write(
                    b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                    % (status, len(body), body)
                )
                continue
            await HTTP_ANSWERS[kind](write)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def serve_http() -> None:
    server = await asyncio.start_server(answer_http, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main(kind: str) -> None:
    match kind:
        case "events":
            flood(1, b'{"type":"x"}\n' * 2_000)
        case "mcp-stderr":
            serve_mcp(2, b"e\n" * 30_000)
        case "mcp-stdout":
            serve_mcp(1, b"{}\n" * 20_000)
        case "mcp-requests":
            serve_mcp(1, b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % n for n in range(2_000)))
        case "http":
            asyncio.run(serve_http())
        case _:
            raise SystemExit(f"unknown kind: {kind}")


if __name__ == "__main__":
    main(sys.argv[1])
