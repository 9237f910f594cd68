"""The output of a program that speaks in JSON objects, one a line: put together, read, and shown to people.

Knows nothing of what the objects mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from retinue.core import Emit, LimitExceeded, OutputLine, StreamName
from retinue.executors.cli.cli_report import CliEvents
from retinue.executors.process import LAST_LINES, LineDecoder, Tail

LONGEST_EVENT = 32 << 20
"""Bytes; a tool's result comes as one line."""
MAX_BYTES = 512 << 20
LONGEST_LINE = 1 << 16
KEPT_CHARS = 1 << 14


class JsonLines:
    """Bytes as objects; what is none comes as text."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Mapping[str, Any] | str]:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._keep(line)
            yield from self._read()
        self._keep(rest)

    def end(self) -> Iterator[Mapping[str, Any] | str]:
        yield from self._read()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LONGEST_EVENT:
            raise LimitExceeded("event_bytes", self._size, LONGEST_EVENT)
        self._parts.append(part)

    def _read(self) -> Iterator[Mapping[str, Any] | str]:
        line = b"".join(self._parts).strip()
        self._parts, self._size = [], 0
        if not line:
            return
        try:
            value: object = json.loads(line)
        except ValueError:
            value = None
        yield cast("dict[str, Any]", value) if isinstance(value, dict) else line.decode("utf-8", "replace")


class EventLines:
    """What a CLI says on both streams, on its way to its reader and to the run's log."""

    def __init__(
        self, events: CliEvents, emit: Emit, hear: Callable[[Mapping[str, Any]], None] = lambda event: None
    ) -> None:
        """`hear` is given every event too, after its reader."""
        self.complaints = Tail(KEPT_CHARS, LAST_LINES)
        """The end of what it said that was no event: usually why it failed."""
        self.bytes = 0
        self._events = events
        self._emit = emit
        self._hear = hear
        self._stdout = JsonLines()
        self._stderr = LineDecoder("stderr", LONGEST_LINE)

    async def take(self, stream: StreamName, chunk: bytes) -> None:
        self.bytes += len(chunk)
        if self.bytes > MAX_BYTES:
            raise LimitExceeded("output_bytes", self.bytes, MAX_BYTES)
        if stream == "stdout":
            await self._show(self._stdout.feed(chunk))
        else:
            for line in self._stderr.feed(chunk):
                await self._complain(line)

    async def finish(self) -> None:
        await self._show(self._stdout.end())
        for line in self._stderr.feed(b"", last=True):
            await self._complain(line)

    async def _show(self, found: Iterator[Mapping[str, Any] | str]) -> None:
        for event in found:
            if isinstance(event, str):
                await self._complain(OutputLine("stdout", event))
                continue
            for text in self._events.take(event):
                await self._emit(OutputLine("stdout", text))
            self._hear(event)

    async def _complain(self, line: OutputLine) -> None:
        self.complaints.add(line)
        await self._emit(line)
