"""Nothing can be written when a run ends: the disk is full, or another program holds the database (P5)."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.attacks.live_server import LiveServer, live_server, prepare_home

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="limits the size of another process's files"),
]

FAULT_S = 1.5
"""How long the fault lasts. The run ends after a third of it."""


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncGenerator[LiveServer]:
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    environment = prepare_home(home, 1)
    with (home / ".config" / "retinue" / "retinue.toml").open("a") as settings:
        settings.write('[commands.nap]\nargv = ["sh", "-c", "sleep 0.5; echo rested"]\n')
    async with live_server(home, root, environment) as server:
        yield server


@contextmanager
def full_disk(server: LiveServer, data: Path) -> Generator[None]:
    """Let every write of the server fail that makes a file longer."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def held_database(server: LiveServer, data: Path) -> Generator[None]:
    """Hold the lock of the database, as another program could."""
    with sqlite3.connect(data / "retinue.db", isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            database.execute("ROLLBACK")
    database.close()


@pytest.mark.parametrize("fault", [full_disk, held_database])
async def test_run_that_ends_while_nothing_can_be_written_is_recorded_later(
    tmp_path: Path, fault: Callable[[LiveServer, Path], AbstractContextManager[None]]
) -> None:
    """P5: the server keeps all its runs, answers meanwhile, and works again afterwards."""

    async with serving(tmp_path) as server:
        other = await server.start("sleeps")
        run = await server.start("nap")
        with fault(server, tmp_path / "home" / "data"):
            end = asyncio.get_running_loop().time() + FAULT_S
            while asyncio.get_running_loop().time() < end:
                await asyncio.wait_for(server.ping(), 20)
                await asyncio.sleep(0.1)
            assert server.process.returncode is None
        await server.call("wait_for_runs", run_ids=[run], wait_s=30)
        ended = await server.call("check_subagent_status", runId=run)
        assert (ended["status"], ended["result"]["output"]) == ("success", "rested\n")
        assert (await server.call("check_subagent_status", runId=other))["status"] == "running"
        assert (await server.call("run_subagent", agent_name="echo", prompt="hello", wait_s=20))[
            "result"
        ] == "hello"
        await server.cancel(other)
