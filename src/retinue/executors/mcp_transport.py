"""Connects to an agent's MCP servers: starts their programs or opens HTTP connections.

A program starts like any other program of a run: with allowed variables only, the run id, and a reaper that
ends it with everything it started. The MCP SDK's own stdio transport would end only the program's process
group. The SDK works with anyio streams, so this module does too. Does not interpret the messages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from retinue.core import (
    Emit,
    McpServer,
    OutputLine,
    ReadingEnd,
    StreamEnd,
    Unavailable,
    read_chunks,
    read_fairly,
)
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
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

MAX_MESSAGE_BYTES = 8 << 20
"""A server that sends a longer message is disconnected."""
MAX_STREAM_BYTES = 64 << 20
"""A longer stream of events over HTTP is cut."""
MAX_OPEN_REQUESTS = 100
"""Requests of a server that may wait for our answer at the same time. A server with more is disconnected."""
HTTP_SECONDS = 30.0
READ_SECONDS = 300.0
"""How long to wait for data: a server may keep a stream open for a long time without sending anything."""


@dataclass(frozen=True, slots=True)
class McpConnector:
    """Opens the connections of one run to its MCP servers."""

    run_id: str
    cwd: Path
    emit: Emit
    environment: Mapping[str, str] = field(repr=False)
    """The Retinue server's own environment; a program gets only the allowed variables of it."""
    grace: float = 1.0

    @asynccontextmanager
    async def connect(self, server: McpServer) -> AsyncGenerator[TransportStreams]:
        """Yield the streams of a connection to a server. The end of the block closes it."""
        if server.url is not None:
            async with self._connect_http(server, server.url) as streams:
                yield limit_requests(streams)
        else:
            async with self._start_program(server) as streams:
                yield limit_requests(streams)

    @asynccontextmanager
    async def _connect_http(self, server: McpServer, url: str) -> AsyncGenerator[TransportStreams]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from retinue.web import bounded_transport

        headers = {
            name: expand_variables(name, value, self.environment) for name, value in server.headers.items()
        }
        timeout = httpx2.Timeout(HTTP_SECONDS, read=READ_SECONDS)
        transport = bounded_transport(max_body_bytes=MAX_MESSAGE_BYTES, max_stream_bytes=MAX_STREAM_BYTES)
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout, transport=transport) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    @asynccontextmanager
    async def _start_program(self, server: McpServer) -> AsyncGenerator[TransportStreams]:
        """Start a server's program and yield its message streams."""
        if not server.argv:
            raise Unavailable(
                f"the MCP server {server.name} has neither a program nor an address",
                hint="set `command` or `url` in the agent's file",
            )
        env = child_environment(self.environment, run_id=self.run_id, explicit=server.env)
        process = await spawn_process(Program(server.argv, env, self.cwd, self.grace))
        try:
            await process.begin()
            async with message_streams(process, self._log_stderr(server.name)) as streams:
                yield streams
        finally:
            await run_uninterrupted(_end(process))

    def _log_stderr(self, name: str) -> Callable[[bytes], Awaitable[None]]:
        """Return a function that writes the server's stderr to the run's log."""
        lines = LineDecoder("stderr", 1_000)
        begins_line = True

        async def log_chunk(chunk: bytes) -> None:
            nonlocal begins_line
            for line in lines.feed(chunk):
                text = line.text.replace("\n", f"\n{name}: ")
                text = f"{name}: {text}" if begins_line else text
                begins_line = line.complete
                await self.emit(OutputLine("stderr", text, line.complete))

        return log_chunk


def limit_requests(streams: TransportStreams) -> TransportStreams:
    """Return the streams of a connection that ends if the server has too many requests open."""
    incoming, outgoing = streams
    limited = LimitedIncoming(incoming)
    return limited, AnswerCounting(outgoing, limited)


class LimitedIncoming(ReadingEnd["SessionMessage | Exception"]):
    """The messages of a server. Ends if too many of its requests wait for an answer."""

    def __init__(self, incoming: ReadStream[SessionMessage | Exception]) -> None:
        super().__init__(incoming)
        self._incoming = incoming
        self._open = 0

    def note_answer(self) -> None:
        self._open -= 1

    async def receive(self) -> SessionMessage | Exception:
        from mcp_types import JSONRPCRequest

        received = await self._incoming.receive()
        if not isinstance(received, Exception) and isinstance(received.message, JSONRPCRequest):
            self._open += 1
            if self._open > MAX_OPEN_REQUESTS:
                await self._incoming.aclose()
                raise anyio.EndOfStream
        return received


class AnswerCounting(StreamEnd):
    """Our messages to a server. Tells the other direction about each answer."""

    def __init__(self, outgoing: WriteStream[SessionMessage], incoming: LimitedIncoming) -> None:
        super().__init__(outgoing)
        self._outgoing = outgoing
        self._incoming = incoming

    async def send(self, item: SessionMessage, /) -> None:
        from mcp_types import JSONRPCError, JSONRPCResponse

        await self._outgoing.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._incoming.note_answer()


async def _end(process: Process) -> None:
    try:
        await process.end()
    finally:
        await process.streams.close()


@asynccontextmanager
async def message_streams(
    process: Process, on_stderr: Callable[[bytes], Awaitable[None]]
) -> AsyncGenerator[TransportStreams]:
    """Exchange JSON-RPC messages over the pipes of a process, one message per line."""
    from mcp.shared.message import SessionMessage

    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
    async with incoming_send, incoming, outgoing, outgoing_receive, anyio.create_task_group() as tasks:
        tasks.start_soon(_receive_messages, process, incoming_send)
        tasks.start_soon(_send_messages, process, outgoing_receive, incoming_send)
        tasks.start_soon(_read_stderr, process, on_stderr)
        yield incoming, outgoing
        tasks.cancel_scope.cancel()


async def _receive_messages(
    process: Process,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Read the program's messages from its stdout, one per line. Skips lines that are not messages."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    incomplete: list[bytes] = []
    size = 0
    async with incoming:
        async for chunk in read_fairly(read_chunks(process.streams.stdout, CHUNK_BYTES)):
            first, *lines = chunk.split(b"\n")
            incomplete.append(first)
            size += len(first)
            if size > MAX_MESSAGE_BYTES:
                return
            if not lines:
                continue
            lines.insert(0, b"".join(incomplete))
            incomplete = [lines.pop()]
            size = len(incomplete[0])
            for line in lines:
                if not line.lstrip().startswith(b"{"):
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue
                await incoming.send(SessionMessage(message))


async def _send_messages(
    process: Process,
    messages: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Write the session's messages to the program's stdin."""
    writer = process.streams.stdin
    async for message in messages:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            writer.write(text.encode() + b"\n")
            await writer.drain()
        except ConnectionError:  # it closed its stdin: end the session instead of waiting for an answer
            await incoming.aclose()
            return


async def _read_stderr(process: Process, on_stderr: Callable[[bytes], Awaitable[None]]) -> None:
    async for chunk in read_fairly(read_chunks(process.streams.stderr, CHUNK_BYTES)):
        await on_stderr(chunk)
