"""The pipes between a container and the server pass data on, and planted links lead nowhere (P6)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio.abc import Process, SocketStream

from retinue.executors.cli import SOCKET_VARIABLE, TOKEN_VARIABLE
from retinue.executors.sandbox import FifoBridge

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux pipes")]


@dataclass
class EchoServer:
    """The server: records the tokens it receives and echoes everything else."""

    tokens: list[str] = field(default_factory=list[str])

    open_connections: int = 0

    async def serve(self, connection: SocketStream) -> None:
        self.open_connections += 1
        try:
            async with connection:
                with suppress(anyio.BrokenResourceError):  # the client may end before it has read everything
                    await self._echo(connection)
        finally:
            self.open_connections -= 1

    async def _echo(self, connection: SocketStream) -> None:
        token, _, rest = (await connection.receive()).partition(b"\n")
        self.tokens.append(token.decode())
        if rest:
            await connection.send(rest)
        async for data in connection:
            await connection.send(data)


@dataclass
class OpenBridge:
    folder: Path
    bridge: FifoBridge
    server: EchoServer

    @property
    def pipes(self) -> Path:
        return self.folder / "child"

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Process]:
        """Start the script, as a program in a container would."""
        async with await anyio.open_process(
            ["sh", str(self.bridge.script)], stderr=subprocess.PIPE
        ) as process:
            yield process

    async def echo(self, text: bytes) -> bytes:
        async with self.client() as process:
            assert process.stdin and process.stdout
            await process.stdin.send(text)
            received = b""
            while len(received) < len(text):
                received += await process.stdout.receive()
            await process.stdin.aclose()
            await process.wait()
            return received


async def wait_until_idle(server: EchoServer, socket_path: str) -> None:
    """Wait until every connection was accepted and is closed, so that a cancellation leaves none open."""
    async with await anyio.connect_unix(socket_path) as last:  # connections are accepted in order
        await last.send(b"last\n")
        await until(lambda: "last" in server.tokens)
    await until(lambda: server.open_connections == 0)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 (no event reports a change of a file)
        await anyio.sleep(0.01)


@pytest.fixture
async def bridge_run(tmp_path: Path) -> AsyncGenerator[OpenBridge]:
    server = EchoServer()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        async with (
            await anyio.create_unix_listener(path) as listener,
            anyio.create_task_group() as group,
        ):
            group.start_soon(listener.serve, server.serve)
            (tmp_path / "run").mkdir()
            bridge = FifoBridge(tmp_path / "run", {SOCKET_VARIABLE: path, TOKEN_VARIABLE: "the-token"})
            async with bridge.open():
                with anyio.fail_after(20):
                    yield OpenBridge(tmp_path / "run", bridge, server)
            with anyio.fail_after(20):
                await wait_until_idle(server, path)
            group.cancel_scope.cancel()


async def test_data_from_the_container_reaches_the_server_with_the_token_of_the_run(
    bridge_run: OpenBridge,
) -> None:
    assert await bridge_run.echo(b"hello\n") == b"hello\n"
    assert bridge_run.server.tokens == ["the-token"]
    assert "the-token" not in bridge_run.bridge.script.read_text(encoding="utf-8")


async def test_more_data_than_a_pipe_holds_passes_in_both_directions(bridge_run: OpenBridge) -> None:
    text = b"0123456789abcdef" * (1 << 16)
    assert await bridge_run.echo(text) == text


async def test_clients_connect_one_after_another_and_never_two_at_once(bridge_run: OpenBridge) -> None:
    async with bridge_run.client() as first:
        assert first.stdin and first.stdout
        await first.stdin.send(b"first\n")
        assert await first.stdout.receive() == b"first\n"
        async with bridge_run.client() as second:
            assert await second.wait() == 1
            assert second.stderr
            assert b"another process of this run" in await second.stderr.receive()
        await first.stdin.aclose()
        await first.wait()
    await until(lambda: not (bridge_run.pipes / "busy").exists())
    assert await bridge_run.echo(b"third\n") == b"third\n"
    assert bridge_run.server.tokens == ["the-token"] * 2


@pytest.mark.parametrize("name", ["in", "out", "busy"])
async def test_planted_symlink_is_not_followed_P6(bridge_run: OpenBridge, name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched", encoding="utf-8")
    pipe = await anyio.to_thread.run_sync(os.open, bridge_run.pipes / "in", os.O_WRONLY)
    planted = bridge_run.pipes / name
    planted.unlink(missing_ok=True)
    planted.symlink_to(victim)
    os.write(pipe, b"hello\n")
    await until(lambda: bool(bridge_run.server.tokens))
    os.close(pipe)
    if name == "busy":
        await until(lambda: not planted.is_symlink())  # the link is removed, not its target
    assert victim.read_text(encoding="utf-8") == "untouched"
