"""The whole tree ends if the server, its reaper or both are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from retinue.core import ProcessIdentity, ProgramFailed
from retinue.executors import end_processes, fork_server
from retinue.executors.process import ProcessGroup
from retinue.executors.process.identity import identify, is_alive
from tests.conftest import ChildProcesses
from tests.executors.process_trees import (
    HIDDEN_DAEMON,
    STUBBORN_TREE,
    STUBBORN_TREE_SIZE,
    OutputRecorder,
    processes_of_run,
    python,
    reaper_of,
    still_alive,
    unique_run_id,
    wait_until,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has reapers"),
]
PROJECT = Path(__file__).parents[2]


@contextmanager
def server(run_id: str, cwd: Path) -> Generator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "tests.executors.server_to_kill", run_id, str(cwd)]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_tree(process: subprocess.Popen[str]) -> set[ProcessIdentity]:
    """Return the processes of the tree, once each has printed its number."""
    assert process.stdout
    assert process.stdout.readline() == "starting\n"
    said = [process.stdout.readline() for _ in range(STUBBORN_TREE_SIZE)]
    tree = {identity for line in said if (identity := identify(int(line.split()[1])))}
    assert len(tree) == STUBBORN_TREE_SIZE
    return tree


def helpers_of(pid: int) -> list[ProcessIdentity]:
    """Return the server's fork server, if it has one by now, and its reapers."""
    helpers = [
        child
        for fork_server_process in psutil.Process(pid).children()
        for child in (fork_server_process, *fork_server_process.children())
    ]
    return [helper for child in helpers if (helper := identify(child.pid))]


def test_the_whole_tree_ends_within_two_seconds_after_the_server_is_killed(tmp_path: Path) -> None:
    """P5: no child process survives, although its own grace is a minute."""
    run_id = unique_run_id("killed-server")
    with server(run_id, tmp_path) as process:
        tree = read_tree(process)
        fork_server_process, reaper = helpers_of(process.pid)
        process.kill()
        wait_until(lambda: still_alive({*tree, fork_server_process, reaper}) == [], seconds=2.0)
    assert processes_of_run(run_id) == []


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 20, 40, 80])
def test_a_server_killed_at_any_moment_of_a_start_leaves_no_process(tmp_path: Path, delay_ms: int) -> None:
    """P5: there is no gap between the start of the reaper, its order, the fork and the exec."""
    run_id = unique_run_id(f"killed-after-{delay_ms}")
    with server(run_id, tmp_path) as process:
        assert process.stdout
        assert process.stdout.readline() == "starting\n"
        time.sleep(delay_ms / 1000)  # the moment is the input of this test; it waits for nothing
        reapers = set(helpers_of(process.pid))
        process.kill()
        process.wait()
        wait_until(lambda: still_alive(reapers) == [] and processes_of_run(run_id) == [], seconds=3.0)


async def test_a_killed_reaper_is_an_error_and_its_tree_is_ended(tmp_path: Path) -> None:
    """P5, P8: the run fails, and its daemons are found by their run id."""
    recorder, tree = OutputRecorder(), set[ProcessIdentity]()
    program = python(STUBBORN_TREE, tmp_path, run_id=unique_run_id("killed-reaper"))
    with pytest.raises(ProgramFailed, match="was lost"):
        async with ProcessGroup.start(program, stdin=b"", on_output=recorder) as group:
            tree = await recorder.processes()
            reaper_of(group).kill()
            await group.wait()
    assert tree
    assert still_alive(tree) == []


async def test_programs_survive_a_killed_fork_server_and_another_one_starts(
    tmp_path: Path, children: ChildProcesses
) -> None:
    """P5: its reapers keep running and can still be ended."""
    first, second = OutputRecorder(), OutputRecorder()
    async with ProcessGroup.start(python(STUBBORN_TREE, tmp_path), stdin=b"", on_output=first):
        tree = await first.processes()
        [fork_server_process] = children.list()
        fork_server_process.kill()
        await anyio.to_thread.run_sync(
            wait_until, lambda: fork_server_process.status() == psutil.STATUS_ZOMBIE
        )
        async with ProcessGroup.start(python("say(1)", tmp_path), stdin=b"", on_output=second) as group:
            assert await group.wait() == 0
        assert second.lines == ["1"]
        assert still_alive(tree) == sorted(tree, key=lambda identity: identity.pid)
    assert still_alive(tree) == []


async def test_a_fork_server_ends_with_the_last_scope_that_shares_it(
    tmp_path: Path, children: ChildProcesses
) -> None:
    """P5: an inner scope does not end the fork server of an outer one."""
    with fork_server.shared():
        with fork_server.shared():
            async with ProcessGroup.start(
                python("say(1)", tmp_path), stdin=b"", on_output=OutputRecorder()
            ) as group:
                await group.wait()
        assert len(children.list()) == 1
    assert children.list() == []


@pytest.mark.slow
async def test_a_stopped_reaper_does_not_block_the_end_forever(tmp_path: Path) -> None:
    """P7: if a program stops its reaper, the server ends the tree, including orphans without a run id."""
    recorder = OutputRecorder()
    async with ProcessGroup.start(python(HIDDEN_DAEMON, tmp_path), stdin=b"", on_output=recorder) as group:
        tree = await recorder.processes(2)
        reaper_of(group).suspend()
    assert still_alive(tree) == []


async def test_a_reaper_that_gets_sigterm_ends_its_tree_first(tmp_path: Path) -> None:
    """P5: a service manager sends SIGTERM to every process of a service, including reapers."""
    recorder = OutputRecorder()
    async with ProcessGroup.start(python(STUBBORN_TREE, tmp_path), stdin=b"", on_output=recorder) as group:
        tree = await recorder.processes()
        reaper_of(group).send_signal(signal.SIGTERM)
        assert await group.wait() == -signal.SIGKILL
        await anyio.to_thread.run_sync(wait_until, lambda: still_alive(tree) == [])


async def test_processes_left_by_a_killed_server_and_a_killed_reaper_can_be_ended(tmp_path: Path) -> None:
    """P5: the next server finds the processes by their run id."""
    run_id = unique_run_id("both-killed")
    with server(run_id, tmp_path) as process:
        tree = read_tree(process)
        _, reaper = helpers_of(process.pid)
        for number in (
            signal.SIGSTOP,
            signal.SIGKILL,
        ):  # stopped first, so that neither notices the death of the other
            os.kill(process.pid, number)
            os.kill(reaper.pid, number)
        process.wait()
        wait_until(lambda: not is_alive(reaper))
        daemons = still_alive(tree)
        assert daemons, "at least the daemons survive the reaper"
        assert end_processes([daemons[0]], [run_id], 0.1) == set()
    assert still_alive(tree) == []
    assert processes_of_run(run_id) == []
