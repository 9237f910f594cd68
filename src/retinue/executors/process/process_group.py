"""Runs a program and everything it starts in one scope. Leaving the scope ends all of them.

Knows nothing of agents, lines or limits.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

import anyio

from retinue.core import OnProcessStart, ProcessIdentity, StreamName, read_chunks, read_fairly
from retinue.executors.process.program import Program

log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 16
"""Bytes of output that are read at once."""
QUIET_SECONDS = 0.25
"""When a program has ended, its output is already in the pipe. If nothing comes for this long, only a daemon
keeps the pipe open."""
DRAIN_SECONDS = 5.0
DRAIN_BYTES = 1 << 20
"""How long and how much to read of a daemon that never stops writing."""
END_DRAIN_SECONDS = 0.5
"""How long to read what is left in the pipes when the program was ended."""

T = TypeVar("T")
OnOutput = Callable[[StreamName, bytes], Awaitable[None]]


class ProcessStreams(Protocol):
    """The three streams of one program."""

    @property
    def stdin(self) -> asyncio.StreamWriter: ...
    @property
    def stdout(self) -> asyncio.StreamReader: ...
    @property
    def stderr(self) -> asyncio.StreamReader: ...
    async def close(self) -> None:
        """Close the streams, once the program is ending."""


class Process(Protocol):
    """One program, which can be ended with everything it started."""

    @property
    def streams(self) -> ProcessStreams: ...

    async def begin(self) -> ProcessIdentity:
        """Start the program."""
        ...

    async def exit_code(self) -> int:
        """Wait until the program exits. A signal is a negative exit code."""
        ...

    async def end(self) -> set[ProcessIdentity]:
        """End the program and everything it started. Returns the processes that could not be ended."""
        ...


async def spawn_process(program: Program) -> Process:
    """Prepare a program in the most reliable way that the platform offers. `begin` starts it."""
    if sys.platform == "linux":
        from retinue.executors.process.reaped_process import ReapedProcess

        return await ReapedProcess.spawn(program)
    from retinue.executors.process.portable_process import PortableProcess  # needs psutil

    return await PortableProcess.spawn(program)


async def ignore_start(identity: ProcessIdentity) -> None:
    """Record nothing, for programs that need not be found after a crash."""


class ProcessGroup:
    """A running program with everything it started."""

    identity: ProcessIdentity
    survivors: frozenset[ProcessIdentity] = frozenset()
    """The processes that could not be ended; set at the end of the scope."""

    def __init__(self, process: Process, stdin: bytes | None, on_output: OnOutput) -> None:
        self._process = process
        self._stdin = stdin
        self._on_output = on_output
        self._readers: set[asyncio.Task[None]] = set()
        self._others: set[asyncio.Task[Any]] = set()
        self._exit: asyncio.Task[int] | None = None
        self._undelivered = 0
        """Bytes that were read and that `on_output` has not finished with."""
        self._received = 0

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        program: Program,
        *,
        stdin: bytes | None,
        on_output: OnOutput,
        on_start: OnProcessStart = ignore_start,
        spawn: Callable[[Program], Awaitable[Process]] = spawn_process,
    ) -> AsyncGenerator[ProcessGroup]:
        """Run the program and give each chunk of its output to `on_output`.

        Writes `stdin` to the program and closes its stdin. If `stdin` is None, it stays open and the caller
        writes to `group.stdin`.

        Calls `on_start` before it reads any output. Reads output until the whole tree has ended, so it also
        delivers what the program writes while it is being ended.
        """
        group = cls(await spawn(program), stdin, on_output)
        try:
            group.identity = await group._process.begin()
            await on_start(group.identity)
            group._start_streaming()
            yield group
        finally:
            await run_uninterrupted(group._end())
        group._raise_output_error()

    @property
    def stdin(self) -> asyncio.StreamWriter:
        return self._process.streams.stdin

    async def wait(self) -> int:
        """Return the exit code once the program has ended and its output was read.

        Raises what `on_output` raised. If the caller is cancelled, it may wait again.
        """
        if self._exit is None:
            self._exit = asyncio.ensure_future(self._process.exit_code())
            self._others.add(self._exit)
        exit_code = self._exit
        pending: set[asyncio.Task[Any]] = {exit_code, *self._readers}
        while not exit_code.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        await self._drain()
        self._raise_output_error()
        return exit_code.result()

    def _start_streaming(self) -> None:
        """Start to write stdin and to read both output streams."""
        streams = self._process.streams
        if self._stdin is not None:
            self._others.add(asyncio.ensure_future(self._write_stdin(self._stdin)))
        self._readers.add(asyncio.ensure_future(self._read("stdout", streams.stdout)))
        self._readers.add(asyncio.ensure_future(self._read("stderr", streams.stderr)))

    async def _write_stdin(self, data: bytes) -> None:
        """Write the data and close stdin."""
        writer = self._process.streams.stdin
        writer.transport.set_write_buffer_limits(high=0)  # `drain` then waits until all is written
        try:
            writer.write(data)
            await writer.drain()
        except ConnectionError:
            return  # a program may close its stdin before it has read everything
        except asyncio.CancelledError:
            if not writer.transport.is_closing():
                writer.transport.abort()
            raise
        writer.close()

    async def _read(self, name: StreamName, reader: asyncio.StreamReader) -> None:
        async for chunk in read_fairly(self._count(reader)):
            await self._on_output(name, chunk)
            self._undelivered -= len(chunk)

    async def _count(self, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
        """Yield the chunks of a stream and count them. Each may wait for its turn before it is delivered."""
        async for chunk in read_chunks(reader, CHUNK_BYTES):
            self._received += len(chunk)
            self._undelivered += len(chunk)
            yield chunk

    async def _drain(self) -> None:
        """Wait until the output has ended, or until only a daemon keeps the pipes open."""
        deadline = time.monotonic() + DRAIN_SECONDS
        most = self._received + DRAIN_BYTES
        before = -1
        while pending := {reader for reader in self._readers if not reader.done()}:
            quiet = self._received == before or time.monotonic() > deadline
            if self._received > most or (quiet and not self._undelivered):
                break
            before = self._received
            await asyncio.wait(pending, timeout=QUIET_SECONDS)

    def _raise_output_error(self) -> None:
        """Raise what `on_output` raised."""
        for reader in self._readers:
            if reader.done() and not reader.cancelled():
                reader.result()

    async def _end(self) -> None:
        """End the whole tree, deliver the rest of the output, and close the streams."""
        try:
            self.survivors = frozenset(await self._process.end())
            with suppress(TimeoutError):
                async with asyncio.timeout(END_DRAIN_SECONDS):
                    await self._drain()
        finally:
            tasks = self._readers | self._others
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._process.streams.close()
        if self.survivors:
            log.warning("%d processes could not be ended: %s", len(self.survivors), self.survivors)


async def run_uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, even if the caller is cancelled meanwhile; then raise the cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # callers may run in an anyio scope, which cancels again and again
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:  # asyncio cancels only once
                cancelled = error
    if cancelled:
        raise cancelled
    return task.result()
