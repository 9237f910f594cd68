"""Reads the output of a program: decodes it, splits it into lines, counts it, and keeps its end.

Memory stays bounded for any output. Knows nothing of processes.
"""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from retinue.core import Emit, LimitExceeded, OutputLine, StreamName

LAST_LINES = 50
"""How many lines of output summarise a failed run."""
MAX_OUTPUT_BYTES = 16 << 20
MAX_LINE_CHARS = 1 << 16
KEPT_CHARS = 1 << 16
"""Characters of the answer, and of the last lines, that stay in memory."""
BEFORE_CHARS = 4096
"""Characters before them that stay too. A private key of 4,096 bits has fewer."""


class LineDecoder:
    """Decodes the bytes of one stream into lines. The lines of one chunk stay together.

    Joins a character that is split over two chunks. Splits a line longer than `max_chars` into pieces.
    """

    def __init__(self, stream: StreamName, max_chars: int) -> None:
        self._stream: StreamName = stream
        self._max_chars = max_chars
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._incomplete = ""

    def feed(self, chunk: bytes, *, last: bool = False) -> Iterator[OutputLine]:
        """Yield the lines that this chunk completes; if it is the last one, also the incomplete line."""
        text, newline, self._incomplete = (self._incomplete + self._decoder.decode(chunk, last)).rpartition(
            "\n"
        )
        if newline:
            yield from self._whole_lines(text)
        *pieces, self._incomplete = self._split(self._incomplete)
        if last and self._incomplete:
            pieces.append(self._incomplete)
            self._incomplete = ""
        yield from (OutputLine(self._stream, piece, complete=False) for piece in pieces)

    def _whole_lines(self, text: str) -> Iterator[OutputLine]:
        """Yield the lines of a text as one; only lines that are too long become several pieces."""
        if len(text) <= self._max_chars:
            yield OutputLine(self._stream, text.replace("\r\n", "\n").removesuffix("\r"))
            return
        for line in text.split("\n"):
            *pieces, end = self._split(line)
            yield from (OutputLine(self._stream, piece, complete=False) for piece in pieces)
            yield OutputLine(self._stream, end.removesuffix("\r"))

    def _split(self, text: str) -> list[str]:
        return [text[at : at + self._max_chars] for at in range(0, len(text), self._max_chars)] or [""]


class Tail:
    """Keeps the last lines of a text."""

    def __init__(self, max_chars: int, max_lines: int | None = None) -> None:
        self.cut = False
        """Whether earlier text was dropped."""
        self.before = ""
        """The end of what was dropped, for redaction: a secret that began there may go on in the text."""
        self._max_chars = max_chars
        self._max_lines = max_lines
        self._lines: deque[OutputLine] = deque()
        self._chars = 0

    def add(self, line: OutputLine) -> None:
        if self._max_lines is not None and "\n" in line.text:
            *earlier, last = line.text.split("\n")
            if skipped := earlier[: 1 - self._max_lines]:
                self._drop(self.text + "\n".join(skipped[-self._max_lines :]) + "\n")
                self._lines.clear()
                self._chars = 0
            for text in earlier[1 - self._max_lines :]:
                self._append(OutputLine(line.stream, text))
            line = replace(line, text=last)
        self._append(line)

    def _append(self, line: OutputLine) -> None:
        if len(line.text) >= self._max_chars:
            line = replace(line, text=self._drop(line.text, 1 - self._max_chars))
        self._lines.append(line)
        self._chars += len(line.text) + 1
        while (excess := self._chars - self._max_chars) > 0 or (
            self._max_lines and len(self._lines) > self._max_lines
        ):
            first = self._lines.popleft()
            self._chars -= len(first.text) + 1
            # Of several lines in one text, only the first ones have to go.
            end = first.text.find("\n", excess - 1) if excess > 0 else -1
            if end < 0:
                self._drop(first.text + "\n" if first.complete else first.text)
            else:
                self._lines.appendleft(replace(first, text=self._drop(first.text, end + 1)))
                self._chars += len(first.text) - end

    def _drop(self, text: str, kept: int | None = None) -> str:
        """Drop the beginning of a text up to `kept`, or all of it, and return the rest."""
        dropped = text[:kept]
        self.before = (self.before + dropped[-BEFORE_CHARS:])[-BEFORE_CHARS:]
        self.cut = True
        return text[len(dropped) :]

    @property
    def text(self) -> str:
        parts: list[str] = []
        unfinished: StreamName | None = None
        for line in self._lines:
            if unfinished and unfinished != line.stream:
                parts.append("\n")  # the other stream wrote in the middle of a line
            parts.append(line.text + ("\n" if line.complete else ""))
            unfinished = None if line.complete else line.stream
        return "".join(parts)


class Transcript:
    """Collects the output of one program on both streams and emits each line.

    Waits until a line has been emitted before it reads on, so that a slow listener slows the program down
    instead of filling the memory.
    """

    def __init__(
        self, emit: Emit, *, max_bytes: int = MAX_OUTPUT_BYTES, max_line_chars: int = MAX_LINE_CHARS
    ) -> None:
        self.answer = Tail(KEPT_CHARS)
        """The end of stdout."""
        self.last_lines = Tail(KEPT_CHARS, LAST_LINES)
        """The end of both streams, in the order of arrival."""
        self.bytes = 0
        self._emit = emit
        self._max_bytes = max_bytes
        self._lock = asyncio.Lock()
        self._lines: dict[StreamName, LineDecoder] = {
            "stdout": LineDecoder("stdout", max_line_chars),
            "stderr": LineDecoder("stderr", max_line_chars),
        }

    async def take(self, stream: StreamName, chunk: bytes) -> None:
        """Take a chunk of output. Raises `LimitExceeded` after emitting what the limit allows."""
        allowed = chunk[: self._max_bytes - self.bytes]
        self.bytes += len(allowed)
        await self._emit_lines(stream, allowed)
        if len(allowed) < len(chunk):
            raise LimitExceeded(
                "output_bytes",
                self.bytes + len(chunk) - len(allowed),
                self._max_bytes,
                hint="the program writes too much: let it write to a file, or raise the limit",
            )

    async def finish(self) -> None:
        """Emit the text after the last newline."""
        for stream in self._lines:
            await self._emit_lines(stream, b"", last=True)

    async def _emit_lines(self, stream: StreamName, chunk: bytes, *, last: bool = False) -> None:
        async with self._lock:
            for line in self._lines[stream].feed(chunk, last=last):
                if stream == "stdout":
                    self.answer.add(line)
                self.last_lines.add(line)
                await self._emit(line)
