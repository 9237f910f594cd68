"""Connects a container to this server with two named pipes (FIFOs) and a script that uses them.

An image contains nothing of ours and perhaps no Python, so the script needs only `sh` and `cat`. The run's
token stays outside: this side sends it to our server and then passes data on in both directions. Knows
nothing of MCP.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from retinue.executors.cli import RETINUE_SERVER, SOCKET_VARIABLE, TOKEN_VARIABLE, ReadyServer

BRIDGE_SCRIPT_PATH = "/usr/local/bin/retinue"
"""Where a container finds the script, so that `retinue child` means the same inside and outside."""
SCRIPT = """\
#!/bin/sh
# Passes stdin to the server that started this run, and prints its answers. One process at a time.
if ! (set -C; : > '{folder}/busy') 2>/dev/null; then
    echo 'retinue: another process of this run is already connected to the server' >&2
    exit 1
fi
exec 3<&0
cat <&3 > '{folder}/in' &
exec cat '{folder}/out'
"""
CHUNK_SIZE = 1 << 16


def create_fifo_bridge(folder: Path, env: Mapping[str, str]) -> FifoBridge | None:
    """Create the bridge of a run in a container.

    Returns None if the run has no connection to this server, or if containers cannot share our pipes.
    """
    if SOCKET_VARIABLE not in env or sys.platform != "linux":
        return None
    return FifoBridge(folder, env)


class FifoBridge:
    """The pipes and the script of one run.

    Programs in the container can change the folder and might put a symlink there. So once the run has begun,
    this class opens nothing in the folder by name.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        """`folder` is the run's own. `env` contains the address of our socket and the run's token."""
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
        """Our MCP server, as a CLI in the container starts it. Contains no secret."""
        return ReadyServer(name=RETINUE_SERVER, argv=(BRIDGE_SCRIPT_PATH, "child"))

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Serve connections from the container during the block."""
        with ExitStack() as scope:
            folder, inward, outward = (_pin(scope, self._pipes / name) for name in (".", "in", "out"))
            serving = asyncio.ensure_future(self._serve(folder, inward, outward))
            try:
                yield
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    async def _serve(self, folder: int, inward: int, outward: int) -> None:
        while True:
            with suppress(OSError):  # the connection to our server broke; the script sees its end
                await self._serve_connection(f"/proc/self/fd/{inward}", f"/proc/self/fd/{outward}")
            with suppress(OSError):
                os.unlink("busy", dir_fd=folder)

    async def _serve_connection(self, inward: str, outward: str) -> None:
        with ExitStack() as scope:
            source = _open(scope, inward, os.O_RDONLY)
            await _wait_readable(source)  # until the script has opened its end
            # Opened for reading too, because the script may not have opened its end yet.
            target = _open(scope, outward, os.O_RDWR)
            reader, writer = await asyncio.open_unix_connection(self._socket)
            scope.callback(writer.close)
            writer.write(f"{self._token}\n".encode())
            await _exchange(source, target, reader, writer)


def _pin(scope: ExitStack, path: Path) -> int:
    """Return a descriptor of what is at this path now, whatever replaces it later."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    scope.callback(os.close, descriptor)
    return descriptor


def _open(scope: ExitStack, path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    scope.callback(os.close, descriptor)
    return descriptor


async def _exchange(
    source: int, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass data on in both directions, until our server closes the connection."""
    sending = asyncio.ensure_future(_send_all(source, writer))
    try:
        while data := await reader.read(CHUNK_SIZE):
            await _write_all(target, data)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send_all(source: int, writer: asyncio.StreamWriter) -> None:
    while data := await _read_chunk(source):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _read_chunk(descriptor: int) -> bytes:
    while True:
        await _wait_readable(descriptor)
        with suppress(BlockingIOError):
            return os.read(descriptor, CHUNK_SIZE)


async def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            await _wait_writable(descriptor)


async def _wait_readable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def _wait_writable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(descriptor)
