"""Leaving the scope of a process group ends the program and everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import psutil
import pytest

from retinue.core import InvalidInput, ProcessIdentity, RetinueError, StreamName, Unavailable
from retinue.executors import fork_server
from retinue.executors.process import Process, ProcessGroup, Program
from retinue.executors.process.process_group import QUIET_SECONDS
from tests.executors.process_trees import (
    HIDDEN_DAEMON,
    STUBBORN_TREE,
    STUBBORN_TREE_SIZE,
    WAIT,
    OutputRecorder,
    processes_of_run,
    python,
    reaper_of,
    still_alive,
    unique_run_id,
    wait_until,
)

pytestmark = pytest.mark.anyio
Spawn = Callable[[Program], Awaitable[Process]]
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has reapers")


async def test_a_program_gets_its_stdin_and_returns_its_output_and_exit_code(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P8: the real exit code, and separate streams."""
    recorder = OutputRecorder()
    program = python("sys.stderr.write(sys.stdin.read().upper()); say(os.getcwd()); sys.exit(7)", tmp_path)
    async with ProcessGroup.start(program, stdin=b"hello", on_output=recorder, spawn=spawn) as group:
        assert await group.wait() == 7
    assert recorder.output == {"stdout": f"{tmp_path}\n".encode(), "stderr": b"HELLO"}
    assert group.survivors == frozenset()


async def test_a_death_by_signal_is_a_negative_exit_code(tmp_path: Path, spawn: Spawn) -> None:
    """P8."""
    program = python("os.kill(os.getpid(), signal.SIGSEGV)", tmp_path)
    async with ProcessGroup.start(program, stdin=b"", on_output=OutputRecorder(), spawn=spawn) as group:
        assert await group.wait() == -11


async def test_a_program_runs_in_its_own_session(tmp_path: Path, spawn: Spawn) -> None:
    """P1: signals for the server's process group do not reach the program, and the reverse."""
    recorder = OutputRecorder()
    program = python("say(os.getsid(0) == os.getpid() == os.getpgid(0))", tmp_path)
    async with ProcessGroup.start(program, stdin=b"", on_output=recorder, spawn=spawn) as group:
        await group.wait()
    assert recorder.lines == ["True"]


async def test_a_broken_pipe_kills_a_program_as_it_would_in_a_shell(tmp_path: Path, spawn: Spawn) -> None:
    """Python ignores SIGPIPE, and its children must not inherit that."""
    recorder = OutputRecorder()
    sh = Program(("sh", "-c", "trap '' TERM; kill -PIPE $$; echo survived"), _path(), tmp_path)
    async with ProcessGroup.start(sh, stdin=b"", on_output=recorder, spawn=spawn) as group:
        assert await group.wait() == -13
    assert recorder.lines == []


async def leave(scope: anyio.CancelScope) -> None:
    return


async def fail(scope: anyio.CancelScope) -> None:
    raise LookupError("the body failed")


async def cancel(scope: anyio.CancelScope) -> None:
    scope.cancel()
    await anyio.sleep_forever()


async def expire(scope: anyio.CancelScope) -> None:
    scope.deadline = anyio.current_time()
    await anyio.sleep_forever()


@pytest.mark.parametrize("go", [leave, fail, cancel, expire])
async def test_leaving_the_scope_ends_a_tree_that_ignores_sigterm_and_daemonises(
    tmp_path: Path, spawn: Spawn, go: Callable[[anyio.CancelScope], Awaitable[None]]
) -> None:
    """P5: no process outlives the scope, whichever way the scope ends."""
    recorder, tree = OutputRecorder(), set[ProcessIdentity]()
    with anyio.CancelScope() as scope, contextlib.suppress(LookupError):
        program = python(STUBBORN_TREE, tmp_path)
        async with ProcessGroup.start(program, stdin=b"", on_output=recorder, spawn=spawn):
            tree = await recorder.processes()
            await go(scope)
    assert tree
    assert still_alive(tree) == []


async def test_repeated_cancellation_does_not_shorten_the_grace(tmp_path: Path, spawn: Spawn) -> None:
    """P5: further cancellations arrive while the first one waits for the grace to pass."""
    recorder = OutputRecorder()

    async def body() -> None:
        program = python(STUBBORN_TREE, tmp_path, grace=0.5)
        async with ProcessGroup.start(program, stdin=b"", on_output=recorder, spawn=spawn):
            await anyio.sleep_forever()

    task = asyncio.ensure_future(body())
    tree = await recorder.processes()
    for _ in range(5):
        task.cancel()
        await asyncio.wait({task}, timeout=0.02)
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert still_alive(tree) == []


@linux
async def test_a_cancelled_task_waits_without_spinning(tmp_path: Path) -> None:
    """P2: anyio repeats a cancellation until the task ends, which must not cost CPU time."""
    recorder, before = OutputRecorder(), 0.0
    with anyio.CancelScope() as scope:
        program = python("stubborn(); live()", tmp_path, grace=1.0)
        async with ProcessGroup.start(program, stdin=b"", on_output=recorder):
            await recorder.processes(1)
            before = time.process_time()
            scope.cancel()
            await anyio.sleep_forever()
    assert before
    assert time.process_time() - before < 0.5, "it spins for the second of grace"


async def test_a_program_that_obeys_sigterm_is_not_killed_and_its_last_output_is_kept(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5: partial output is kept, and a program may clean up."""
    recorder = OutputRecorder()
    code = """
def tidy(*_):
    say("x" * 300_000)  # more than a pipe holds, so somebody must read it
    open("tidied", "w")
    say("goodbye")
    os._exit(0)
signal.signal(signal.SIGTERM, tidy)
live()
"""
    program = python(code, tmp_path, grace=WAIT)
    async with ProcessGroup.start(program, stdin=b"", on_output=recorder, spawn=spawn):
        await recorder.processes(1)
    assert recorder.lines[-1] == "goodbye"
    assert (tmp_path / "tidied").exists()


async def test_a_daemon_that_keeps_stdout_open_neither_blocks_the_run_nor_outlives_it(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5, P8: the run ends with the exit of its program."""
    recorder = OutputRecorder()
    code = """
ready, done = os.pipe()
def linger():
    say("pid", os.getpid())
    os.write(done, b"x")
    time.sleep(1000)
daemon(linger)
os.read(ready, 1)
"""
    with anyio.fail_after(WAIT):
        async with ProcessGroup.start(
            python(code, tmp_path), stdin=b"", on_output=recorder, spawn=spawn
        ) as group:
            assert await group.wait() == 0
            tree = await recorder.processes(1)
    assert still_alive(tree) == []


async def test_all_output_arrives_although_the_listener_is_slow(tmp_path: Path, spawn: Spawn) -> None:
    """P5: a listener that is slower than the quiet time loses nothing, even with a daemon."""
    heard: list[int] = []

    async def slow(stream: StreamName, chunk: bytes) -> None:
        heard.append(len(chunk))
        await anyio.sleep(2 * QUIET_SECONDS if len(heard) <= 3 else 0)

    code = "daemon(lambda: time.sleep(1000)); say('x' * 199_999)"
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=slow, spawn=spawn) as group:
        await group.wait()
    assert sum(heard) == 200_000


async def test_a_blocked_listener_makes_the_program_wait(tmp_path: Path, spawn: Spawn) -> None:
    """P2: output does not pile up in memory."""
    gate = anyio.Event()

    async def gated(stream: StreamName, chunk: bytes) -> None:
        await gate.wait()

    code = """
import select
os.set_blocking(1, False)
written = 0
while written < 50_000_000 and select.select([], [1], [], 0.5)[1]:
    written += os.write(1, b"x" * 4096)
open("blocked.new", "w").write(str(written))
os.rename("blocked.new", "blocked")
"""
    blocked = tmp_path / "blocked"
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=gated, spawn=spawn) as group:
        await anyio.to_thread.run_sync(wait_until, blocked.exists)
        gate.set()
        await group.wait()
    assert 0 < int(blocked.read_text()) < 1_000_000


async def test_an_error_of_the_listener_ends_the_tree_and_is_raised(tmp_path: Path, spawn: Spawn) -> None:
    """P2: a limit on the output ends the program."""
    recorder, tree = OutputRecorder(), set[ProcessIdentity]()

    async def strict(stream: StreamName, chunk: bytes) -> None:
        await recorder(stream, chunk)
        if len(recorder.lines) == STUBBORN_TREE_SIZE:
            tree.update(await recorder.processes())
            raise LookupError("too much output")

    program = python(STUBBORN_TREE, tmp_path)
    with pytest.raises(LookupError, match="too much"):
        async with ProcessGroup.start(program, stdin=b"", on_output=strict, spawn=spawn) as group:
            await group.wait()
    assert tree
    assert still_alive(tree) == []


async def test_a_program_can_be_cancelled_while_it_does_not_read_a_long_stdin(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5: 10 MB of input wait for a program that sleeps."""
    recorder, tree = OutputRecorder(), set[ProcessIdentity]()
    with anyio.CancelScope() as scope:
        async with ProcessGroup.start(
            python("stubborn(); live()", tmp_path), stdin=b"x" * 10_000_000, on_output=recorder, spawn=spawn
        ):
            tree = await recorder.processes(1)
            scope.cancel()
            await anyio.sleep_forever()
    assert tree
    assert still_alive(tree) == []


async def test_a_program_may_close_its_stdin_without_reading_it(tmp_path: Path, spawn: Spawn) -> None:
    """P8: a broken pipe is not an error."""
    recorder = OutputRecorder()
    program = python("os.close(0); say('done')", tmp_path)
    async with ProcessGroup.start(program, stdin=b"x" * 1_000_000, on_output=recorder, spawn=spawn) as group:
        assert await group.wait() == 0
    assert recorder.lines == ["done"]


RUNNERS = """
stubborn()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def runner():
    for _ in range(2_000):  # limited, in case the test fails
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep({pace})
fork(runner)
live()
"""
"""Each process lives a moment in its own session and forks a successor, so all seen numbers are outdated."""


@linux
async def test_a_tree_that_keeps_forking_and_changing_sessions_is_ended(tmp_path: Path) -> None:
    """P5."""
    recorder = OutputRecorder()
    run_id = unique_run_id("fast-runners")
    program = python(RUNNERS.format(pace=0.001), tmp_path, run_id=run_id)
    with anyio.fail_after(2 * WAIT):
        async with ProcessGroup.start(program, stdin=b"", on_output=recorder) as group:
            await recorder.processes(1)
    assert group.survivors == frozenset()
    assert processes_of_run(run_id) == []


def streams_of(process: psutil.Process) -> set[str]:
    return {str(Path(f"/proc/{process.pid}/fd/{stream}").readlink()) for stream in range(3)}


@linux
async def test_the_reaper_holds_none_of_the_streams_of_the_program(tmp_path: Path) -> None:
    """P8: otherwise no stream would end before the reaper."""
    recorder = OutputRecorder()
    async with ProcessGroup.start(python("live()", tmp_path), stdin=b"", on_output=recorder) as group:
        await recorder.processes(1)
        reaper = reaper_of(group)
        assert streams_of(reaper) == {os.devnull}


@linux
async def test_orphans_that_die_together_leave_no_zombies_while_the_program_runs(tmp_path: Path) -> None:
    """P5: several deaths may be one signal, and the reaper collects all of them."""
    recorder = OutputRecorder()
    code = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
life, death = os.pipe()
for _ in range(60):
    daemon(lambda: (os.close(death), os.read(life, 1)))
say("pid", os.getpid())
while not os.path.exists("go"):
    time.sleep(0.01)
os.close(death)
time.sleep(1000)
"""
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=recorder) as group:
        await recorder.processes(1)
        reaper = reaper_of(group)
        await anyio.to_thread.run_sync(wait_until, lambda: len(reaper.children()) == 61)
        reaper.suspend()
        (tmp_path / "go").touch()
        await anyio.to_thread.run_sync(wait_until, lambda: zombies_of(reaper) == 60)
        reaper.resume()
        await anyio.to_thread.run_sync(wait_until, lambda: len(reaper.children()) == 1)


def zombies_of(process: psutil.Process) -> int:
    return sum(child.status() == psutil.STATUS_ZOMBIE for child in process.children())


@linux
async def test_a_daemon_that_hides_its_environment_is_ended_too(tmp_path: Path) -> None:
    """P5: the reaper does not depend on the run id in the environment."""
    recorder = OutputRecorder()
    async with ProcessGroup.start(python(HIDDEN_DAEMON, tmp_path), stdin=b"", on_output=recorder):
        tree = await recorder.processes(2)
        assert any("RETINUE_RUN_ID" not in psutil.Process(member.pid).environ() for member in tree)
    assert still_alive(tree) == []


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("no-such-program-anywhere",), "No such file"),
        (("./absent",), "No such file"),
        (("./not-executable",), "Permission denied"),
        (("./no-interpreter",), "No such file"),
        (("./not-a-program",), "Exec format error"),
        (("sh", "-c", "x" * 200_000), "Argument list too long"),
    ],
)
async def test_the_error_of_a_program_that_cannot_start_says_why_and_shows_no_environment(
    tmp_path: Path, spawn: Spawn, argv: tuple[str, ...], complaint: str
) -> None:
    """P6, P8."""
    for name, text, mode in [
        ("not-executable", "#!/bin/sh\n", 0o600),
        ("no-interpreter", "#!/nowhere/at/all\n", 0o700),
        ("not-a-program", "plain text\n", 0o700),
    ]:
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    program = Program(argv, {**_path(), "TOKEN": "s3cr3t"}, tmp_path)
    with pytest.raises(Unavailable, match=complaint) as caught:
        await _start(program, spawn)
    assert caught.value.hint
    _assert_shows_nothing(caught.value, program, tmp_path)


async def test_a_missing_directory_is_named_as_the_reason(tmp_path: Path, spawn: Spawn) -> None:
    """P6, P8."""
    program = Program(("sh", "-c", "true"), {**_path(), "TOKEN": "s3cr3t"}, tmp_path / "absent")
    with pytest.raises(InvalidInput, match="working directory") as caught:
        await _start(program, spawn)
    _assert_shows_nothing(caught.value, program, tmp_path)


async def _start(program: Program, spawn: Spawn) -> None:
    async with ProcessGroup.start(program, stdin=b"", on_output=OutputRecorder(), spawn=spawn):
        raise AssertionError("it started")


def _assert_shows_nothing(error: RetinueError, program: Program, directory: Path) -> None:
    shown = f"{error.as_dict()} {program!r}"
    assert "s3cr3t" not in shown
    assert str(directory) not in str(error.as_dict())


def _path() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


@linux
@pytest.mark.parametrize("turns", range(12))
async def test_cancellation_at_any_step_of_the_start_leaves_nothing_open(tmp_path: Path, turns: int) -> None:
    """A busy server would run out of descriptors if they waited for the garbage collector."""

    async def run() -> None:
        async with ProcessGroup.start(
            python("time.sleep(1000)", tmp_path), stdin=b"", on_output=OutputRecorder()
        ):
            await anyio.sleep_forever()

    with fork_server.shared():
        async with ProcessGroup.start(python("", tmp_path), stdin=b"", on_output=OutputRecorder()) as first:
            await first.wait()
        gc.disable()
        try:
            before = psutil.Process().num_fds()
            task = asyncio.create_task(run())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await asyncio.sleep(0)  # transports close in the next iteration
            assert psutil.Process().num_fds() == before
        finally:
            gc.enable()
