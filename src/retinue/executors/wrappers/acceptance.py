"""Runs an agent's acceptance commands after it, in the same sandbox: what it claims is not enough (P3).

Their real exit codes and last lines are part of the result, and one that fails makes the run fail.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import anyio

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
)
from retinue.executors.process import ProcessGroup, Program, Transcript

MAX_OUTPUT_BYTES = 16 << 20
LONGEST_LINE = 1 << 16
TAIL_CHARS = 2_000

MakeProgram = Callable[[tuple[str, ...], RunContext], Program]
"""A command in the surroundings of the agent's own run."""
Clear = Callable[[Program], Awaitable[None]]
"""Removes what a command that did not end by itself may have left of its surroundings."""


class WithAcceptance:
    """An executor whose success depends on commands that it cannot influence."""

    def __init__(
        self, executor: Executor, commands: Sequence[tuple[str, ...]], enclosed: MakeProgram, clear: Clear
    ) -> None:
        self._executor = executor
        self._commands = commands
        self._enclosed = enclosed
        self._clear = clear

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        outcome = await self._executor.run(task, ctx)
        if outcome.error is not None:
            return outcome
        checks = [await self._check(command, ctx) for command in self._commands]
        failed = [check for check in checks if check["exit_code"] != 0]
        error: RetinueError | None = None
        if failed:
            first = failed[0]
            error = AcceptanceFailed(
                f"an acceptance command failed: {first['command']} ended with exit code {first['exit_code']}",
                hint="its last lines are in the result, all of them in the log",
                exit_code=first["exit_code"],
            )
        return replace(outcome, error=error, facts={**outcome.facts, "acceptance": checks})

    async def _check(self, command: tuple[str, ...], ctx: RunContext) -> dict[str, Json]:
        shown = shlex.join(command)
        await ctx.emit(OutputLine("stdout", f"acceptance: {shown}"))
        transcript = Transcript(ctx.emit, max_bytes=MAX_OUTPUT_BYTES, longest_line=LONGEST_LINE)
        exit_code: int | None = None
        program: Program | None = None
        try:
            program = self._enclosed(command, ctx)
            async with ProcessGroup.start(
                program, stdin=b"", on_output=transcript.take, on_start=ctx.started
            ) as group:
                exit_code = await group.wait()
            said = transcript.last_lines.text
        except RetinueError as error:  # it could not be started, or said too much: it did not succeed
            said = error.message
        finally:
            with anyio.CancelScope(shield=True):
                if program and exit_code is None:
                    await self._clear(program)
                await transcript.finish()
        return {"command": clip(shown, 200), "exit_code": exit_code, "tail": said.strip()[-TAIL_CHARS:]}
