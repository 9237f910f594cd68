"""The way from a container to us: two named pipes, and a small script inside that speaks through them.

An image has nothing of ours, no Python perhaps, so the script needs `sh` and `cat` alone. The run's token
stays outside: on this side we show it, and pass on what comes in either direction. Knows nothing of MCP.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import SocketStream

from retinue.executors.cli import RETINUE_SERVER, SOCKET_VARIABLE, TOKEN_VARIABLE, ReadyServer

INSIDE = "/usr/local/bin/retinue"
"""Where the script is found in a container, so that `retinue child` means the same there as here."""
SCRIPT = """\
#!/bin/sh
# What was started says it here, and the server that started it hears it: one visitor at a time.
if ! (set -C; : > '{folder}/busy') 2>/dev/null; then
    echo 'retinue: another process of this run is speaking to the server' >&2
    exit 1
fi
exec 3<&0
cat <&3 > '{folder}/in' &
exec cat '{folder}/out'
"""
CHUNK = 1 << 16


class PipeDoor:
    """Open while its run lasts.

    The folder can be changed inside, so nothing in it is opened by its name once the run has begun: a link
    that was planted there would lead us anywhere.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        """`folder` is the run's own; `env` names the socket and has the token."""
        pipes = folder / "child"
        pipes.mkdir(mode=0o700)
        for name in ("in", "out"):
            os.mkfifo(pipes / name, 0o600)
        self.script = folder / "retinue"
        self.script.write_text(SCRIPT.format(folder=pipes), encoding="utf-8")
        self.script.chmod(0o755)
        self._pipes = pipes
        self._socket, self._token = env[SOCKET_VARIABLE], env[TOKEN_VARIABLE]

    @property
    def server(self) -> ReadyServer:
        """Ours, as a CLI inside starts it. No secret is in it."""
        return ReadyServer(name=RETINUE_SERVER, argv=(INSIDE, "child"))

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        with ExitStack() as scope:
            folder, inward, outward = (_held(scope, self._pipes / name) for name in (".", "in", "out"))
            serving = asyncio.ensure_future(self._serve(folder, inward, outward))
            try:
                yield
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    async def _serve(self, folder: int, inward: int, outward: int) -> None:
        while True:
            with suppress(OSError):  # the line to our server broke: the visitor sees that it has ended
                await self._visit(f"/proc/self/fd/{inward}", f"/proc/self/fd/{outward}")
            with suppress(OSError):
                os.unlink("busy", dir_fd=folder)

    async def _visit(self, inward: str, outward: str) -> None:
        with ExitStack() as scope:
            hears = _opened(scope, inward, os.O_RDONLY)
            await anyio.wait_readable(hears)  # not before somebody has opened the other end
            # For reading too, or it could not be opened before the script has opened its end.
            says = _opened(scope, outward, os.O_RDWR)
            async with await anyio.connect_unix(self._socket) as line:
                await line.send(f"{self._token}\n".encode())
                await _carry(hears, line, says)


def door_of(folder: Path, env: Mapping[str, str]) -> PipeDoor | None:
    """For a run in a container; None where there is nothing to reach, or no pipes that a container shares."""
    if SOCKET_VARIABLE not in env or sys.platform != "linux":
        return None
    return PipeDoor(folder, env)


def _held(scope: ExitStack, path: Path) -> int:
    """What lies there now, whatever is put in its place later."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    scope.callback(os.close, descriptor)
    return descriptor


def _opened(scope: ExitStack, path: str, how: int) -> int:
    descriptor = os.open(path, how | os.O_NONBLOCK)
    scope.callback(os.close, descriptor)
    return descriptor


async def _carry(inward: int, line: SocketStream, outward: int) -> None:
    """Until our server has said all it has to say."""
    asking = asyncio.ensure_future(_ask(inward, line))
    try:
        async for data in line:
            await _write(outward, data)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _ask(inward: int, line: SocketStream) -> None:
    while data := await _read(inward):
        await line.send(data)
    await line.send_eof()


async def _read(descriptor: int) -> bytes:
    while True:
        await anyio.wait_readable(descriptor)
        with suppress(BlockingIOError):
            return os.read(descriptor, CHUNK)


async def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            await anyio.wait_writable(descriptor)
