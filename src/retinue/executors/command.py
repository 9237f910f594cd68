"""The `command` executor: any program performs the task, without a shell between. Knows no particular CLI."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from retinue.core import (
    DeadlineExceeded,
    LimitExceeded,
    Outcome,
    ProgramFailed,
    RetinueError,
    RunContext,
    Task,
)
from retinue.executors.process import (
    ProcessGroup,
    Program,
    Template,
    Transcript,
    child_environment,
    secrets_of,
)

FLUSH_SECONDS = 1.0

WrapProgram = Callable[[Program], Program]


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """How an agent's program is run: its configuration."""

    template: Template
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables of its own; `${NAME}` takes the server's variable of that name."""
    inherit: tuple[str, ...] = ()
    """Variables of the server to pass on besides the usual few; `*` stands for anything."""
    grace: float = 1.0
    """Seconds between asking it to stop and killing it."""
    max_output_bytes: int = 16 << 20
    """Output beyond this ends the run."""
    longest_line: int = 1 << 16
    """Characters; a longer line comes in pieces."""


class CommandExecutor:
    isolation = "none"

    def __init__(
        self, command: CommandConfig, environment: Mapping[str, str], enclosed: WrapProgram | None = None
    ) -> None:
        """`enclosed` puts the program into a sandbox."""
        self._command = command
        self._environment = environment
        """The server's own, of which the program sees only what is allowed."""
        self._enclosed = enclosed

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        command = self._command
        prompt = task.prompt.encode("utf-8", "replace")  # half a surrogate pair cannot be passed on
        program = self.program(prompt.decode(), ctx)
        stdin = b"" if command.template.takes_prompt else prompt
        transcript = Transcript(
            ctx.emit, max_bytes=command.max_output_bytes, longest_line=command.longest_line
        )
        began = time.monotonic()
        group: ProcessGroup | None = None
        exit_code: int | None = None
        error: RetinueError | None = None
        try:
            with anyio.move_on_after(ctx.seconds) as limit:
                async with ProcessGroup.start(
                    program, stdin=stdin, on_output=transcript.take, on_start=ctx.started
                ) as group:
                    exit_code = await group.wait()
            error = _late(program, ctx.seconds) if limit.cancelled_caught else _failure(program, exit_code)
        except (LimitExceeded, ProgramFailed) as ended:
            error = ended
        finally:
            with anyio.move_on_after(FLUSH_SECONDS, shield=True):
                await transcript.finish()
        shown = transcript.last_lines if error else transcript.answer
        return Outcome(
            shown.text,
            cut=shown.cut,
            exit_code=exit_code,
            error=error,
            usage={
                "duration_ms": round((time.monotonic() - began) * 1000),
                "output_bytes": transcript.bytes,
            },
            survivors=tuple(group.survivors) if group else (),
            facts={"isolation": self.isolation},
        )

    @contextmanager
    def starting(self, prompt: str, ctx: RunContext) -> Generator[tuple[Program, None]]:
        """What a run starts; it has no folder of its own. What `agents show` tells."""
        yield self.program(prompt, ctx), None

    def program(self, prompt: str, ctx: RunContext) -> Program:
        command = self._command
        values = {"prompt": prompt, "run_id": ctx.run_id, "cwd": str(ctx.cwd)}
        environment = child_environment(
            self._environment, run_id=ctx.run_id, inherit=command.inherit, explicit=command.env
        )
        ctx.hide(secrets_of(self._environment, command.env.values(), command.inherit))
        environment |= ctx.env
        program = Program(command.template.fill(values), environment, ctx.cwd, command.grace)
        return program if self._enclosed is None else self._enclosed(program)


def _late(program: Program, seconds: float | None) -> DeadlineExceeded:
    return DeadlineExceeded(f"{program.name} had not ended after {seconds:g} seconds", seconds=seconds)


def _failure(program: Program, exit_code: int | None) -> ProgramFailed | None:
    if not exit_code:
        return None
    how = f"with exit code {exit_code}" if exit_code > 0 else f"by signal {-exit_code}"
    return ProgramFailed(f"{program.name} ended {how}", exit_code=exit_code)
