"""A program under a keeper, on Linux: the server's side of the socket. Knows nothing of output or limits."""

from __future__ import annotations

import asyncio
import logging
import marshal
import socket

import anyio
import anyio.to_thread

from retinue.core import InternalError, ProcessIdentity, ProgramFailed
from retinue.executors.process.environment import MARK
from retinue.executors.process.identity import identify, linux_identity
from retinue.executors.process.pipes import Pipes
from retinue.executors.process.program import Program, unstartable
from retinue.executors.process.reaper import KILL_SECONDS, Order
from retinue.executors.process.reaper_client import reapers

log = logging.getLogger(__name__)

MARGIN_SECONDS = 2.0
"""How much longer than its own limits a keeper may take before it is taken for broken."""

Words = list[str]


class _Reports(asyncio.Protocol):
    """What the keeper has said, each report by its first word; None for what it can no longer say."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[Words | None] = loop.create_future()
        self.exited: asyncio.Future[Words | None] = loop.create_future()
        self.ended: asyncio.Future[Words | None] = loop.create_future()
        self._unread = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for words in (line.decode().split() for line in lines):
            future = {"exited": self.exited, "ended": self.ended}.get(words[0], self.first)
            future.set_result(words)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.first, self.exited, self.ended):
            if not future.done():
                future.set_result(None)


class KeptProcess:
    def __init__(
        self, program: Program, file: str, streams: Pipes, control: asyncio.Transport, reports: _Reports
    ) -> None:
        self.streams = streams
        self._program = program
        self._file = file
        self._control = control
        self._reports = reports
        self._known: tuple[ProcessIdentity, ...] = ()

    @classmethod
    async def spawn(cls, program: Program) -> KeptProcess:
        """Have a keeper forked. Until `begin` gives it its order it runs nothing, and `end` ends it."""
        file = program.file()
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            control, reports = await loop.create_unix_connection(_Reports, sock=ours)
            try:
                streams = await Pipes.open(lambda pipes: reapers.fork((theirs.fileno(), *pipes)))
            except BaseException:
                control.abort()
                raise
        return cls(program, file, streams, control, reports)

    async def begin(self) -> ProcessIdentity:
        """Have the program started; what prevents that is raised."""
        program = self._program
        order: Order = (
            self._file,
            list(map(str, program.argv)),  # `marshal` takes no subclass of `str`, such as a run's id
            {str(name): str(value) for name, value in program.env.items()},
            str(program.cwd.absolute()),
            program.grace,
            list(program.handed),
        )
        data = marshal.dumps(order)
        self._control.write(len(data).to_bytes(8, "little") + data)
        match await _outcome(self._reports.first):
            case ["started", pid, ticks, keeper]:
                identity = linux_identity(int(pid), int(ticks))
                self._known = (identity, *filter(None, [identify(int(keeper))]))
                return identity
            case ["failed", step, number]:
                raise unstartable(program.name, step, int(number))
            case said:
                raise InternalError(f"{program.name} was not started: its keeper said {said}")

    async def exit_code(self) -> int:
        match await _outcome(self._reports.exited):
            case [_, code]:
                return int(code)
            case said:
                raise ProgramFailed(f"{self._program.name} was lost: its keeper said {said}")

    async def end(self) -> set[ProcessIdentity]:
        """End the program and all it started; who survived it."""
        if not self._control.is_closing():
            self._control.write_eof()
        ended: Words | None = None
        with anyio.move_on_after(self._program.grace + KILL_SECONDS + MARGIN_SECONDS):
            ended = await _outcome(self._reports.ended)
        self._control.abort()
        if ended is not None:
            _, cpu_us, *survivors = ended
            log.debug(
                "%s ended: with its keeper it took %.1f ms of CPU", self._program.name, int(cpu_us) / 1000
            )
            return {linux_identity(*map(int, survivor.split(":"))) for survivor in survivors}
        return await self._end_without_keeper()

    async def _end_without_keeper(self) -> set[ProcessIdentity]:
        """The keeper is stopped, perhaps, and still the orphans' parent."""
        if not self._known:
            return set()
        from retinue.executors.process.process_tree import (
            end_processes,  # psutil costs 30 ms, and this is rare
        )

        program = self._program
        run_ids = [run_id] if (run_id := program.env.get(MARK)) else []
        return await anyio.to_thread.run_sync(end_processes, self._known, run_ids, program.grace)


async def _outcome(future: asyncio.Future[Words | None]) -> Words | None:
    """The result; unlike `await future`, being canceled while waiting does not cancel the future."""
    await asyncio.wait({future})
    return future.result()
