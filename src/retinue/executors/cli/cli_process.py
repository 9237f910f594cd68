"""Performs a task with a coding CLI that takes a prompt on stdin and tells its events on stdout.

Which CLI is data (`cli_profiles`) and small classes: one starts it, one reads it, and where it asks while it
works, one answers.
"""

from __future__ import annotations

import time

import anyio

from retinue.core import (
    Agent,
    DeadlineExceeded,
    LimitExceeded,
    Outcome,
    ProgramFailed,
    RetinueError,
    RunContext,
    Task,
)
from retinue.executors.cli.cli_job import Cli
from retinue.executors.cli.cli_launch import CliLauncher, Prepared
from retinue.executors.cli.cli_report import CliEvents, CliReport, unfinished
from retinue.executors.cli.event_lines import EventLines
from retinue.executors.process import ProcessGroup, Program

FLUSH_SECONDS = 1.0
LINGER_SECONDS = 10.0
"""How long a CLI may stay in silence once it has told its result; claude does while commands of its go on."""


class CliExecutor:
    def __init__(self, cli: Cli, agent: Agent, setting: CliLauncher) -> None:
        self._cli = cli
        self._agent = agent
        self._setting = setting

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        with self._setting.starting(self._cli, self._agent, ctx) as ready:
            events = self._cli.events(ready.prepared.job)
            return await self._perform(task.prompt, ready.prepared, ready.program, events, ctx)

    async def _perform(
        self, prompt: str, prepared: Prepared, program: Program, events: CliEvents, ctx: RunContext
    ) -> Outcome:
        dialogue = self._cli.dialogue(ctx)
        lines = EventLines(events, ctx.emit, dialogue.hear) if dialogue else EventLines(events, ctx.emit)
        began = time.monotonic()
        group: ProcessGroup | None = None
        exit_code: int | None = None
        error: RetinueError | None = None
        try:
            with anyio.move_on_after(ctx.seconds) as limit:
                async with (
                    prepared.reachable(),
                    ProcessGroup.start(
                        program,
                        stdin=None if dialogue else prompt.encode("utf-8", "replace"),
                        on_output=lines.take,
                        on_start=ctx.started,
                    ) as group,
                ):
                    if dialogue:
                        dialogue.begin(group.stdin, prompt)
                    exit_code = await self._exited(group, events, lines)
            if limit.cancelled_caught:
                name = self._cli.profile.name
                error = DeadlineExceeded(f"{name} had not ended after {ctx.seconds:g} seconds")
        except (LimitExceeded, ProgramFailed) as ended:
            error = ended
        finally:
            with anyio.CancelScope(shield=True):
                if dialogue:
                    await dialogue.end()
                if exit_code is None:
                    await prepared.clear(program)
                with anyio.move_on_after(FLUSH_SECONDS):
                    await lines.finish()
        report = events.report
        error = error or report.error or self._unproved(report, exit_code, lines.complaints.text)
        error = await report.charge(ctx.spending, error)
        usage = {"duration_ms": round((time.monotonic() - began) * 1000), "output_bytes": lines.bytes}
        return Outcome(
            report.answer,
            exit_code=exit_code,
            error=error,
            usage={**usage, **report.usage()},
            value=report.structured,
            facts={**report.facts(), "isolation": prepared.isolation},
            notes=(*report.notes, *self._lingered(exit_code, error), *prepared.notes),
            survivors=tuple(group.survivors) if group else (),
        )

    async def _exited(self, group: ProcessGroup, events: CliEvents, lines: EventLines) -> int | None:
        """The exit code; none if it had to be ended after its result."""
        heard = -1
        while True:
            with anyio.move_on_after(LINGER_SECONDS):
                return await group.wait()
            if events.report.ended and lines.bytes == heard:
                return None
            heard = lines.bytes

    def _lingered(self, exit_code: int | None, error: RetinueError | None) -> tuple[str, ...]:
        if exit_code is not None or error is not None:
            return ()
        return (
            f"{self._cli.profile.name} did not end after its result: it was ended with all it had started",
        )

    def _unproved(self, report: CliReport, exit_code: int | None, complaints: str) -> RetinueError | None:
        if report.ended and not exit_code:
            return None
        return unfinished(self._cli.profile.name, exit_code, complaints)
