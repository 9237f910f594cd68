"""Reads what a coding CLI prints: JSON objects, one per line, which become a `CliReport`.

An exit code of 0 proves nothing: a run succeeded if the CLI reported success in its last event. This module
knows no particular CLI; each CLI implements `CliEvents` to interpret its own events.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from retinue.core import (
    Activity,
    BudgetExceeded,
    BudgetKind,
    Emit,
    Json,
    LimitExceeded,
    OutputLine,
    ProgramFailed,
    QuotaSpent,
    RetinueError,
    RunContext,
    Spending,
    StreamName,
    clip,
    find_usage_limit,
)
from retinue.executors.process import LAST_LINES, LineDecoder, Tail

MAX_EVENT_BYTES = 16 << 20
"""Limit for one line; it can contain the whole result of a tool. Nothing else happens while it is parsed."""
MAX_OUTPUT_BYTES = 512 << 20
MAX_LINE_CHARS = 1 << 16
"""Longer lines of stderr are split, and longer lines of stdout that are not JSON are cut."""
KEPT_CHARS = 1 << 14
"""Characters of other text than JSON that are kept for an error message."""
MAX_COST_USD = 1_000_000
MAX_NOTES = 100
MAX_LOG_CHARS = 2_000
"""Characters of one event that the log shows; tools may return whole files."""


@dataclass(slots=True)
class CliReport:
    """The summary of what a coding CLI reported in one run."""

    answer: str = ""
    ended: bool = False
    """Whether the CLI reported that it finished, successfully or not."""
    error: RetinueError | None = None
    model: str | None = None
    """The model that answered, according to the CLI."""
    session_id: str | None = None
    steps: int = 0
    tokens: int = 0
    cost_micros: int | None = None
    """Cost of this run; None if the CLI does not report it."""
    denials: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    structured: Json = None
    """The answer as JSON, if the CLI itself checked it against a schema."""
    activity: Activity = field(default_factory=Activity)
    """The tool calls that the CLI reported, as they happened."""

    def facts(self) -> dict[str, Json]:
        """Return what the CLI reported about the run, without unknown values."""
        known: dict[str, Json] = {
            "model": self.model,
            "session_id": self.session_id,
            "denials": self.denials,
        }
        return {name: value for name, value in known.items() if value not in (None, [])}

    def usage(self) -> dict[str, int]:
        amounts = {"steps": self.steps, "tokens": self.tokens, "cost_micros": self.cost_micros or 0}
        return {name: amount for name, amount in amounts.items() if amount}

    async def charge(self, spending: Spending, error: RetinueError | None) -> RetinueError | None:
        """Charge the usage to the budget and return the run's error.

        The usage is known only after it was spent, so it is charged even if it exceeds the budget. If the run
        had no error, the exceeded budget becomes its error.
        """
        for name, amount in self.usage().items():
            try:
                async with spending.reserving(BudgetKind(name), 0) as spent:
                    spent.settle(amount)
            except BudgetExceeded as exceeded:
                error = error or exceeded
        return error

    def note(self, text: str) -> None:
        """Add a note, unless the report already has it or is full."""
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text)


REFUSED_START = re.compile(
    r"error: (unexpected|unknown|unrecognized) (argument|option)|Unknown arguments?:|Error loading config",
    re.IGNORECASE,
)
"""What a CLI says about an option or a setting that it does not know. More lines may follow."""


def usd_to_micros(usd: object) -> int:
    """Convert a cost as a CLI reports it. Anything but a number of a sensible size is 0."""
    if isinstance(usd, int | float) and 0 <= usd <= MAX_COST_USD:
        return round(usd * 1_000_000)
    return 0


class CliEvents(Protocol):
    """Interprets the events of one CLI."""

    report: CliReport

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Add an event to the report and yield the lines that show it in the log."""
        ...


def limit_error(
    name: str, said: str, reset_at: float | None = None, *, known: bool = False
) -> QuotaSpent | None:
    """Return the error for a CLI that reports a spent usage limit, in words or, if `known`, otherwise."""
    limit = find_usage_limit(said, time.time())
    if limit is None and not known:
        return None
    when = reset_at or (limit.reset_at if limit else None)
    return QuotaSpent(f"{name} has reached its usage limit: {clip(said.strip(), 300)}", reset_at=when)


def missing_result_error(name: str, exit_code: int | None, last_output: str) -> RetinueError:
    """Return the error for a CLI that ended without reporting a result."""
    if (spent := limit_error(name, last_output)) is not None:
        return spent
    lines = last_output.strip().splitlines()
    refused = next((line for line in lines if REFUSED_START.match(line)), None)
    reason = f": {clip(refused or lines[-1], 300)}" if lines else ""
    return ProgramFailed(
        f"{name} ended without a result, with exit code {exit_code}{reason}",
        hint=f"this version of {name} may be too old for Retinue: update it" if refused else None,
        exit_code=exit_code,
    )


def unverified_fact(answer: str, task: str, ctx: RunContext) -> dict[str, Json]:
    """Return the fact `unverified` for an answer that claims something although the agent looked at nothing.

    Names that the task contains are not claims. A session that is resumed may have looked in an earlier run.
    """
    from retinue.answers import describe_claims  # so that servers start sooner

    if ctx.activity.has_looked or ctx.resume is not None or (claims := describe_claims(answer, task)) is None:
        return {}
    return {"unverified": f"the agent read no file, ran no command and searched nothing{claims}"}


def log_lines(label: str, text: str) -> Iterator[str]:
    """Yield a text of the conversation as labelled lines for the log, clipped to a readable length."""
    for line in clip(text, MAX_LOG_CHARS).splitlines():
        yield f"{label}: {line}"


class JsonLines:
    """Splits bytes into JSON objects, one per line. A line that is not a JSON object is yielded as text."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        """`max_bytes` limits one line; a longer one raises `LimitExceeded`."""
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Mapping[str, Any] | str]:
        """Yield the objects of all lines that are complete now."""
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            self._append(line)
            yield from self.end()
        self._append(rest)

    def end(self) -> Iterator[Mapping[str, Any] | str]:
        """Yield the object of the line that has been collected so far."""
        line = b"".join(self._parts).strip()
        self._parts, self._size = [], 0
        if not line:
            return
        try:
            value: object = json.loads(line)
        except ValueError:
            value = None
        yield cast("dict[str, Any]", value) if isinstance(value, dict) else line.decode("utf-8", "replace")

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            raise LimitExceeded("event_bytes", self._size, self._max_bytes)
        self._parts.append(part)


class CliOutput:
    """Takes both output streams of a CLI and separates its events from other text."""

    def __init__(
        self,
        on_event: Callable[[Mapping[str, Any]], Awaitable[None]],
        emit: Emit,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        """`on_event` receives each JSON object. Everything else goes to the log unchanged."""
        self.other_text = Tail(KEPT_CHARS, LAST_LINES)
        """The end of the output that was not JSON; usually says why the CLI failed."""
        self.bytes = 0
        self._on_event = on_event
        self._emit = emit
        self._stdout = JsonLines(max_event_bytes)
        self._stderr = LineDecoder("stderr", MAX_LINE_CHARS)

    async def take(self, stream: StreamName, chunk: bytes) -> None:
        """Take a chunk of output. Raises `LimitExceeded` if there is too much."""
        self.bytes += len(chunk)
        if self.bytes > MAX_OUTPUT_BYTES:
            raise LimitExceeded("output_bytes", self.bytes, MAX_OUTPUT_BYTES)
        if stream == "stdout":
            await self._handle(self._stdout.feed(chunk))
        else:
            for line in self._stderr.feed(chunk):
                await self._emit_text(line)

    async def finish(self) -> None:
        """Handle what came after the last newline of both streams."""
        await self._handle(self._stdout.end())
        for line in self._stderr.feed(b"", last=True):
            await self._emit_text(line)

    async def _handle(self, events: Iterator[Mapping[str, Any] | str]) -> None:
        """Pass JSON objects to `on_event`, and other lines to the log, those between two objects together."""
        lines: list[str] = []
        for event in events:
            if isinstance(event, str):
                lines.append(clip(event, MAX_LINE_CHARS))
                continue
            await self._emit_lines(lines)
            await self._on_event(event)
        await self._emit_lines(lines)

    async def _emit_lines(self, lines: list[str]) -> None:
        """Emit the lines together, and empty the list."""
        if lines:
            await self._emit_text(OutputLine("stdout", "\n".join(lines)))
            lines.clear()

    async def _emit_text(self, line: OutputLine) -> None:
        self.other_text.add(line)
        await self._emit(line)
