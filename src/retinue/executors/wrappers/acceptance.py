"""Runs an agent's acceptance commands after its run, in the same sandbox (P3).

A run fails if one of the commands fails, whatever the agent claims. The result contains the exit code and
the last lines of each command.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from retinue.core import (
    AcceptanceFailed,
    Executor,
    Json,
    Outcome,
    OutputLine,
    RetinueError,
    RunContext,
    Task,
    clip,
    clip_start,
)
from retinue.executors.process import CleanUp, Program, ProgramRun, Transcript

TAIL_CHARS = 2_000

MakeProgram = Callable[[tuple[str, ...], RunContext], Awaitable[Program]]
"""Returns the program for a command, in the same sandbox as the agent's run."""


class WithAcceptance:
    """Wraps an executor: a run succeeds only if all acceptance commands succeed."""

    def __init__(
        self,
        executor: Executor,
        commands: Sequence[tuple[str, ...]],
        make_program: MakeProgram,
        clean_up: CleanUp,
    ) -> None:
        self._executor = executor
        self._commands = commands
        self._make_program = make_program
        self._clean_up = clean_up

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        outcome = await self._executor.run(task, ctx)
        if outcome.error is not None:
            return outcome
        checks = [
            await run_command("acceptance", command, ctx, self._make_program, self._clean_up)
            for command in self._commands
        ]
        failed = [check for check in checks if check["exit_code"] != 0]
        error: RetinueError | None = None
        if failed:
            first = failed[0]
            error = AcceptanceFailed(
                f"an acceptance command failed: {first['command']} ended with exit code {first['exit_code']}",
                hint="the result contains its last lines, and the log all of them",
                exit_code=first["exit_code"],
            )
        return replace(outcome, error=error, facts={**outcome.facts, "acceptance": checks})


async def run_command(
    label: str,
    command: tuple[str, ...],
    ctx: RunContext,
    make_program: MakeProgram,
    clean_up: CleanUp,
    seconds: float | None = None,
) -> dict[str, Json]:
    """Run one command beside a task and return its command line, exit code and last lines."""
    shown = shlex.join(command)
    await ctx.emit(OutputLine("stdout", f"{label}: {shown}"))
    transcript = Transcript(ctx.emit)
    exit_code: int | None = None
    try:
        program = await make_program(command, ctx)
        run = ProgramRun(program, transcript, seconds=seconds, on_start=ctx.started, clean_up=clean_up)
        async with run.start(stdin=b""):
            await run.wait()
        exit_code = None if run.error else run.exit_code
        tail = run.error.message if run.error else transcript.last_lines.text
    except RetinueError as error:  # it could not start
        tail = error.message
    ctx.activity.command(shown, exit_code)
    return {
        "command": clip(shown, 200),
        "exit_code": exit_code,
        "tail": clip_start(tail.strip(), TAIL_CHARS),
    }
