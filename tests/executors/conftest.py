"""Fixtures for tests that start processes: both process backends, and a check that no process is left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.executors import fork_server
from retinue.executors.process import Process, Program
from retinue.executors.process.portable_process import PortableProcess
from retinue.executors.process.reaped_process import ReapedProcess
from tests.conftest import ChildProcesses
from tests.executors.process_trees import wait_until


@pytest.fixture(params=["reaped", "portable"])
def spawn(request: pytest.FixtureRequest):
    """Both process backends: a reaper (Linux only) and the portable one."""
    if request.param == "portable":
        return spawn_portable
    if sys.platform != "linux":
        pytest.skip("only Linux has reapers")
    return spawn_reaped


async def spawn_reaped(program: Program) -> Process:
    return await ReapedProcess.spawn(program)


async def spawn_portable(program: Program) -> Process:
    return await PortableProcess.spawn(program)


@pytest.fixture
def children() -> ChildProcesses:
    fork_server.close()  # a test of another folder may have started it
    return ChildProcesses()


@pytest.fixture(autouse=True)
def nothing_is_left(children: ChildProcesses) -> Iterator[None]:
    """P5: a test leaves no child processes, not even zombies, and no open files."""
    files = open_files()
    yield
    fork_server.close()
    wait_until(lambda: not children.list(recursive=True))
    wait_until(lambda: open_files() <= files)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
