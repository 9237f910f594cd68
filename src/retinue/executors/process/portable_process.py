"""Runs a program without a reaper (macOS, Windows), and ends processes by searching the process table.

`end_processes` finds the processes of a run by their parents and by the run id in their environment. It also
serves Linux when a reaper was killed, and the recovery of runs after a server has died.

This is weaker than a reaper. It misses a daemon that cleared its environment, and a tree that forks faster
than the process table can be read. If the server dies, the processes live until the next server recovers its
runs. Knows nothing of output or limits.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import anyio.to_thread
import psutil

from retinue.core import InternalError, ProcessIdentity
from retinue.executors.process.caller import started_programs
from retinue.executors.process.environment import RUN_ID_VARIABLE
from retinue.executors.process.identity import identify, is_alive
from retinue.executors.process.program import Program, start_error

EXIT_SECONDS = 2.0
"""How long to wait for an ended process before asyncio kills it."""
KILL_SECONDS = 5.0
CREATION_FLAGS = subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0

ProcessAction = tuple[str, Callable[[psutil.Process], None]]
"""The name of a signal, and the psutil method that replaces it on Windows."""
TERM: ProcessAction = ("SIGTERM", psutil.Process.terminate)
STOP: ProcessAction = ("SIGSTOP", psutil.Process.suspend)
KILL: ProcessAction = ("SIGKILL", psutil.Process.kill)


class PortableProcess:
    """A program that runs without a reaper."""

    def __init__(self, program: Program, streams: SpawnedStreams) -> None:
        self.streams = streams
        self._program = program
        self._identity: ProcessIdentity | None = None

    @classmethod
    async def spawn(cls, program: Program) -> PortableProcess:
        argv = (program.find_file(), *program.argv[1:])
        try:
            streams = await SpawnedStreams.spawn(argv, program)
        except OSError as error:
            step = "directory" if error.errno == errno.ENOTDIR else "program"
            raise start_error(program.name, step, error.errno or errno.EIO) from None
        return cls(program, streams)

    async def begin(self) -> ProcessIdentity:
        pid = self.streams.transport.get_pid()
        self._identity = identify(pid) or ProcessIdentity(pid, "over")  # "over" equals no living process
        started_programs[pid] = self._program.env.get(RUN_ID_VARIABLE, "")
        return self._identity

    async def exit_code(self) -> int:
        await self.streams.exited.wait()
        return self.streams.transport.get_returncode() or 0

    async def end(self) -> set[ProcessIdentity]:
        known = [self._identity] if self._identity else []
        run_id = self._program.env.get(RUN_ID_VARIABLE)
        run_ids = [run_id] if run_id else []
        started_programs.pop(self.streams.transport.get_pid(), None)
        return await anyio.to_thread.run_sync(end_processes, known, run_ids, self._program.grace)


@dataclass(frozen=True, slots=True)
class SpawnedStreams:
    """The three streams of a process that asyncio started."""

    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    exited: asyncio.Event

    @classmethod
    async def spawn(cls, argv: tuple[str, ...], program: Program) -> SpawnedStreams:
        transport, protocol = await asyncio.get_running_loop().subprocess_exec(
            _ExitProtocol,
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(program.env),
            cwd=program.cwd,
            start_new_session=True,
            creationflags=CREATION_FLAGS,
        )
        stdin, stdout, stderr = protocol.stdin, protocol.stdout, protocol.stderr
        if stdin is None or stdout is None or stderr is None:
            raise InternalError("asyncio started a process without its pipes")
        return cls(transport, stdin, stdout, stderr, protocol.exited)

    async def close(self) -> None:
        """Collect the ending process and close its pipes. asyncio kills it if it does not end in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self.exited.wait()
        self.transport.close()


class _ExitProtocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Sets `exited` when the process exits.

    asyncio's own `wait` also waits until the pipes are closed, and a daemon may keep them open.
    """

    def __init__(self) -> None:
        super().__init__(limit=1 << 16, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@dataclass(frozen=True, slots=True)
class FoundProcesses:
    """The result of a search in the process table."""

    living: frozenset[ProcessIdentity]
    groups: frozenset[int]
    """The process groups of the processes that were found, including those that ended meanwhile: other
    members of their group may be alive."""

    def __bool__(self) -> bool:
        return bool(self.living or self.groups)


def end_processes(
    known: Collection[ProcessIdentity], run_ids: Collection[str], grace: float
) -> set[ProcessIdentity]:
    """End the known processes, all their descendants, and all processes of these runs.

    Sends SIGTERM, waits for `grace` seconds and sends SIGKILL. Returns the processes that survived. Blocks;
    run it in a thread.

    Once a parent has ended, its children cannot be found any more. So every process is stopped before any is
    killed: a stopped process cannot fork, and no parent ends before its children were seen.
    """
    found = find_processes(known, run_ids)
    seen = {*known, *found.living}
    _signal(found, TERM)
    _wait_until_gone(found, grace)
    deadline = time.monotonic() + KILL_SECONDS
    while (found := find_processes(seen, run_ids)) and time.monotonic() < deadline:
        stopped = set[ProcessIdentity]()
        while found.living - stopped and time.monotonic() < deadline:
            _signal(found, STOP)
            stopped |= found.living
            seen |= found.living
            found = find_processes(seen, run_ids)
        _signal(found, KILL)
        _wait_until_gone(found, 0.5)
    return set(found.living)


def find_processes(known: Collection[ProcessIdentity], run_ids: Collection[str]) -> FoundProcesses:
    """Find the known processes that are alive, their descendants, and all processes of these runs.

    Never returns this process or its ancestors.
    """
    children: dict[int, list[int]] = {}
    marked: dict[int, int | None] = {}
    for process in psutil.process_iter():
        try:
            children.setdefault(process.ppid(), []).append(process.pid)
            if run_ids and process.environ().get(RUN_ID_VARIABLE) in run_ids:
                marked[process.pid] = _process_group(process.pid)  # read now: it may end at any moment
        except psutil.Error:
            continue  # it ended, or belongs to another user
    roots = [*marked, *(identity.pid for identity in known if is_alive(identity))]
    tree = set(_with_descendants(roots, children))
    groups = {group for pid in tree if (group := marked.get(pid) or _process_group(pid))}
    living = {identity for pid in tree if (identity := identify(pid))}
    return FoundProcesses(frozenset(living), frozenset(groups))


def _with_descendants(roots: Collection[int], children: Mapping[int, Collection[int]]) -> Iterator[int]:
    seen = set(_own_ancestry())
    pending = list(roots)
    while pending:
        pid = pending.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            pending.extend(children.get(pid, ()))


def _own_ancestry() -> Iterator[int]:
    """Yield this process and its ancestors. If a run started this server, they have that run's id."""
    yield os.getpid()
    yield from (parent.pid for parent in psutil.Process().parents())


def _process_group(pid: int) -> int | None:
    """Return the process group of a process; None if it is our own group or the system has no groups."""
    if sys.platform == "win32":
        return None
    try:
        group = os.getpgid(pid)
    except OSError:
        return None
    return None if group == os.getpgrp() else group


def _signal(found: FoundProcesses, action: ProcessAction) -> None:
    """Signal whole groups at once, so that no member can fork in between. Signal the others one by one."""
    name, method = action
    if sys.platform != "win32":
        for group in found.groups:
            try:
                os.killpg(group, signal.Signals[name])
            except OSError:
                continue  # already gone, or owned by another user
    for identity in found.living:
        try:
            process = psutil.Process(identity.pid)
            if is_alive(identity) and _process_group(identity.pid) not in found.groups:
                method(process)  # psutil checks once more that the number was not reused
        except psutil.Error:
            continue


def _wait_until_gone(found: FoundProcesses, seconds: float) -> None:
    """Poll until the processes are gone or the time is over. Only their parent could wait without polling."""
    deadline = time.monotonic() + seconds
    while any(map(is_alive, found.living)) and time.monotonic() < deadline:
        time.sleep(0.01)
