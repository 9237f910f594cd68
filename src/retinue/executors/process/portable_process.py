"""A program without a keeper, where there is no subreaper (macOS, Windows): its tree is found by looking.

Weaker than a keeper: a daemon that hides its environment is not found, nor a family that dies and forks
faster than the process table can be read; and after the server's death nothing happens until the next
start's sweep. Knows nothing of output or limits.
"""

from __future__ import annotations

import errno
import subprocess
import sys

import anyio.to_thread

from retinue.core import ProcessIdentity
from retinue.executors.process.environment import MARK
from retinue.executors.process.identity import identify
from retinue.executors.process.process_tree import end_processes
from retinue.executors.process.program import Program, unstartable
from retinue.executors.process.spawn import Spawned, spawn

NEW_GROUP = subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0


class WalkedProcess:
    def __init__(self, program: Program, streams: Spawned) -> None:
        self.streams = streams
        self._program = program
        self._identity: ProcessIdentity | None = None

    @classmethod
    async def spawn(cls, program: Program) -> WalkedProcess:
        argv = (program.file(), *program.argv[1:])
        try:
            streams = await spawn(argv, env=program.env, cwd=program.cwd, creation_flags=NEW_GROUP)
        except OSError as error:
            step = "directory" if error.errno == errno.ENOTDIR else "program"
            raise unstartable(program.name, step, error.errno or errno.EIO) from None
        return cls(program, streams)

    async def begin(self) -> ProcessIdentity:
        pid = self.streams.transport.get_pid()
        self._identity = identify(pid) or ProcessIdentity(pid, "over")  # which equals no living process
        return self._identity

    async def exit_code(self) -> int:
        await self.streams.exited.wait()
        return self.streams.transport.get_returncode() or 0

    async def end(self) -> set[ProcessIdentity]:
        known = [self._identity] if self._identity else []
        run_ids = [run_id] if (run_id := self._program.env.get(MARK)) else []
        return await anyio.to_thread.run_sync(end_processes, known, run_ids, self._program.grace)
