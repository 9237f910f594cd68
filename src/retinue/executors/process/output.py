"""What a program says: decoded, cut into lines, counted, passed on as it comes, and its end kept.

Knows nothing of processes. Memory stays bounded whatever is said.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import anyio

from retinue.core import Emit, LimitExceeded, OutputLine, StreamName

LAST_LINES = 50
"""Lines that stand for a failed run."""
KEPT_CHARS = 1 << 16
"""Characters of an answer, and of the last lines, that are kept in memory."""


class Lines:
    """One stream's bytes as lines. A character split over two chunks is put together; a line longer than
    `longest` comes in pieces."""

    def __init__(self, stream: StreamName, longest: int) -> None:
        self._stream: StreamName = stream
        self._longest = longest
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, chunk: bytes, *, last: bool = False) -> Iterator[OutputLine]:
        *whole, self._rest = (self._rest + self._decoder.decode(chunk, last)).split("\n")
        for text in whole:
            *pieces, end = self._pieces(text)
            yield from (OutputLine(self._stream, piece, complete=False) for piece in pieces)
            yield OutputLine(self._stream, end.removesuffix("\r"))
        *pieces, self._rest = self._pieces(self._rest)
        if last and self._rest:
            pieces.append(self._rest)
            self._rest = ""
        yield from (OutputLine(self._stream, piece, complete=False) for piece in pieces)

    def _pieces(self, text: str) -> list[str]:
        return [text[at : at + self._longest] for at in range(0, len(text), self._longest)] or [""]


class Tail:
    """The end of a text that is too long to keep, as lines."""

    def __init__(self, max_chars: int, max_lines: int | None = None) -> None:
        self.cut = False
        """Whether the beginning was dropped."""
        self._max_chars = max_chars
        self._max_lines = max_lines
        self._lines: deque[OutputLine] = deque()
        self._chars = 0

    def add(self, line: OutputLine) -> None:
        if len(line.text) >= self._max_chars:
            line = replace(line, text=line.text[1 - self._max_chars :])
            self.cut = True
        self._lines.append(line)
        self._chars += len(line.text) + 1
        while self._chars > self._max_chars or (self._max_lines and len(self._lines) > self._max_lines):
            self._chars -= len(self._lines.popleft().text) + 1
            self.cut = True

    @property
    def text(self) -> str:
        parts: list[str] = []
        unfinished: StreamName | None = None
        for line in self._lines:
            if unfinished and unfinished != line.stream:
                parts.append("\n")  # the other stream spoke in the middle of a line
            parts.append(line.text + ("\n" if line.complete else ""))
            unfinished = None if line.complete else line.stream
        return "".join(parts)


class Transcript:
    """All that one program says on both streams. Emits one line at a time and waits for the listener, so
    that a slow listener slows the program instead of filling the memory."""

    def __init__(self, emit: Emit, *, max_bytes: int, longest_line: int) -> None:
        self.answer = Tail(KEPT_CHARS)
        """The end of its stdout."""
        self.last_lines = Tail(KEPT_CHARS, LAST_LINES)
        """The end of both streams, in the order they came."""
        self.bytes = 0
        self._emit = emit
        self._max_bytes = max_bytes
        self._turn = anyio.Lock()
        self._lines: dict[StreamName, Lines] = {
            "stdout": Lines("stdout", longest_line),
            "stderr": Lines("stderr", longest_line),
        }

    async def take(self, stream: StreamName, chunk: bytes) -> None:
        """Pass on what the limit allows; `LimitExceeded` when there was more."""
        allowed = chunk[: self._max_bytes - self.bytes]
        self.bytes += len(allowed)
        await self._pass_on(stream, allowed)
        if len(allowed) < len(chunk):
            raise LimitExceeded(
                "output_bytes",
                self.bytes + len(chunk) - len(allowed),
                self._max_bytes,
                hint="the program says too much: have it write to a file, or raise the limit",
            )

    async def finish(self) -> None:
        """Pass on what came after the last newline."""
        for stream in self._lines:
            await self._pass_on(stream, b"", last=True)

    async def _pass_on(self, stream: StreamName, chunk: bytes, *, last: bool = False) -> None:
        async with self._turn:
            for line in self._lines[stream].feed(chunk, last=last):
                if stream == "stdout":
                    self.answer.add(line)
                self.last_lines.add(line)
                await self._emit(line)
