"""The tool that runs a command: one program with its arguments, or a line for a shell.

Every command is decided by `permit`. Knows nothing of sandboxes or processes: `run` starts the program.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from retinue.core import (
    RUN_COMMAND,
    InvalidInput,
    Permit,
    ToolRequest,
    ToolSpec,
    Unauthorized,
    clip,
    counted,
    estimate_tokens,
    words_without_shell,
)
from retinue.tools.toolbox import Arguments, Tool, parameters

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
MAX_LINE_CHARS = 400
FIRST_LINES = 8
"""Lines of the beginning that stay if an output is cut. The end is more important: results are there."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended."""

    exit_code: int | None
    """None if it did not end by itself."""
    output: str
    """The end of both streams, in the order of arrival."""
    seconds: float
    problem: str = ""
    """Why it was ended: its deadline, or a limit."""


RunProgram = Callable[[tuple[str, ...], float], Awaitable[CommandEnd]]
"""Runs a program with a deadline in seconds. Raises if it cannot start."""


def run_command_tool(run: RunProgram, permit: Permit, folder: str) -> Tool:
    """Return the tool. `folder` is where commands run; paths in permission rules are relative to it."""

    async def act(arguments: Arguments, tokens: int) -> str:
        line = _command_line(arguments)
        seconds = min(max(1, arguments.number("timeout", "seconds", default=DEFAULT_SECONDS)), MAX_SECONDS)
        verdict = await permit(ToolRequest.of("Bash", {"command": line}, folder))
        if not verdict.allowed:
            raise Unauthorized(f"the command may not run: {verdict.reason}")
        ended = await run(program_of(line), float(seconds))
        return describe_end(ended, tokens)

    spec = ToolSpec(
        RUN_COMMAND,
        "Run a command in the project's folder, and see its exit code and output.",
        parameters(
            ("command",),
            command=("string", "the command line, such as: python -m pytest -q"),
            timeout=("integer", f"seconds, {DEFAULT_SECONDS} if left out"),
        ),
    )
    return Tool(spec, act)


def _command_line(arguments: Arguments) -> str:
    value = arguments.values.get("command") or arguments.values.get("argv")
    if isinstance(value, list):
        if not value or not all(isinstance(word, str) for word in value):
            raise InvalidInput("run_command: `command` must be a command line")
        line = shlex.join(map(str, value))
    else:
        line = arguments.text("command", "cmd", "command_line")
    if not line.strip() or "\0" in line:
        raise InvalidInput("run_command: `command` is empty or contains a zero byte")
    return line


def program_of(line: str) -> tuple[str, ...]:
    """Return the program and its arguments; a shell only for a line that needs one."""
    return words_without_shell(line) or ("sh", "-c", line)


def describe_end(ended: CommandEnd, tokens: int) -> str:
    """Return what the model sees: how the command ended, and its output, cut in the middle."""
    elapsed = counted(round(ended.seconds, 1), "second")
    head = ended.problem or f"exit code {ended.exit_code}, after {elapsed}"
    lines = [clip(line, MAX_LINE_CHARS) for line in ended.output.rstrip("\n").split("\n")]
    if lines == [""]:
        return f"{head}\n(no output)"
    room = tokens - estimate_tokens(head) - 20
    sizes = [estimate_tokens(line + "\n") for line in lines]
    if sum(sizes) <= room:
        return "\n".join([head, *lines])
    first = min(FIRST_LINES, len(lines) // 2)
    while first and sum(sizes[:first]) > room // 3:
        first -= 1
    room -= sum(sizes[:first])
    last = len(lines)
    while last > first and sizes[last - 1] <= room:
        last -= 1
        room -= sizes[last]
    left_out = counted(last - first, "line")
    return "\n".join([head, *lines[:first], f"[{left_out} left out]", *lines[last:]])
