"""Runs a coding CLI that reads its prompt from stdin and prints events to stdout: claude and codex.

Knows no particular CLI. Each implements `EventStreamCli`: it says what to start, interprets the events, and
answers questions if the CLI asks any while it works.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Protocol

import anyio

from retinue.core import (
    Agent,
    DeadlineExceeded,
    LimitExceeded,
    Outcome,
    OutputLine,
    ProgramFailed,
    RetinueError,
    RunContext,
    Task,
)
from retinue.executors.cli.cli_launch import CliJob, CliLauncher, CodingCli, PreparedCli
from retinue.executors.cli.cli_output import (
    MAX_EVENT_BYTES,
    CliEvents,
    CliOutput,
    CliReport,
    missing_result_error,
)
from retinue.executors.process import ProcessGroup

FLUSH_S = 1.0
"""Limit for passing on the rest of the output after the CLI has ended."""
LINGER_S = 10.0
"""How long a CLI may stay silent after its result. Claude does so while its background commands run."""


class Dialogue(Protocol):
    """Talks to a CLI on its stdin while it works."""

    def begin(self, stdin: asyncio.StreamWriter, prompt: str) -> None:
        """Send the prompt."""
        ...

    def hear(self, event: Mapping[str, Any]) -> None:
        """Handle an event, which may be a question."""
        ...

    async def end(self) -> None:
        """Stop answering: the CLI has ended or is about to."""
        ...


class EventStreamCli(CodingCli, Protocol):
    """A coding CLI that prints events as JSON lines."""

    def events(self, job: CliJob) -> CliEvents: ...

    def dialogue(self, ctx: RunContext) -> Dialogue | None:
        """Return None for a CLI that reads its prompt and nothing else."""
        ...


class CliExecutor:
    """Performs tasks with a coding CLI that prints events."""

    def __init__(
        self,
        cli: EventStreamCli,
        agent: Agent,
        launcher: CliLauncher,
        *,
        linger_s: float = LINGER_S,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        """`linger_s` is how long the CLI may stay silent after its result before it is ended."""
        self._cli = cli
        self._agent = agent
        self._launcher = launcher
        self._linger_s = linger_s
        self._max_event_bytes = max_event_bytes

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        with self._launcher.prepare(self._cli, self._agent, ctx) as prepared:
            return await self._run(prepared, task.prompt, ctx)

    async def _run(self, prepared: PreparedCli, prompt: str, ctx: RunContext) -> Outcome:
        name = self._cli.traits.name
        events = self._cli.events(prepared.job)
        report = events.report
        dialogue = self._cli.dialogue(ctx)

        async def on_event(event: Mapping[str, Any]) -> None:
            for line in events.take(event):
                await ctx.emit(OutputLine("stdout", line))
            if dialogue:
                dialogue.hear(event)

        output = CliOutput(on_event, ctx.emit, max_event_bytes=self._max_event_bytes)
        began = time.monotonic()
        group: ProcessGroup | None = None
        exit_code: int | None = None
        error: RetinueError | None = None
        try:
            with anyio.move_on_after(ctx.seconds) as limit:
                async with (
                    prepared.connected(),
                    ProcessGroup.start(
                        prepared.program,
                        stdin=None if dialogue else prompt.encode("utf-8", "replace"),
                        on_output=output.take,
                        on_start=ctx.started,
                    ) as group,
                ):
                    if dialogue:
                        dialogue.begin(group.stdin, prompt)
                    exit_code = await self._wait(group, report, output)
            if limit.cancelled_caught:
                error = DeadlineExceeded(f"{name} had not ended after {ctx.seconds:g} seconds")
        except (LimitExceeded, ProgramFailed) as ended:
            error = ended
        finally:
            with anyio.CancelScope(shield=True):
                if dialogue:
                    await dialogue.end()
                if exit_code is None:
                    await prepared.remove_leftovers()
                with anyio.move_on_after(FLUSH_S):
                    await output.finish()
        error = error or report.error
        if error is None and (exit_code or not report.ended):
            error = missing_result_error(name, exit_code, output.other_text.text)
        error = await report.charge(ctx.spending, error)
        if exit_code is None and error is None:
            report.note(f"{name} did not exit after its result, so it was ended with all its processes")
        usage = {"duration_ms": round((time.monotonic() - began) * 1000), "output_bytes": output.bytes}
        return Outcome(
            report.answer,
            exit_code=exit_code,
            error=error,
            usage={**usage, **report.usage()},
            value=report.structured,
            facts={**report.facts(), "isolation": prepared.sandbox.name},
            notes=(*report.notes, *prepared.notes),
            survivors=tuple(group.survivors) if group else (),
        )

    async def _wait(self, group: ProcessGroup, report: CliReport, output: CliOutput) -> int | None:
        """Return the exit code, or None if the CLI reported its result and then stayed silent too long."""
        heard = -1
        while True:
            with anyio.move_on_after(self._linger_s):
                return await group.wait()
            if report.ended and output.bytes == heard:
                return None
            heard = output.bytes
