"""Who dies by `kill -9` takes the whole tree along: the server, its keeper, or both."""

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
from tests.executors.process_trees import (
    STUBBORN_FAMILY,
    STUBBORN_FAMILY_SIZE,
    Ears,
    keeper_of,
    left_of,
    marked,
    python,
    wait_until,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="needs a keeper"),
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


def family_of(process: subprocess.Popen[str]) -> set[ProcessIdentity]:
    """The family, once all of it has spoken."""
    assert process.stdout
    assert process.stdout.readline() == "starting\n"
    said = [process.stdout.readline() for _ in range(STUBBORN_FAMILY_SIZE)]
    family = {identity for line in said if (identity := identify(int(line.split()[1])))}
    assert len(family) == STUBBORN_FAMILY_SIZE
    return family


def keepers_of(pid: int) -> list[ProcessIdentity]:
    """The server's nursery, if there is one by now, and the keepers below it."""
    helpers = [
        child for nursery in psutil.Process(pid).children() for child in (nursery, *nursery.children())
    ]
    return [helper for child in helpers if (helper := identify(child.pid))]


def test_a_killed_server_takes_the_whole_tree_with_it_within_two_seconds(tmp_path: Path) -> None:
    """P5: no child process survives, though its own grace would be a minute."""
    with server("killed-server", tmp_path) as process:
        family = family_of(process)
        nursery, keeper = keepers_of(process.pid)
        process.kill()
        wait_until(lambda: left_of({*family, nursery, keeper}) == [], seconds=2.0)
    assert marked("killed-server") == []


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 20, 40, 80])
def test_a_server_killed_at_any_instant_of_a_start_leaves_nothing(tmp_path: Path, delay_ms: int) -> None:
    """P5: between the keeper's start, its order, the fork and the exec there is no gap."""
    run_id = f"killed-after-{delay_ms}"
    with server(run_id, tmp_path) as process:
        assert process.stdout
        assert process.stdout.readline() == "starting\n"
        time.sleep(delay_ms / 1000)  # the instant is the input here, nothing is waited for
        keepers = set(keepers_of(process.pid))
        process.kill()
        process.wait()
        wait_until(lambda: left_of(keepers) == [] and marked(run_id) == [], seconds=3.0)


async def test_a_killed_keeper_is_noticed_and_what_it_kept_is_ended(tmp_path: Path) -> None:
    """P5, P8: its death is an error of the run, and daemons are found by their mark."""
    ears, family = Ears(), set[ProcessIdentity]()
    with pytest.raises(ProgramFailed, match="was lost"):
        async with ProcessGroup.start(
            python(STUBBORN_FAMILY, tmp_path, run_id="killed-keeper"), stdin=b"", on_output=ears
        ) as group:
            family = await ears.family()
            keeper_of(group).kill()
            await group.wait()
    assert family
    assert left_of(family) == []


async def test_a_killed_nursery_takes_no_program_along_and_another_takes_its_place(tmp_path: Path) -> None:
    """P5: its keepers go on, keep what they had, and still obey."""
    first, second = Ears(), Ears()
    async with ProcessGroup.start(python(STUBBORN_FAMILY, tmp_path), stdin=b"", on_output=first):
        family = await first.family()
        [nursery] = psutil.Process().children()
        nursery.kill()
        await anyio.to_thread.run_sync(wait_until, lambda: nursery.status() == psutil.STATUS_ZOMBIE)
        async with ProcessGroup.start(python("say(1)", tmp_path), stdin=b"", on_output=second) as group:
            assert await group.wait() == 0
        assert second.lines == ["1"]
        assert left_of(family) == sorted(family, key=lambda identity: identity.pid)
    assert left_of(family) == []


async def test_a_nursery_ends_with_the_last_scope_that_shares_it(tmp_path: Path) -> None:
    """P5: nothing outlives its scope, and no scope takes it from another."""
    with fork_server.shared():
        with fork_server.shared():
            async with ProcessGroup.start(python("say(1)", tmp_path), stdin=b"", on_output=Ears()) as group:
                await group.wait()
        assert len(psutil.Process().children()) == 1
    assert psutil.Process().children() == []


@pytest.mark.slow
async def test_a_stopped_keeper_does_not_hold_up_the_ending_forever(tmp_path: Path) -> None:
    """P7: a program may stop its keeper; then the server does the work, orphans without a mark included."""
    ears = Ears()
    code = """
stubborn()
def hide():
    code = "import os, time; os.write(1, b'pid %d' % os.getpid() + bytes([10])); time.sleep(1000)"
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code], {})
daemon(hide)
live()
"""
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=ears) as group:
        family = await ears.family(2)
        keeper_of(group).suspend()
    assert left_of(family) == []


async def test_a_keeper_asked_to_stop_ends_its_tree_first(tmp_path: Path) -> None:
    """P5: a service manager sends TERM to every process of a service, keepers included."""
    ears = Ears()
    async with ProcessGroup.start(python(STUBBORN_FAMILY, tmp_path), stdin=b"", on_output=ears) as group:
        family = await ears.family()
        keeper_of(group).send_signal(signal.SIGTERM)
        assert await group.wait() == -signal.SIGKILL
        await anyio.to_thread.run_sync(wait_until, lambda: left_of(family) == [])


async def test_what_a_server_and_its_keeper_left_when_both_were_killed_is_swept(tmp_path: Path) -> None:
    """P5: the next start finds the recorded process's kin by their mark."""
    with server("swept", tmp_path) as process:
        family = family_of(process)
        _, keeper = keepers_of(process.pid)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # so that neither sees the other die
            os.kill(process.pid, number)
            os.kill(keeper.pid, number)
        process.wait()
        wait_until(lambda: not is_alive(keeper))
        daemons = left_of(family)
        assert daemons, "the daemons at least survive the keeper"
        assert end_processes([daemons[0]], ["swept"], 0.1) == set()
    assert left_of(family) == []
    assert marked("swept") == []
