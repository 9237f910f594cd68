"""The `command` executor: performs a task with any program, started without a shell.

Knows no particular CLI.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from retinue.core import Executor, Outcome, ProgramFailed, RunContext, Task
from retinue.executors.process import (
    MAX_OUTPUT_BYTES,
    CommandTemplate,
    Program,
    ProgramRun,
    Transcript,
    child_environment,
    collect_secrets,
)

WrapProgram = Callable[[Program], Program]
"""Puts a program into a sandbox."""


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """How to run an agent's program."""

    template: CommandTemplate
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables to set for the program. `${NAME}` is replaced by the server's variable of that name."""
    grace: float = 1.0
    """Seconds from SIGTERM to SIGKILL."""
    max_output_bytes: int = MAX_OUTPUT_BYTES
    """Output beyond this ends the run."""


class CommandExecutor:
    """Performs each task with one run of a program. Its stdout is the answer."""

    isolation = "none"

    def __init__(
        self, command: CommandConfig, environment: Mapping[str, str], wrap_program: WrapProgram | None = None
    ) -> None:
        """`environment` is the server's own; the program gets only the allowed variables of it."""
        self._command = command
        self._environment = environment
        self._wrap_program = wrap_program

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        prompt = task.prompt.encode("utf-8", "replace")  # a lone surrogate cannot be encoded
        program = self.program(prompt.decode(), ctx)
        transcript = Transcript(ctx.emit, max_bytes=self._command.max_output_bytes)
        run = ProgramRun(program, transcript, seconds=ctx.seconds, on_start=ctx.started)
        async with run.start(stdin=b"" if self._command.template.takes_prompt else prompt):
            await run.wait()
        error = run.error or _exit_error(program.name, run.exit_code)
        shown = transcript.last_lines if error else transcript.answer
        return Outcome(
            shown.text,
            cut=shown.cut,
            exit_code=run.exit_code,
            error=error,
            usage=run.usage,
            survivors=run.survivors,
            facts={"isolation": self.isolation},
        )

    @contextmanager
    def preview_program(self, prompt: str, ctx: RunContext) -> Generator[tuple[Program, None]]:
        """Yield the program that a run would start, and no folder, because a run has none of its own."""
        yield self.program(prompt, ctx), None

    def program(self, prompt: str, ctx: RunContext) -> Program:
        """Return the program to start for a prompt, and register its secrets for redaction."""
        command = self._command
        environment = child_environment(self._environment, run_id=ctx.run_id, explicit=command.env)
        ctx.hide(collect_secrets(self._environment, command.env.values()))
        argv = command.template.fill({"prompt": prompt, "run_id": ctx.run_id, "cwd": str(ctx.cwd)})
        program = Program(argv, {**environment, **ctx.env}, ctx.cwd, command.grace)
        return program if self._wrap_program is None else self._wrap_program(program)


def _exit_error(name: str, exit_code: int | None) -> ProgramFailed | None:
    """Return the error for a failing exit code, or None for success."""
    if not exit_code:
        return None
    how = f"with exit code {exit_code}" if exit_code > 0 else f"by signal {-exit_code}"
    return ProgramFailed(f"{name} ended {how}", exit_code=exit_code)


class WithPreamble:
    """Wraps an executor and puts a text before each task, because a program has no system prompt."""

    def __init__(self, preamble: str, executor: Executor) -> None:
        self._preamble = preamble
        self._executor = executor

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        prompt = f"{self._preamble}\n\n{task.prompt}" if self._preamble else task.prompt
        return await self._executor.run(dataclasses.replace(task, prompt=prompt), ctx)
