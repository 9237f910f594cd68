"""The `command` executor: any program performs a task, and what it reports is what happened."""

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
from retinue.executors.process.identity import identify
from tests.executors.process_trees import (
    BASICS,
    STUBBORN_FAMILY,
    STUBBORN_FAMILY_SIZE,
    WAIT,
    left_of,
    wait_until,
)

pytestmark = pytest.mark.anyio


@dataclass
class Witness:
    """The runtime in small: gives the context and keeps what came."""

    cwd: Path
    events: list[OutputLine | ProcessIdentity] = field(default_factory=list[OutputLine | ProcessIdentity])
    enough: anyio.Event = field(default_factory=anyio.Event)
    lines_wanted: int = 1

    async def note(self, event: OutputLine | ProcessIdentity) -> None:
        self.events.append(event)
        if len(self.lines) >= self.lines_wanted:
            self.enough.set()

    @property
    def lines(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, OutputLine)]

    def context(self, seconds: float | None = None, env: Mapping[str, str] | None = None) -> RunContext:
        return RunContext("run-1", self.cwd, seconds, emit=self.note, started=self.note, env=env or {})

    def family(self) -> set[ProcessIdentity]:
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


async def test_variable_that_the_agent_was_given_is_hidden_before_its_program_can_tell_it_P6(
    tmp_path: Path,
) -> None:
    hidden: list[str] = []
    context = replace(Witness(tmp_path).context(), hide=hidden.extend)
    executor = python("pass", env={"GIVEN": "key=${WANTED}"}, environment={"WANTED": "w" * 9, "OTHER": "o"})
    await executor.run(Task("a", ""), context)
    assert hidden == ["w" * 9]


async def test_outcome_says_that_nothing_held_the_program(tmp_path: Path) -> None:
    """P8: whoever reads a result must not take an agent's own program for a sandboxed one."""
    for code in ("pass", "raise SystemExit(3)"):
        outcome = await python(code).run(Task("a", ""), Witness(tmp_path).context())
        assert outcome.facts == {"isolation": "none"}


async def test_the_prompt_goes_to_stdin_and_stdout_is_the_answer(tmp_path: Path) -> None:
    """P8."""
    executor: Executor = python("sys.stderr.write('thinking\\n'); print(sys.stdin.read()[::-1], end='')")
    witness = Witness(tmp_path)
    outcome = await executor.run(Task("reverser", "für 😀"), witness.context())
    assert outcome == Outcome("😀 rüf", exit_code=0, usage=outcome.usage, facts=outcome.facts)
    assert outcome.status == "success"
    assert outcome.usage["output_bytes"] == len("thinking\n😀 rüf".encode())
    assert sorted(witness.lines) == ["thinking", "😀 rüf"]


async def test_the_process_is_announced_before_its_output_though_recording_it_takes_a_while(
    tmp_path: Path,
) -> None:
    """P5: the store knows whom to end before there is anything to show."""
    witness = Witness(tmp_path)

    async def slowly(identity: ProcessIdentity) -> None:
        await anyio.to_thread.run_sync(wait_until, (tmp_path / "said").exists)
        for _ in range(20):  # turns in which a listener would have heard it
            await anyio.lowlevel.checkpoint()
        await witness.note(identity)

    context = replace(witness.context(), started=slowly)
    await python("say('pid', os.getpid()); open('said', 'w')").run(Task("a", ""), context)
    announced, line = witness.events
    assert isinstance(announced, ProcessIdentity) and isinstance(line, OutputLine)
    assert line.text == f"pid {announced.pid}"


async def test_a_prompt_in_the_arguments_leaves_stdin_empty(tmp_path: Path) -> None:
    """P1: one argument, whatever is in it."""
    executor = python("print(sys.argv[1:], repr(sys.stdin.read()))", "{prompt}", "{run_id}", "{cwd}")
    prompt = "two words; $(id) `id` \ud800"
    outcome = await executor.run(Task("a", prompt), Witness(tmp_path).context())
    assert outcome.output == f"{[prompt.replace(chr(0xD800), '?'), 'run-1', str(tmp_path)]} ''\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_secret_of_the_server_is_not_in_the_childs_environment(tmp_path: Path) -> None:
    """P1, P6: not in what the kernel shows, for the program or its own children."""
    code = "fork(lambda: say(repr(open('/proc/self/environ').read()))); os.wait()"
    executor = python(
        code, env={"GIVEN": "${WANTED}"}, environment={"SECRET": "planted", "WANTED": "w", "CLAUDECODE": "1"}
    )
    context = Witness(tmp_path).context(env={"RETINUE_CHILD_TOKEN": "t"})
    outcome = await executor.run(Task("a", ""), context)
    assert sorted(literal_eval(outcome.output).rstrip("\0").split("\0")) == [
        "GIVEN=w",
        f"PATH={os.environ['PATH']}",
        "RETINUE_CHILD_TOKEN=t",
        "RETINUE_RUN_ID=run-1",
    ]


async def test_a_failing_program_reports_its_code_and_its_last_fifty_lines(tmp_path: Path) -> None:
    """P8."""
    code = "[say('line', n) for n in range(80)]; sys.stderr.write('fatal'); sys.exit(3)"
    outcome = await python(code).run(Task("a", ""), Witness(tmp_path).context())
    assert (outcome.status, outcome.exit_code, outcome.cut) == ("error", 3, True)
    assert outcome.error and outcome.error.as_dict()["code"] == "program_failed"
    assert "exit code 3" in outcome.error.message
    lines = outcome.output.splitlines()
    assert len(lines) == 50
    assert {"line 79", "fatal"} <= set(lines)


async def test_a_program_past_its_deadline_is_ended_with_all_it_started_and_its_words_are_kept(
    tmp_path: Path,
) -> None:
    """P2, P5."""
    witness = Witness(tmp_path, lines_wanted=STUBBORN_FAMILY_SIZE)
    executor = python(STUBBORN_FAMILY)
    outcome = await executor.run(Task("a", ""), witness.context(seconds=1.0))
    assert (outcome.status, outcome.exit_code, outcome.survivors) == ("timeout", None, ())
    assert outcome.error and outcome.error.data == {"seconds": 1.0}
    assert sorted(outcome.output.splitlines()) == sorted(witness.lines) != []
    assert witness.family() == set()


async def test_a_canceled_program_is_ended_with_all_it_started_and_its_words_are_kept(tmp_path: Path) -> None:
    """P5: the cancellation itself passes through; even half a line is kept."""
    witness = Witness(tmp_path, lines_wanted=STUBBORN_FAMILY_SIZE)
    family = set[ProcessIdentity]()
    async with anyio.create_task_group() as tasks:
        code = "os.write(2, b'half a line');" + STUBBORN_FAMILY.lstrip()
        tasks.start_soon(python(code).run, Task("a", ""), witness.context())
        with anyio.fail_after(WAIT):
            await witness.enough.wait()
        family = witness.family()
        assert len(family) == STUBBORN_FAMILY_SIZE
        tasks.cancel_scope.cancel()
    assert left_of(family) == []
    assert witness.lines[-1] == "half a line"


async def test_a_program_that_says_too_much_is_stopped_at_the_limit(tmp_path: Path) -> None:
    """P2: the limit is named, what was said before it is kept."""
    witness = Witness(tmp_path)
    executor = python("while True: os.write(1, b'x' * 999 + b'\\n')", max_output_bytes=50_000)
    with anyio.fail_after(2 * WAIT):
        outcome = await executor.run(Task("a", ""), witness.context())
    assert outcome.status == "error"
    assert outcome.error and outcome.error.data["kind"] == "output_bytes"
    assert sum(len(line) + 1 for line in witness.lines) == outcome.usage["output_bytes"] == 50_000


async def test_a_program_that_is_not_there_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    """P8: it is raised, nothing was started or announced."""
    witness = Witness(tmp_path)
    executor = CommandExecutor(
        CommandConfig(CommandTemplate(("no-such-program",))), {"PATH": os.environ["PATH"]}
    )
    with pytest.raises(Unavailable, match="no-such-program cannot start"):
        await executor.run(Task("a", "x"), witness.context())
    assert witness.events == []


async def test_a_missing_variable_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    """P7."""
    with pytest.raises(ConfigInvalid, match="ABSENT"):
        await python("", env={"KEY": "${ABSENT}"}).run(Task("a", "x"), Witness(tmp_path).context())


async def test_a_configuration_never_shows_its_environment() -> None:
    """P6."""
    assert "s3cr3t" not in repr(CommandConfig(CommandTemplate(("agent",)), env={"TOKEN": "s3cr3t"}))


async def test_many_at_once_do_not_mix(tmp_path: Path) -> None:
    """P1."""
    answers: dict[str, str] = {}

    async def one(prompt: str) -> None:
        outcome = await python("print(sys.stdin.read())").run(Task("a", prompt), Witness(tmp_path).context())
        answers[prompt] = outcome.output

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(one, f"prompt {number}")
    assert answers == {f"prompt {number}": f"prompt {number}\n" for number in range(12)}
