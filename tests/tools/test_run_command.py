"""The tool that runs commands: decided first, without a shell unless it needs one, bounded (P2, P7)."""

from __future__ import annotations

import pytest

from retinue.core import Json, ToolRequest, Verdict
from retinue.redaction import SecretRedactor
from retinue.tools import CommandEnd, Toolbox, run_command_tool
from retinue.tools.run_command import MAX_SECONDS, describe_end, program_of
from retinue.tools.toolbox import ToolAnswer

pytestmark = pytest.mark.anyio


class Runner:
    """Runs nothing: it records what would run."""

    def __init__(self, *, allows: bool = True) -> None:
        self.ran: list[tuple[tuple[str, ...], float]] = []
        self.asked: list[str] = []
        self._allows = allows
        self.box = Toolbox([run_command_tool(self._run, self._permit, "/work")], SecretRedactor())

    async def _run(self, argv: tuple[str, ...], seconds: float) -> CommandEnd:
        self.ran.append((argv, seconds))
        return CommandEnd(1, "1 failed\n", 0.5)

    async def _permit(self, request: ToolRequest) -> Verdict:
        self.asked.append(str(request))
        return Verdict(self._allows, "ask first")

    async def call(self, **arguments: Json) -> ToolAnswer:
        return await self.box.call("bash", arguments, 500)


async def test_exit_code_and_output_are_told() -> None:
    runner = Runner()
    answer = await runner.call(command="python -m pytest -q")
    assert answer.text == "exit code 1, after 0.5 seconds\n1 failed"
    assert runner.asked == ["Bash(python -m pytest -q)"]
    assert runner.ran == [(("python", "-m", "pytest", "-q"), 120.0)]


async def test_denied_command_does_not_run_P7() -> None:
    runner = Runner(allows=False)
    answer = await runner.call(command="rm -rf /")
    assert answer.failed and "ask first" in answer.text
    assert runner.ran == []


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("pytest -q", ("pytest", "-q")),
        ("pytest -k 'a and b'", ("pytest", "-k", "a and b")),
        ("pytest -q | tail -3", ("sh", "-c", "pytest -q | tail -3")),
        ("cd a && make", ("sh", "-c", "cd a && make")),
        ("ls *.py", ("sh", "-c", "ls *.py")),
        ("echo $HOME", ("sh", "-c", "echo $HOME")),
        ("A=1 make", ("sh", "-c", "A=1 make")),
        ("make > log", ("sh", "-c", "make > log")),
        ("echo $(id)", ("sh", "-c", "echo $(id)")),
        ("echo 'open", ("sh", "-c", "echo 'open")),
    ],
)
def test_shell_runs_only_what_needs_one(line: str, program: tuple[str, ...]) -> None:
    assert program_of(line) == program


async def test_list_of_arguments_is_taken_as_it_is() -> None:
    runner = Runner()
    await runner.call(command=["echo", "a b; rm x"])
    assert runner.ran[0][0] == ("echo", "a b; rm x")


@pytest.mark.parametrize("command", ["", "  ", [], ["a", 1], "a\0b", {"a": 1}])
async def test_malformed_command_is_refused(command: Json) -> None:
    runner = Runner()
    assert (await runner.call(command=command)).failed
    assert runner.ran == []


async def test_time_is_bounded_P2() -> None:
    runner = Runner()
    await runner.call(command="sleep 1", timeout=10**9)
    await runner.call(command="sleep 2", timeout=-5)
    assert [seconds for _, seconds in runner.ran] == [MAX_SECONDS, 1.0]


def test_long_output_is_cut_in_the_middle_and_says_so_P4() -> None:
    lines = [f"line {number}" for number in range(2_000)]
    shown = describe_end(CommandEnd(1, "\n".join(lines) + "\n", 3.0), 300)
    assert shown.startswith("exit code 1, after 3 seconds\nline 0\n")
    assert shown.endswith("line 1999")
    assert "lines left out]" in shown
    assert len(shown) < 2_000


def test_command_that_was_ended_says_why() -> None:
    shown = describe_end(CommandEnd(None, "", 120.0, "pytest had not ended after 120 seconds"), 300)
    assert shown == "pytest had not ended after 120 seconds\n(no output)"
