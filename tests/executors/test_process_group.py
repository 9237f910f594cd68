"""A program and everything it started are one scope, and leaving it ends them all."""

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
from tests.executors.process_trees import (
    STUBBORN_FAMILY,
    STUBBORN_FAMILY_SIZE,
    WAIT,
    Ears,
    keeper_of,
    left_of,
    marked,
    python,
    wait_until,
)

pytestmark = pytest.mark.anyio
Spawn = Callable[[Program], Awaitable[Process]]
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a keeper")


async def test_a_program_gets_its_stdin_and_its_output_and_exit_code_come_back(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P8: the real exit code, and both streams apart."""
    ears = Ears()
    program = python("sys.stderr.write(sys.stdin.read().upper()); say(os.getcwd()); sys.exit(7)", tmp_path)
    async with ProcessGroup.start(program, stdin=b"hello", on_output=ears, spawn=spawn) as group:
        assert await group.wait() == 7
    assert ears.heard == {"stdout": f"{tmp_path}\n".encode(), "stderr": b"HELLO"}
    assert group.survivors == frozenset()


async def test_a_death_by_signal_is_a_negative_exit_code(tmp_path: Path, spawn: Spawn) -> None:
    """P8."""
    program = python("os.kill(os.getpid(), signal.SIGSEGV)", tmp_path)
    async with ProcessGroup.start(program, stdin=b"", on_output=Ears(), spawn=spawn) as group:
        assert await group.wait() == -11


async def test_a_program_runs_in_a_session_of_its_own(tmp_path: Path, spawn: Spawn) -> None:
    """P1: a signal for the server's process group does not reach it, nor its signals ours."""
    ears = Ears()
    program = python("say(os.getsid(0) == os.getpid() == os.getpgid(0))", tmp_path)
    async with ProcessGroup.start(program, stdin=b"", on_output=ears, spawn=spawn) as group:
        await group.wait()
    assert ears.lines == ["True"]


async def test_a_broken_pipe_kills_a_program_as_it_would_in_a_shell(tmp_path: Path, spawn: Spawn) -> None:
    """Python ignores SIGPIPE; its children must not inherit that."""
    ears = Ears()
    sh = Program(("sh", "-c", "trap '' TERM; kill -PIPE $$; echo survived"), _path(), tmp_path)
    async with ProcessGroup.start(sh, stdin=b"", on_output=ears, spawn=spawn) as group:
        assert await group.wait() == -13
    assert ears.lines == []


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
async def test_leaving_the_scope_ends_a_family_that_ignores_term_and_daemonises(
    tmp_path: Path, spawn: Spawn, go: Callable[[anyio.CancelScope], Awaitable[None]]
) -> None:
    """P5: nothing outlives its scope, however it is left."""
    ears, family = Ears(), set[ProcessIdentity]()
    with anyio.CancelScope() as scope, contextlib.suppress(LookupError):
        program = python(STUBBORN_FAMILY, tmp_path)
        async with ProcessGroup.start(program, stdin=b"", on_output=ears, spawn=spawn):
            family = await ears.family()
            await go(scope)
    assert family
    assert left_of(family) == []


async def test_asyncio_cancellation_repeated_during_the_ending_does_not_cut_it_short(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5: a second cancel comes while the first is still waiting for the grace to pass."""
    ears = Ears()

    async def body() -> None:
        program = python(STUBBORN_FAMILY, tmp_path, grace=0.5)
        async with ProcessGroup.start(program, stdin=b"", on_output=ears, spawn=spawn):
            await anyio.sleep_forever()

    task = asyncio.ensure_future(body())
    family = await ears.family()
    for _ in range(5):
        task.cancel()
        await asyncio.wait({task}, timeout=0.02)
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_of(family) == []


@linux
async def test_a_canceled_task_waits_for_the_ending_without_spinning(tmp_path: Path) -> None:
    """P2: anyio repeats a cancellation until it is heeded; the grace must not be spent on that."""
    ears, before = Ears(), 0.0
    with anyio.CancelScope() as scope:
        program = python("stubborn(); live()", tmp_path, grace=1.0)
        async with ProcessGroup.start(program, stdin=b"", on_output=ears):
            await ears.family(1)
            before = time.process_time()
            scope.cancel()
            await anyio.sleep_forever()
    assert before
    assert time.process_time() - before < 0.1


async def test_a_program_that_obeys_term_is_not_killed_and_its_last_words_are_heard(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5: partial output is kept, and a program may tidy up."""
    ears = Ears()
    code = """
def tidy(*_):
    say("x" * 300_000)  # more than a pipe holds: only a reader lets it end
    open("tidied", "w")
    say("goodbye")
    os._exit(0)
signal.signal(signal.SIGTERM, tidy)
live()
"""
    program = python(code, tmp_path, grace=WAIT)
    async with ProcessGroup.start(program, stdin=b"", on_output=ears, spawn=spawn):
        await ears.family(1)
    assert ears.lines[-1] == "goodbye"
    assert (tmp_path / "tidied").exists()


async def test_a_daemon_that_keeps_stdout_open_neither_hangs_the_run_nor_outlives_it(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5, P8: the program's exit is the end, whatever it left behind."""
    ears = Ears()
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
            python(code, tmp_path), stdin=b"", on_output=ears, spawn=spawn
        ) as group:
            assert await group.wait() == 0
            family = await ears.family(1)
    assert left_of(family) == []


async def test_all_output_before_the_exit_arrives_though_the_listener_is_slow(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5: a listener that takes longer than the quiet time loses nothing, daemon or not."""
    heard = 0

    async def slow(stream: StreamName, chunk: bytes) -> None:
        nonlocal heard
        heard += len(chunk)
        await anyio.sleep(0.8 if heard < 100_000 else 0)

    code = "daemon(lambda: time.sleep(1000)); say('x' * 199_999)"
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=slow, spawn=spawn) as group:
        await group.wait()
    assert heard == 200_000


async def test_a_listener_that_stands_still_makes_the_program_wait(tmp_path: Path, spawn: Spawn) -> None:
    """P2: output is never piled up in memory."""
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


async def test_what_the_listener_raises_ends_the_family_and_comes_out(tmp_path: Path, spawn: Spawn) -> None:
    """P2: a limit found in the output stops the work."""
    ears, family = Ears(), set[ProcessIdentity]()

    async def strict(stream: StreamName, chunk: bytes) -> None:
        await ears(stream, chunk)
        if len(ears.lines) == STUBBORN_FAMILY_SIZE:
            family.update(await ears.family())
            raise LookupError("too much was said")

    program = python(STUBBORN_FAMILY, tmp_path)
    with pytest.raises(LookupError, match="too much"):
        async with ProcessGroup.start(program, stdin=b"", on_output=strict, spawn=spawn) as group:
            await group.wait()
    assert family
    assert left_of(family) == []


async def test_canceling_in_the_middle_of_a_long_stdin_that_nobody_reads(
    tmp_path: Path, spawn: Spawn
) -> None:
    """P5: 10 MB wait in the pipe for a program that sleeps."""
    ears, family = Ears(), set[ProcessIdentity]()
    with anyio.CancelScope() as scope:
        async with ProcessGroup.start(
            python("stubborn(); live()", tmp_path), stdin=b"x" * 10_000_000, on_output=ears, spawn=spawn
        ):
            family = await ears.family(1)
            scope.cancel()
            await anyio.sleep_forever()
    assert family
    assert left_of(family) == []


async def test_a_program_may_close_its_stdin_unread(tmp_path: Path, spawn: Spawn) -> None:
    """P8: a broken pipe is no failure."""
    ears = Ears()
    program = python("os.close(0); say('done')", tmp_path)
    async with ProcessGroup.start(program, stdin=b"x" * 1_000_000, on_output=ears, spawn=spawn) as group:
        assert await group.wait() == 0
    assert ears.lines == ["done"]


RUNNERS = """
stubborn()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def runner():
    for _ in range(2_000):  # bounded, should the test fail
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep({pace})
fork(runner)
live()
"""
"""Each process lives a moment in a session of its own, and leaves a successor: every number is an old one."""


@linux
async def test_a_family_that_keeps_forking_and_changing_sessions_is_outrun(tmp_path: Path) -> None:
    """P5."""
    ears = Ears()
    program = python(RUNNERS.format(pace=0.001), tmp_path, run_id="fast-runners")
    with anyio.fail_after(3 * WAIT):
        async with ProcessGroup.start(program, stdin=b"", on_output=ears) as group:
            await ears.family(1)
    assert group.survivors == frozenset()
    assert marked("fast-runners") == []


def streams_of(process: psutil.Process) -> set[str]:
    return {str(Path(f"/proc/{process.pid}/fd/{stream}").readlink()) for stream in range(3)}


@linux
async def test_the_keeper_holds_none_of_the_programs_streams(tmp_path: Path) -> None:
    """P8: otherwise no stream would end before the keeper does."""
    ears = Ears()
    async with ProcessGroup.start(python("live()", tmp_path), stdin=b"", on_output=ears) as group:
        await ears.family(1)
        keeper = keeper_of(group)
        assert streams_of(keeper) == {os.devnull}


@linux
async def test_orphans_that_die_together_leave_no_zombies_while_the_program_runs(tmp_path: Path) -> None:
    """P5: many deaths are one signal; the keeper collects them all."""
    ears = Ears()
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
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=ears) as group:
        await ears.family(1)
        keeper = keeper_of(group)
        await anyio.to_thread.run_sync(wait_until, lambda: len(keeper.children()) == 61)
        keeper.suspend()
        (tmp_path / "go").touch()
        await anyio.to_thread.run_sync(wait_until, lambda: zombies_of(keeper) == 60)
        keeper.resume()
        await anyio.to_thread.run_sync(wait_until, lambda: len(keeper.children()) == 1)


def zombies_of(process: psutil.Process) -> int:
    return sum(child.status() == psutil.STATUS_ZOMBIE for child in process.children())


@linux
async def test_a_daemon_that_hides_its_environment_is_ended_too(tmp_path: Path) -> None:
    """P5: the keeper needs no mark to recognise its own."""
    ears = Ears()
    code = """
stubborn()
def hide():
    code = "import os, time; os.write(1, b'pid %d' % os.getpid() + bytes([10])); time.sleep(1000)"
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code], {})
daemon(hide)
live()
"""
    async with ProcessGroup.start(python(code, tmp_path), stdin=b"", on_output=ears):
        family = await ears.family(2)
        assert any("RETINUE_RUN_ID" not in psutil.Process(member.pid).environ() for member in family)
    assert left_of(family) == []


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
async def test_a_program_that_cannot_start_says_why_and_shows_no_environment(
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
    _shows_nothing(caught.value, program, tmp_path)


async def test_a_missing_directory_is_named_as_the_reason(tmp_path: Path, spawn: Spawn) -> None:
    """P6, P8."""
    program = Program(("sh", "-c", "true"), {**_path(), "TOKEN": "s3cr3t"}, tmp_path / "absent")
    with pytest.raises(InvalidInput, match="working directory") as caught:
        await _start(program, spawn)
    _shows_nothing(caught.value, program, tmp_path)


async def _start(program: Program, spawn: Spawn) -> None:
    async with ProcessGroup.start(program, stdin=b"", on_output=Ears(), spawn=spawn):
        raise AssertionError("it started")


def _shows_nothing(error: RetinueError, program: Program, directory: Path) -> None:
    shown = f"{error.as_dict()} {program!r}"
    assert "s3cr3t" not in shown
    assert str(directory) not in str(error.as_dict())


def _path() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


@linux
@pytest.mark.parametrize("turns", range(12))
async def test_cancel_at_any_turn_of_the_start_leaves_nothing_open(tmp_path: Path, turns: int) -> None:
    """Descriptors that wait for the garbage collector are those that a busy server runs out of."""

    async def run() -> None:
        async with ProcessGroup.start(python("time.sleep(1000)", tmp_path), stdin=b"", on_output=Ears()):
            await anyio.sleep_forever()

    with fork_server.shared():
        async with ProcessGroup.start(python("", tmp_path), stdin=b"", on_output=Ears()) as first:
            await first.wait()
        gc.disable()
        try:
            before = psutil.Process().num_fds()
            task = asyncio.create_task(run())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await asyncio.sleep(0)  # transports close in the turn after
            assert psutil.Process().num_fds() == before
        finally:
            gc.enable()
