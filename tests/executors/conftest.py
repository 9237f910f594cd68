"""Process trees to be ended, and the means to see that nothing of them is left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from retinue.executors import fork_server
from retinue.executors.process import Process, Program
from retinue.executors.process.portable_process import PortableProcess
from retinue.executors.process.reaped_process import ReapedProcess
from tests.executors.process_trees import wait_until


@pytest.fixture(params=["kept", "walked"])
def spawn(request: pytest.FixtureRequest):
    """Both ways to hold a tree: Linux has one, every platform has the other."""
    if request.param == "walked":
        return spawn_walked
    if sys.platform != "linux":
        pytest.skip("a keeper needs a Linux subreaper")
    return spawn_kept


async def spawn_kept(program: Program) -> Process:
    return await ReapedProcess.spawn(program)


async def spawn_walked(program: Program) -> Process:
    return await PortableProcess.spawn(program)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """P5: after every test here, this process has no child, not even a zombie, and no file left open."""
    files = open_files()
    yield
    fork_server.close()
    wait_until(lambda: not psutil.Process().children(recursive=True))
    wait_until(lambda: open_files() <= files)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
