"""The pipes between a container and the server: what is said passes, whoever plants what (P6)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio.abc import Process, SocketStream

from retinue.executors.cli import SOCKET, TOKEN
from retinue.executors.sandbox import FifoBridge

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="pipes of Linux")]


@dataclass
class Outside:
    """The server: it notes who comes, and says everything again."""

    tokens: list[str] = field(default_factory=list[str])

    async def serve(self, line: SocketStream) -> None:
        async with line:
            token, _, rest = (await line.receive()).partition(b"\n")
            self.tokens.append(token.decode())
            if rest:
                await line.send(rest)
            async for data in line:
                await line.send(data)


@dataclass
class Room:
    folder: Path
    door: FifoBridge
    outside: Outside

    @property
    def pipes(self) -> Path:
        return self.folder / "child"

    @asynccontextmanager
    async def visitor(self) -> AsyncGenerator[Process]:
        """The script, as something in a container would start it."""
        async with await anyio.open_process(["sh", str(self.door.script)], stderr=subprocess.PIPE) as process:
            yield process

    async def said_again(self, text: bytes) -> bytes:
        async with self.visitor() as process:
            assert process.stdin and process.stdout
            await process.stdin.send(text)
            said = b""
            while len(said) < len(text):
                said += await process.stdout.receive()
            await process.stdin.aclose()
            await process.wait()
            return said


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 (files set no event)
        await anyio.sleep(0.01)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncGenerator[Room]:
    outside = Outside()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        async with (
            await anyio.create_unix_listener(path) as listener,
            anyio.create_task_group() as group,
        ):
            group.start_soon(listener.serve, outside.serve)
            (tmp_path / "run").mkdir()
            door = FifoBridge(tmp_path / "run", {SOCKET: path, TOKEN: "the-token"})
            async with door.open():
                with anyio.fail_after(5):
                    yield Room(tmp_path / "run", door, outside)
            group.cancel_scope.cancel()


async def test_what_is_said_inside_is_heard_and_answered_under_the_runs_token(room: Room) -> None:
    assert await room.said_again(b"hello\n") == b"hello\n"
    assert room.outside.tokens == ["the-token"]
    assert "the-token" not in room.door.script.read_text(encoding="utf-8")


async def test_more_than_a_pipe_holds_passes_in_both_directions(room: Room) -> None:
    text = b"0123456789abcdef" * (1 << 16)
    assert await room.said_again(text) == text


async def test_one_visitor_follows_another_and_two_do_not_mix(room: Room) -> None:
    async with room.visitor() as first:
        assert first.stdin and first.stdout
        await first.stdin.send(b"first\n")
        assert await first.stdout.receive() == b"first\n"
        async with room.visitor() as second:
            assert await second.wait() == 1
            assert second.stderr
            assert b"another process of this run" in await second.stderr.receive()
        await first.stdin.aclose()
        await first.wait()
    await until(lambda: not (room.pipes / "busy").exists())
    assert await room.said_again(b"third\n") == b"third\n"
    assert room.outside.tokens == ["the-token"] * 2


@pytest.mark.parametrize("name", ["in", "out", "busy"])
async def test_link_that_is_planted_inside_leads_nowhere_P6(room: Room, name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched", encoding="utf-8")
    speaking = await anyio.to_thread.run_sync(os.open, room.pipes / "in", os.O_WRONLY)
    planted = room.pipes / name
    planted.unlink(missing_ok=True)
    planted.symlink_to(victim)
    os.write(speaking, b"hello\n")
    await until(lambda: bool(room.outside.tokens))
    os.close(speaking)
    if name == "busy":
        await until(lambda: not planted.is_symlink())  # the link goes, not what it names
    assert victim.read_text(encoding="utf-8") == "untouched"
