"""Starting one process with three pipes, on asyncio's own machinery. Knows nothing of trees and keepers."""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from retinue.core import InternalError

REAP_SECONDS = 2.0


class _Streams(aio.SubprocessStreamProtocol):
    """Says when the process itself exits; asyncio's `wait` also waits for pipes that a daemon may hold."""

    def __init__(self) -> None:
        super().__init__(limit=1 << 16, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@dataclass(frozen=True, slots=True)
class Spawned:
    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    exited: asyncio.Event

    async def close(self) -> None:
        """Once the process is ending: reap it and close the pipes. One that does not end is killed."""
        with anyio.move_on_after(REAP_SECONDS):
            await self.exited.wait()
        self.transport.close()


async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    creation_flags: int = 0,
) -> Spawned:
    transport, streams = await asyncio.get_running_loop().subprocess_exec(
        _Streams,
        *argv,
        stdin=aio.PIPE,
        stdout=aio.PIPE,
        stderr=aio.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
        creationflags=creation_flags,
    )
    stdin, stdout, stderr = streams.stdin, streams.stdout, streams.stderr
    if stdin is None or stdout is None or stderr is None:
        raise InternalError("a process was started without its pipes")
    return Spawned(transport, stdin, stdout, stderr, streams.exited)
