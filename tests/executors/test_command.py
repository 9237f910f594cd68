"""The `command` executor runs any program and reports what really happened."""

from __future__ import annotations

import os
import sys
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from retinue.core import (
    Agent,
    ConfigInvalid,
    Executor,
    Outcome,
    OutputLine,
    ProcessIdentity,
    RunContext,
    Task,
    Unavailable,
)
from retinue.executors import CommandConfig, CommandExecutor, CommandTemplate
from retinue.executors.command import CommandInContainer
from retinue.executors.process import Program
from retinue.executors.process.identity import identify
from retinue.executors.sandbox import SandboxAccess
from tests.executors.process_trees import (
    BASICS,
    RUN_ID,
    STUBBORN_TREE,
    STUBBORN_TREE_SIZE,
    WAIT,
    still_alive,
    wait_until,
)

pytestmark = pytest.mark.anyio


@dataclass
class RunRecorder:
    """A minimal runtime: provides the context of a run and records its events."""

    cwd: Path
    events: list[OutputLine | ProcessIdentity] = field(default_factory=list[OutputLine | ProcessIdentity])
    enough: anyio.Event = field(default_factory=anyio.Event)
    lines_wanted: int = 1

    async def record(self, event: OutputLine | ProcessIdentity) -> None:
        self.events.append(event)
        if len(self.lines) >= self.lines_wanted:
            self.enough.set()

    @property
    def lines(self) -> list[str]:
        """The lines of output. Lines that arrive together are one event."""
        printed = [event.text for event in self.events if isinstance(event, OutputLine)]
        return [line for text in printed for line in text.split("\n")]

    def context(self, seconds: float | None = None, env: Mapping[str, str] | None = None) -> RunContext:
        return RunContext(RUN_ID, self.cwd, seconds, emit=self.record, started=self.record, env=env or {})

    def processes(self) -> set[ProcessIdentity]:
        found = {identify(int(line.split()[1])) for line in self.lines}
        return {identity for identity in found if identity}


def python(
    code: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    max_output_bytes: int = 1 << 20,
    environment: Mapping[str, str] | None = None,
) -> CommandExecutor:
    template = CommandTemplate(
        (sys.executable, "-I", "-S", "-c", (BASICS + code).replace("{", "{{").replace("}", "}}"), *arguments)
    )
    command = CommandConfig(template, env=env or {}, grace=0.1, max_output_bytes=max_output_bytes)
    return CommandExecutor(command, {"PATH": os.environ["PATH"], **(environment or {})})


async def test_variable_of_the_agent_is_registered_as_secret_before_its_program_starts_P6(
    tmp_path: Path,
) -> None:
    hidden: list[str] = []
    context = replace(RunRecorder(tmp_path).context(), hide=hidden.extend)
    executor = python("pass", env={"GIVEN": "key=${WANTED}"}, environment={"WANTED": "w" * 9, "OTHER": "o"})
    await executor.run(Task("a", ""), context)
    assert hidden == ["w" * 9]


async def test_outcome_says_that_the_program_was_not_sandboxed(tmp_path: Path) -> None:
    """P8: a reader must not mistake the program for a sandboxed one."""
    for code in ("pass", "raise SystemExit(3)"):
        outcome = await python(code).run(Task("a", ""), RunRecorder(tmp_path).context())
        assert outcome.facts == {"isolation": "none"}


async def test_the_prompt_goes_to_stdin_and_stdout_is_the_answer(tmp_path: Path) -> None:
    """P8."""
    executor: Executor = python("sys.stderr.write('thinking\\n'); print(sys.stdin.read()[::-1], end='')")
    recorder = RunRecorder(tmp_path)
    outcome = await executor.run(Task("reverser", "für 😀"), recorder.context())
    assert outcome == Outcome("😀 rüf", exit_code=0, usage=outcome.usage, facts=outcome.facts)
    assert outcome.status == "success"
    assert outcome.usage["output_bytes"] == len("thinking\n😀 rüf".encode())
    assert sorted(recorder.lines) == ["thinking", "😀 rüf"]


async def test_the_process_is_recorded_before_its_output_although_recording_is_slow(
    tmp_path: Path,
) -> None:
    """P5: the store knows which process to end before there is any output."""
    recorder = RunRecorder(tmp_path)

    async def record_slowly(identity: ProcessIdentity) -> None:
        await anyio.to_thread.run_sync(wait_until, (tmp_path / "said").exists)
        for _ in range(20):  # iterations in which output could arrive
            await anyio.lowlevel.checkpoint()
        await recorder.record(identity)

    context = replace(recorder.context(), started=record_slowly)
    await python("say('pid', os.getpid()); open('said', 'w')").run(Task("a", ""), context)
    process, line = recorder.events
    assert isinstance(process, ProcessIdentity) and isinstance(line, OutputLine)
    assert line.text == f"pid {process.pid}"


async def test_a_prompt_in_the_arguments_leaves_stdin_empty(tmp_path: Path) -> None:
    """P1: the prompt stays one argument, whatever it contains."""
    executor = python("print(sys.argv[1:], repr(sys.stdin.read()))", "{prompt}", "{run_id}", "{cwd}")
    prompt = "two words; $(id) `id` \ud800"
    outcome = await executor.run(Task("a", prompt), RunRecorder(tmp_path).context())
    assert outcome.output == f"{[prompt.replace(chr(0xD800), '?'), RUN_ID, str(tmp_path)]} ''\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_secret_of_the_server_is_not_in_the_childs_environment(tmp_path: Path) -> None:
    """P1, P6: the kernel shows it neither for the program nor for its children."""
    code = "fork(lambda: say(repr(open('/proc/self/environ').read()))); os.wait()"
    executor = python(
        code, env={"GIVEN": "${WANTED}"}, environment={"SECRET": "planted", "WANTED": "w", "CLAUDECODE": "1"}
    )
    context = RunRecorder(tmp_path).context(env={"RETINUE_CHILD_TOKEN": "t"})
    outcome = await executor.run(Task("a", ""), context)
    assert sorted(literal_eval(outcome.output).rstrip("\0").split("\0")) == [
        "GIVEN=w",
        f"PATH={os.environ['PATH']}",
        "RETINUE_CHILD_TOKEN=t",
        f"RETINUE_RUN_ID={RUN_ID}",
    ]


async def test_a_failing_program_reports_its_exit_code_and_last_fifty_lines(tmp_path: Path) -> None:
    """P8."""
    code = "[say('line', n) for n in range(80)]; sys.stderr.write('fatal'); sys.exit(3)"
    outcome = await python(code).run(Task("a", ""), RunRecorder(tmp_path).context())
    assert (outcome.status, outcome.exit_code, outcome.cut) == ("error", 3, True)
    assert outcome.error and outcome.error.as_dict()["code"] == "program_failed"
    assert "exit code 3" in outcome.error.message
    lines = outcome.output.splitlines()
    assert len(lines) == 50
    assert {"line 79", "fatal"} <= set(lines)


async def test_a_program_past_its_deadline_is_ended_with_its_tree_and_its_output_is_kept(
    tmp_path: Path,
) -> None:
    """P2, P5."""
    recorder = RunRecorder(tmp_path, lines_wanted=STUBBORN_TREE_SIZE)
    executor = python(STUBBORN_TREE)
    outcome = await executor.run(Task("a", ""), recorder.context(seconds=2.0))
    assert (outcome.status, outcome.exit_code, outcome.survivors) == ("timeout", None, ())
    assert outcome.error and outcome.error.data == {"seconds": 2.0}
    assert sorted(outcome.output.splitlines()) == sorted(recorder.lines) != []
    assert recorder.processes() == set()


async def test_a_cancelled_program_is_ended_with_its_tree_and_its_output_is_kept(tmp_path: Path) -> None:
    """P5: the cancellation passes through, and even half a line is kept."""
    recorder = RunRecorder(tmp_path, lines_wanted=STUBBORN_TREE_SIZE)
    tree = set[ProcessIdentity]()
    async with anyio.create_task_group() as tasks:
        code = "os.write(2, b'half a line');" + STUBBORN_TREE.lstrip()
        tasks.start_soon(python(code).run, Task("a", ""), recorder.context())
        with anyio.fail_after(WAIT):
            await recorder.enough.wait()
        tree = recorder.processes()
        assert len(tree) == STUBBORN_TREE_SIZE
        tasks.cancel_scope.cancel()
    assert still_alive(tree) == []
    assert recorder.lines[-1] == "half a line"


async def test_a_program_that_writes_too_much_is_ended_at_the_limit(tmp_path: Path) -> None:
    """P2: the error names the limit, and the output before it is kept."""
    recorder = RunRecorder(tmp_path)
    executor = python("while True: os.write(1, b'x' * 999 + b'\\n')", max_output_bytes=50_000)
    with anyio.fail_after(2 * WAIT):
        outcome = await executor.run(Task("a", ""), recorder.context())
    assert outcome.status == "error"
    assert outcome.error and outcome.error.data["kind"] == "output_bytes"
    assert sum(len(line) + 1 for line in recorder.lines) == outcome.usage["output_bytes"] == 50_000


async def test_a_missing_program_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    """P8: the error is raised, and nothing was started or recorded."""
    recorder = RunRecorder(tmp_path)
    executor = CommandExecutor(
        CommandConfig(CommandTemplate(("no-such-program",))), {"PATH": os.environ["PATH"]}
    )
    with pytest.raises(Unavailable, match="no-such-program cannot start"):
        await executor.run(Task("a", "x"), recorder.context())
    assert recorder.events == []


async def test_a_missing_variable_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    """P7."""
    with pytest.raises(ConfigInvalid, match="ABSENT"):
        await python("", env={"KEY": "${ABSENT}"}).run(Task("a", "x"), RunRecorder(tmp_path).context())


async def test_the_repr_of_a_configuration_shows_no_environment() -> None:
    """P6."""
    assert "s3cr3t" not in repr(CommandConfig(CommandTemplate(("agent",)), env={"TOKEN": "s3cr3t"}))


async def test_concurrent_runs_do_not_mix(tmp_path: Path) -> None:
    """P1."""
    answers: dict[str, str] = {}

    async def one(prompt: str) -> None:
        outcome = await python("print(sys.stdin.read())").run(
            Task("a", prompt), RunRecorder(tmp_path).context()
        )
        answers[prompt] = outcome.output

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(one, f"prompt {number}")
    assert answers == {f"prompt {number}": f"prompt {number}\n" for number in range(12)}


class RecordingSandbox:
    """A sandbox that encloses nothing and records what it cleared."""

    name = "recording"
    has_host_programs = False

    def __init__(self) -> None:
        self.enclosed: list[Program] = []
        self.cleared: list[Program] = []

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        self.enclosed.append(program)
        return program

    async def clear(self, program: Program) -> None:
        self.cleared.append(program)


@pytest.mark.parametrize(("script", "is_cleared"), [("echo done", False), ("sleep 1000", True)])
async def test_container_is_removed_unless_its_program_exited_P5(
    tmp_path: Path, script: str, is_cleared: bool
) -> None:
    sandbox = RecordingSandbox()
    agent = Agent(name="w", description="d", executor="command", source="test", container="image")
    config = CommandConfig(CommandTemplate(("sh", "-c", script)))
    executor = CommandInContainer(config, {"PATH": os.environ["PATH"]}, agent, sandbox, tmp_path / "data")
    context = RunRecorder(tmp_path).context(seconds=1.0 if is_cleared else WAIT)
    outcome = await executor.run(Task("w", "task"), context)
    assert outcome.facts["isolation"] == "recording"
    assert sandbox.cleared == (sandbox.enclosed if is_cleared else [])
