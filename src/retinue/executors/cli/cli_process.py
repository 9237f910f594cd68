"""Runs a coding CLI that reads its prompt from stdin and prints events to stdout: claude and codex.

Knows no particular CLI. Each implements `EventStreamCli`: it says what to start, interprets the events, and
answers questions if the CLI asks any while it works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from retinue.core import Agent, Outcome, OutputLine, RunContext, Task
from retinue.executors.cli.cli_job import CliJob, CodingCli
from retinue.executors.cli.cli_launch import CliLauncher, PreparedCli
from retinue.executors.cli.cli_output import (
    MAX_EVENT_BYTES,
    CliEvents,
    CliOutput,
    CliReport,
    missing_result_error,
    unverified_fact,
)
from retinue.executors.process import ProgramRun, run_uninterrupted
from retinue.executors.wrappers import prompt_with_skills

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
        secrets = await self._launcher.find_secrets(self._agent, ctx)
        with self._launcher.prepare(self._cli, self._agent, ctx, secrets) as prepared:
            prompt = prompt_with_skills(task.whole_prompt, ctx.skills)
            return await self._run(prepared, prompt, replace(ctx, permit=prepared.permit))

    async def _run(self, prepared: PreparedCli, prompt: str, ctx: RunContext) -> Outcome:
        name = self._cli.traits.name
        events = self._cli.events(prepared.job)
        report = events.report
        report.activity = ctx.activity
        report.activity.sees_calls = True
        dialogue = self._cli.dialogue(ctx)

        async def on_event(event: Mapping[str, Any]) -> None:
            if lines := list(events.take(event)):
                await ctx.emit(OutputLine("stdout", "\n".join(lines)))
            if dialogue:
                dialogue.hear(event)

        ctx.launching(prepared.argv)
        output = CliOutput(on_event, ctx.emit, max_event_bytes=self._max_event_bytes)
        run = ProgramRun(
            prepared.program,
            output,
            name=name,
            seconds=ctx.seconds,
            on_start=ctx.started,
            clean_up=prepared.sandbox.clear,
        )
        stdin = None if dialogue else prompt.encode("utf-8", "replace")
        try:
            async with prepared.connected(), run.start(stdin) as group:
                if dialogue:
                    dialogue.begin(group.stdin, prompt)
                await self._wait(run, report, output)
        finally:
            if dialogue:
                await run_uninterrupted(dialogue.end())
        error = run.error or report.error
        if error is None and (run.exit_code or not report.ended):
            error = missing_result_error(name, run.exit_code, output.other_text.text)
        error = await report.charge(ctx.spending, error)
        if run.exit_code is None and error is None:
            report.note(f"{name} did not exit after its result, so it was ended with all its processes")
        return Outcome(
            report.answer,
            exit_code=run.exit_code,
            error=error,
            usage={**run.usage, **report.usage()},
            value=report.structured,
            facts={
                **report.facts(),
                **unverified_fact(report.answer, prompt, ctx),
                "isolation": prepared.sandbox.name,
            },
            notes=(*report.notes, *prepared.notes),
            survivors=run.survivors,
        )

    async def _wait(self, run: ProgramRun, report: CliReport, output: CliOutput) -> None:
        """Wait until the CLI exits, or until it stays silent too long after it reported its result."""
        heard = -1
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger_s):
                    await run.wait()
                return
            if report.ended and output.bytes == heard:
                return
            heard = output.bytes
