"""A program and everything it starts, as one scope: leaving the scope, for whatever reason, ends them all.

Knows nothing of agents, lines or limits.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import anyio

from retinue.core import OnProcessStart, ProcessIdentity, StreamName
from retinue.executors.process.program import Program

log = logging.getLogger(__name__)

CHUNK = 1 << 16
QUIET_SECONDS = 0.25
"""What an ended program wrote is in the pipe already: if nothing comes for this long, a daemon holds it."""
DRAIN_SECONDS = 5.0
"""A daemon that writes on and on is listened to for this long."""

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
        """Once the program is ending."""


class Process(Protocol):
    """One program and the means to end its whole tree."""

    @property
    def streams(self) -> ProcessStreams: ...

    async def begin(self) -> ProcessIdentity: ...
    async def exit_code(self) -> int: ...
    async def end(self) -> set[ProcessIdentity]: ...


async def spawn_process(program: Program) -> Process:
    """The strongest that the platform has. Each import is for its own platform only."""
    if sys.platform == "linux":
        from retinue.executors.process.reaped_process import KeptProcess

        return await KeptProcess.spawn(program)
    from retinue.executors.process.portable_process import WalkedProcess

    return await WalkedProcess.spawn(program)


async def unrecorded(identity: ProcessIdentity) -> None:
    """For programs that need not be found again."""


class ProcessGroup:
    identity: ProcessIdentity
    survivors: frozenset[ProcessIdentity] = frozenset()
    """After the scope: those that could not be ended."""

    def __init__(self, process: Process, stdin: bytes | None, on_output: OnOutput) -> None:
        self._process = process
        self._stdin = stdin
        self._on_output = on_output
        self._pumps: set[asyncio.Task[None]] = set()
        self._others: set[asyncio.Task[Any]] = set()
        self._exit: asyncio.Task[int] | None = None
        self._delivering = 0
        self._received = 0

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        program: Program,
        *,
        stdin: bytes | None,
        on_output: OnOutput,
        on_start: OnProcessStart = unrecorded,
        spawn: Callable[[Program], Awaitable[Process]] = spawn_process,
    ) -> AsyncGenerator[ProcessGroup]:
        """Run the program, feed it `stdin` and close it, and give each chunk of output to `on_output`.

        With None its stdin stays open, and is the caller's to write to.

        The program is recorded by `on_start` before anything it says is heard. It is heard as long as the
        scope lasts, and while the tree is being ended: last words are words too.
        """
        group = cls(await spawn(program), stdin, on_output)
        try:
            group.identity = await group._process.begin()
            await on_start(group.identity)
            group._listen()
            yield group
        finally:
            await uninterrupted(group._end())
        group._complain()

    @property
    def stdin(self) -> asyncio.StreamWriter:
        return self._process.streams.stdin

    async def wait(self) -> int:
        """The exit code, when the program has ended and its output was read; or what `on_output` raised.

        Whoever gave up waiting may wait again.
        """
        if self._exit is None:
            self._exit = asyncio.ensure_future(self._process.exit_code())
            self._others.add(self._exit)
        exit_code = self._exit
        pending: set[asyncio.Task[Any]] = {exit_code, *self._pumps}
        while not exit_code.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        await self._drain()
        self._complain()
        return exit_code.result()

    def _listen(self) -> None:
        streams = self._process.streams
        if self._stdin is not None:
            self._others.add(asyncio.ensure_future(self._feed(self._stdin)))
        self._pumps.add(asyncio.ensure_future(self._pump("stdout", streams.stdout)))
        self._pumps.add(asyncio.ensure_future(self._pump("stderr", streams.stderr)))

    async def _feed(self, data: bytes) -> None:
        writer = self._process.streams.stdin
        writer.transport.set_write_buffer_limits(high=0)  # so that drained means written
        try:
            writer.write(data)
            await writer.drain()
        except ConnectionError:
            return  # it closed its stdin without reading everything, as it may
        except asyncio.CancelledError:
            if not writer.transport.is_closing():
                writer.transport.abort()
            raise
        writer.close()

    async def _pump(self, name: StreamName, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(CHUNK):
            self._received += len(chunk)
            self._delivering += 1
            try:
                await self._on_output(name, chunk)
            finally:
                self._delivering -= 1

    async def _drain(self) -> None:
        """Read what is left, until the pipes end or only a daemon holds them open."""
        deadline = time.monotonic() + DRAIN_SECONDS
        before = -1
        while pending := {pump for pump in self._pumps if not pump.done()}:
            quiet = self._received == before or time.monotonic() > deadline
            if quiet and not self._delivering:
                break
            before = self._received
            await asyncio.wait(pending, timeout=QUIET_SECONDS)

    def _complain(self) -> None:
        """Raise what `on_output` raised."""
        for pump in self._pumps:
            if pump.done() and not pump.cancelled():
                pump.result()

    async def _end(self) -> None:
        try:
            self.survivors = frozenset(await self._process.end())
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._drain()
        finally:
            tasks = self._pumps | self._others
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._process.streams.close()
        if self.survivors:
            log.warning("%d processes could not be ended: %s", len(self.survivors), self.survivors)


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Do it to the end; if the task is canceled meanwhile, be canceled afterwards."""
    task = asyncio.ensure_future(work)
    canceled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # from anyio's cancellation, which repeats itself
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:  # asyncio's own, which comes once
                canceled = error
    if canceled:
        raise canceled
    return task.result()
