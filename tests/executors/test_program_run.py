"""A program run enforces its deadline, stores expected errors and cleans up after the program."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from retinue.core import DeadlineExceeded, LimitExceeded, ModelFailed, OutputLine, ProgramFailed, Unavailable
from retinue.executors.process import Program, ProgramRun, Transcript
from tests.executors.process_trees import reaper_of

pytestmark = pytest.mark.anyio


class Shell:
    """Runs shell scripts, and records their output and what was cleaned up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.lines: list[str] = []
        self.cleaned: list[str] = []
        self.on_line: Callable[[str], object] = lambda line: None

    def run(self, script: str, seconds: float | None = None, max_bytes: int = 1000) -> ProgramRun:
        program = Program(("sh", "-c", script), {"PATH": os.environ["PATH"]}, self._folder, grace=0.1)
        transcript = Transcript(self.record, max_bytes=max_bytes)
        return ProgramRun(program, transcript, name="tool", seconds=seconds, clean_up=self.clean_up)

    async def record(self, line: OutputLine) -> None:
        self.lines.append(line.text)
        self.on_line(line.text)

    async def clean_up(self, program: Program) -> None:
        self.cleaned.append(program.name)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_exited_program_has_its_code_and_needs_no_cleaning(shell: Shell) -> None:
    """P8."""
    run = shell.run("cat; exit 3")
    async with run.start(stdin=b"text"):
        assert await run.wait() == 3
    assert (run.exit_code, run.error, run.survivors) == (3, None, ())
    assert run.usage["output_bytes"] == 4
    assert (shell.lines, shell.cleaned) == (["text"], [])


async def test_deadline_ends_the_program_and_is_stored_as_the_error(shell: Shell) -> None:
    """P2."""
    run = shell.run("echo begun; sleep 1000", seconds=1.0)
    async with run.start(stdin=b""):
        await run.wait()
    assert isinstance(run.error, DeadlineExceeded)
    assert run.error.message == "tool had not ended after 1 seconds"
    assert (run.exit_code, shell.lines, shell.cleaned) == (None, ["begun"], ["sh"])
    assert 1_000 <= run.usage["duration_ms"] < 20_000


async def test_output_beyond_the_limit_ends_the_program(shell: Shell) -> None:
    """P2."""
    run = shell.run("yes", max_bytes=10)
    async with run.start(stdin=b""):
        await run.wait()
    assert isinstance(run.error, LimitExceeded)
    assert (run.exit_code, run.usage["output_bytes"], shell.cleaned) == (None, 10, ["sh"])


class LimitOnLastLine(Transcript):
    async def finish(self) -> None:
        raise LimitExceeded("steps", 2, 1)


async def test_limit_that_the_last_line_exceeds_is_stored_as_the_error(tmp_path: Path, shell: Shell) -> None:
    """P2."""
    program = Program(("sh", "-c", "printf end"), {"PATH": os.environ["PATH"]}, tmp_path)
    run = ProgramRun(program, LimitOnLastLine(shell.record))
    async with run.start(stdin=b""):
        await run.wait()
    assert isinstance(run.error, LimitExceeded)
    assert run.exit_code == 0


async def test_error_of_a_dialogue_is_stored_and_ends_the_program(shell: Shell) -> None:
    run = shell.run("read answer; echo $answer; sleep 1000")
    arrived = asyncio.Event()
    shell.on_line = lambda line: arrived.set()
    async with run.start(stdin=None) as group:
        group.stdin.write(b"hello\n")
        await asyncio.wait_for(arrived.wait(), 5)
        raise ModelFailed("it refused")
    assert isinstance(run.error, ModelFailed)
    assert (run.exit_code, shell.lines, shell.cleaned) == (None, ["hello"], ["sh"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has reapers")
async def test_lost_program_is_stored_as_the_error(shell: Shell) -> None:
    """P8: somebody killed the reaper."""
    run = shell.run("sleep 1000")
    async with run.start(stdin=b"") as group:
        reaper_of(group).kill()
        await run.wait()
    assert isinstance(run.error, ProgramFailed)


@pytest.mark.parametrize("error", [TimeoutError("of the caller"), LookupError("a bug")])
async def test_other_errors_pass_through_after_the_cleaning(shell: Shell, error: Exception) -> None:
    """A timeout of the caller is not the deadline of the run."""
    run = shell.run("sleep 1000", seconds=60)
    with pytest.raises(type(error)) as caught:
        async with run.start(stdin=b""):
            raise error
    assert caught.value is error
    assert (run.error, shell.cleaned) == (None, ["sh"])


async def test_program_that_cannot_start_raises(tmp_path: Path, shell: Shell) -> None:
    run = ProgramRun(Program(("no-such-program",), {"PATH": ""}, tmp_path), Transcript(shell.record))
    with pytest.raises(Unavailable, match="cannot start"):
        async with run.start(stdin=b""):
            raise AssertionError("it started")
