"""Runs a program under a reaper (Linux). This is the Retinue server's side of `reaper.py`.

`ForkServer` starts the fork server and has it fork reapers. `ReapedProcess` talks to one reaper: it sends the
order, receives the reports and ends the program. Knows nothing of output or limits.
"""

from __future__ import annotations

import asyncio
import logging
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread

from retinue.core import InternalError, ProcessIdentity, ProgramFailed
from retinue.executors.process.caller import started_programs
from retinue.executors.process.environment import RUN_ID_VARIABLE
from retinue.executors.process.identity import identify, linux_identity
from retinue.executors.process.program import Program, secret_file_descriptor, start_error
from retinue.executors.process.reaper import KILL_SECONDS, REAPER_VARIABLE, Order

log = logging.getLogger(__name__)

REAPER_SCRIPT = Path(__file__).with_name("reaper.py")
FORK_SERVER_SECONDS = 2.0
"""How long to wait for a fork server that accepts no message or does not end."""
MARGIN_SECONDS = 2.0
"""How much longer than its own limits a reaper may take before the server ends the processes itself."""
STREAM_LIMIT = 1 << 14
"""Bytes of output that may wait to be read. The pipe holds as much again, then the program waits."""

ReaperReport = list[str]
"""The words of one line from the reaper."""


class ForkServer:
    """The fork server of this process.

    It starts with the first program. It ends with the last `shared` block, or with this process.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._scopes = 0

    @property
    def pid(self) -> int | None:
        """The process number of the fork server, if it is running."""
        return None if self._process is None else self._process.pid

    @contextmanager
    def shared(self) -> Generator[None]:
        """Keep one fork server for all programs that start in the block. Blocks may be nested."""
        self._scopes += 1
        try:
            yield
        finally:
            self._scopes -= 1
            if not self._scopes:
                self.close()

    def fork(self, descriptors: Sequence[int]) -> None:
        """Fork a reaper that gets copies of these descriptors. If the fork fails, the copies are closed."""
        try:
            self._send(descriptors)
        except OSError:  # the fork server was killed; its reapers are still running
            self._kill()
            self._send(descriptors)

    def close(self) -> None:
        """Tell the fork server to end, and wait a short time: it waits for its reapers first."""
        if self._socket is None or self._process is None:
            return
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(FORK_SERVER_SECONDS)
        self._socket = self._process = None

    def _send(self, descriptors: Sequence[int]) -> None:
        socket.send_fds(self._socket or self._start(), [b"k"], descriptors)

    def _start(self) -> socket.socket:
        """Start the fork server and return our end of its socket."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(FORK_SERVER_SECONDS)
        with theirs:
            # -I and -S leave out the user's paths and site-packages. It also gets no streams, and nothing of
            # our environment.
            self._process = subprocess.Popen(
                (sys.executable, "-I", "-S", str(REAPER_SCRIPT), str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={REAPER_VARIABLE: "1"},
                cwd="/",
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self._socket = ours
        return ours

    def _kill(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


fork_server = ForkServer()
"""The fork server that all programs of this process share."""


class ReapedProcess:
    """A program that runs under a reaper."""

    def __init__(
        self, program: Program, file: str, streams: Pipes, control: asyncio.Transport, reports: _Reports
    ) -> None:
        self.streams = streams
        self._program = program
        self._file = file
        self._control = control
        self._reports = reports
        self._known: tuple[ProcessIdentity, ...] = ()
        """The program and its reaper, in case the reaper cannot end the tree."""
        self._reaper = 0

    @classmethod
    async def spawn(cls, program: Program) -> ReapedProcess:
        """Fork the reaper. It starts nothing before `begin`; `end` ends it."""
        file = program.find_file()
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            control, reports = await loop.create_unix_connection(_Reports, sock=ours)
            try:
                streams = await Pipes.open(lambda pipes: fork_server.fork((theirs.fileno(), *pipes)))
            except BaseException:
                control.abort()
                raise
        return cls(program, file, streams, control, reports)

    async def begin(self) -> ProcessIdentity:
        """Start the program. Raises the reason if it cannot start."""
        program = self._program
        order: Order = (
            self._file,
            list(map(str, program.argv)),  # `marshal` rejects subclasses of `str`, such as a run id
            {str(name): str(value) for name, value in program.env.items()},
            str(program.cwd.absolute()),
            program.grace,
            [(secret_file_descriptor(position), data) for position, data in enumerate(program.secret_files)],
        )
        data = marshal.dumps(order)
        self._control.write(len(data).to_bytes(8, "little") + data)
        match await _wait_for_report(self._reports.first):
            case ["started", pid, ticks, reaper]:
                identity = linux_identity(int(pid), int(ticks))
                self._known = (identity, *filter(None, [identify(int(reaper))]))
                self._reaper = int(reaper)
                started_programs[self._reaper] = program.env.get(RUN_ID_VARIABLE, "")
                return identity
            case ["failed", step, number]:
                raise start_error(program.name, step, int(number))
            case report:
                raise InternalError(f"{program.name} was not started: its reaper reported {report}")

    async def exit_code(self) -> int:
        match await _wait_for_report(self._reports.exited):
            case [_, code]:
                return int(code)
            case report:
                raise ProgramFailed(f"{self._program.name} was lost: its reaper reported {report}")

    async def end(self) -> set[ProcessIdentity]:
        """End the program and everything it started. Returns the processes that could not be ended."""
        if not self._control.is_closing():
            self._control.write_eof()
        ended: ReaperReport | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._program.grace + KILL_SECONDS + MARGIN_SECONDS):
                ended = await _wait_for_report(self._reports.ended)
        self._control.abort()
        started_programs.pop(self._reaper, None)
        if ended is None:
            return await self._end_without_reaper()
        _, cpu_us, *survivors = ended
        log.debug("%s ended: with its reaper it took %.1f ms of CPU", self._program.name, int(cpu_us) / 1000)
        return {linux_identity(*map(int, survivor.split(":"))) for survivor in survivors}

    async def _end_without_reaper(self) -> set[ProcessIdentity]:
        """End the processes from here: the reaper was killed, or it was stopped and does not answer."""
        if not self._known:
            return set()
        # This is rare, and psutil takes 30 ms to import.
        from retinue.executors.process.portable_process import end_processes

        run_id = self._program.env.get(RUN_ID_VARIABLE)
        run_ids = [run_id] if run_id else []
        return await anyio.to_thread.run_sync(end_processes, self._known, run_ids, self._program.grace)


class _Reports(asyncio.Protocol):
    """Receives the reaper's reports. If the connection ends, the missing reports are None."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[ReaperReport | None] = loop.create_future()
        """Whether the program was started."""
        self.exited: asyncio.Future[ReaperReport | None] = loop.create_future()
        self.ended: asyncio.Future[ReaperReport | None] = loop.create_future()
        self._incomplete = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._incomplete = (self._incomplete + data).split(b"\n")
        for words in (line.decode().split() for line in lines):
            future = {"exited": self.exited, "ended": self.ended}.get(words[0], self.first)
            future.set_result(words)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.first, self.exited, self.ended):
            if not future.done():
                future.set_result(None)


async def _wait_for_report(future: asyncio.Future[ReaperReport | None]) -> ReaperReport | None:
    """Wait for a report. Unlike `await future`, a cancellation does not cancel the future."""
    await asyncio.wait({future})
    return future.result()


@dataclass(frozen=True, slots=True)
class Pipes:
    """Our ends of the three pipes to a process that another process starts."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    transports: tuple[asyncio.BaseTransport, ...]

    @classmethod
    async def open(cls, hand_over: Callable[[Sequence[int]], None]) -> Pipes:
        """Open the pipes. `hand_over` gets the other ends (stdin, stdout, stderr), which are then closed."""
        (stdin, ours_in), (ours_out, stdout), (ours_err, stderr) = _open_pipe(), _open_pipe(), _open_pipe()
        transports: list[asyncio.BaseTransport] = []
        try:
            with stdin, stdout, stderr:
                hand_over([each.fileno() for each in (stdin, stdout, stderr)])
            writer = await _connect_writer(ours_in, transports)
            out = await _connect_reader(ours_out, transports)
            err = await _connect_reader(ours_err, transports)
        except BaseException:
            _close_all(transports)
            for pipe in (ours_in, ours_out, ours_err)[len(transports) :]:
                pipe.close()  # the transports close the others
            raise
        return cls(writer, out, err, tuple(transports))

    async def close(self) -> None:
        """Close our ends. Input that the program has not read by now is dropped."""
        if not self.stdin.is_closing():
            self.stdin.transport.abort()
        _close_all(self.transports)


def _open_pipe() -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


async def _connect_writer(pipe: BinaryIO, transports: list[asyncio.BaseTransport]) -> asyncio.StreamWriter:
    """Return a writer for our end of a pipe, and add its transport to `transports`."""
    loop = asyncio.get_running_loop()
    unused = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(unused, loop=loop)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
    transports.append(transport)
    return asyncio.StreamWriter(transport, protocol, unused, loop)


async def _connect_reader(pipe: BinaryIO, transports: list[asyncio.BaseTransport]) -> asyncio.StreamReader:
    """Return a reader for our end of a pipe, and add its transport to `transports`."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=STREAM_LIMIT, loop=loop)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), pipe)
    transports.append(transport)
    return reader


def _close_all(transports: Sequence[asyncio.BaseTransport]) -> None:
    for transport in transports:
        transport.close()
