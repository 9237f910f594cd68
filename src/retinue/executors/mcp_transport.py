"""How an agent's MCP servers are started and reached. Knows nothing of what is said to them.

A program is started as any other of a run: allowlisted environment, the run's mark, and a keeper that ends
it with everything it started. The SDK's own transport ends the program's group alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from retinue.core import Emit, McpServer, OutputLine, Unavailable
from retinue.executors.process import (
    CHUNK_BYTES,
    LineDecoder,
    Process,
    Program,
    child_environment,
    expand_variables,
    run_uninterrupted,
    spawn_process,
)

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

LONGEST_MESSAGE = 8 << 20
"""Bytes; a server that says more in one message is taken for broken."""
HTTP_SECONDS = 30.0
READ_SECONDS = 300.0
"""A server may hold a stream open for long."""


@dataclass(frozen=True, slots=True)
class McpConnector:
    """Opens connections for one run."""

    run_id: str
    cwd: Path
    emit: Emit
    environment: Mapping[str, str] = field(repr=False)
    """The server's own, of which a program sees only what is allowed."""
    grace: float = 1.0

    @asynccontextmanager
    async def connect(self, server: McpServer) -> AsyncGenerator[TransportStreams]:
        if server.url is not None:
            async with self._reached(server, server.url) as streams:
                yield streams
        else:
            async with self._started(server) as streams:
                yield streams

    @asynccontextmanager
    async def _reached(self, server: McpServer, url: str) -> AsyncGenerator[TransportStreams]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {
            name: expand_variables(name, value, self.environment) for name, value in server.headers.items()
        }
        timeout = httpx2.Timeout(HTTP_SECONDS, read=READ_SECONDS)
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    @asynccontextmanager
    async def _started(self, server: McpServer) -> AsyncGenerator[TransportStreams]:
        if not server.argv:
            raise Unavailable(f"the MCP server {server.name} has neither a program nor an address")
        env = child_environment(self.environment, run_id=self.run_id, explicit=server.env)
        process = await spawn_process(Program(server.argv, env, self.cwd, self.grace))
        try:
            await process.begin()
            async with spoken(process, self._complaints(server.name)) as streams:
                yield streams
        finally:
            await run_uninterrupted(_ended(process))

    def _complaints(self, name: str) -> Callable[[bytes], Awaitable[None]]:
        """What the server says beside the protocol goes into the run's log."""
        lines = LineDecoder("stderr", 1_000)

        async def hear(chunk: bytes) -> None:
            for line in lines.feed(chunk):
                await self.emit(OutputLine("stderr", f"{name}: {line.text}", line.complete))

        return hear


async def _ended(process: Process) -> None:
    try:
        await process.end()
    finally:
        await process.streams.close()


@asynccontextmanager
async def spoken(
    process: Process, on_stderr: Callable[[bytes], Awaitable[None]]
) -> AsyncGenerator[TransportStreams]:
    """Messages over a process's pipes, one for each line."""
    from mcp.shared.message import SessionMessage

    heard_in, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, said_out = anyio.create_memory_object_stream[SessionMessage](0)
    async with heard_in, heard, said, said_out, anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, process, heard_in)
        tasks.start_soon(_speak, process, said_out, heard_in)
        tasks.start_soon(_overhear, process, on_stderr)
        yield heard, said
        tasks.cancel_scope.cancel()


async def _listen(process: Process, to: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    rest = b""
    async with to:
        while chunk := await process.streams.stdout.read(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LONGEST_MESSAGE:
                return
            for line in lines:
                if not line.strip():
                    continue
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError as error:  # a program that prints to stdout; the session passes over it
                    await to.send(error)
                else:
                    await to.send(message)


async def _speak(
    process: Process,
    messages: MemoryObjectReceiveStream[SessionMessage],
    heard_in: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    writer = process.streams.stdin
    async for message in messages:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            writer.write(text.encode() + b"\n")
            await writer.drain()
        except ConnectionError:  # it closed its ears: the session sees the end instead of waiting
            await heard_in.aclose()
            return


async def _overhear(process: Process, on_stderr: Callable[[bytes], Awaitable[None]]) -> None:
    while chunk := await process.streams.stderr.read(CHUNK_BYTES):
        await on_stderr(chunk)
