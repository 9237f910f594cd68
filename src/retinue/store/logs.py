"""A run's output: one text file, `logs/<run-id>.log`, appended by whoever performs the run.

Each line is `<time> <stream> <text>`. A `+` after the stream says that the text goes on in that stream's
next line: output is written when it comes, whether or not its line is complete, so a crash loses nothing.
Reading copes with writers at work: a last line without its end is left for later.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self

from retinue.core import InvalidInput
from retinue.store.files import storable

MAX_LOG_BYTES = 64 * 1024 * 1024
_PIECE_LETTERS = 8 * 1024
_BLOCK_BYTES = 64 * 1024  # holds the longest line: a piece of four-byte letters and what stands before it
_LINE = re.compile(r"(\S+) (stdout|stderr|event)(\+?) (.*)", re.DOTALL)


LAST_LINES = 50
LAST_LETTERS = 8_000


class LogStream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"
    EVENT = "event"


ALL_STREAMS = frozenset(LogStream)


@dataclass(frozen=True, slots=True)
class LogLine:
    at: str
    stream: LogStream
    text: str
    complete: bool = True
    """False when the text goes on in a later line of the stream."""


@dataclass(frozen=True, slots=True)
class LogPage:
    lines: tuple[LogLine, ...]
    cursor: int
    """Where to go on reading: a byte of the file, the beginning of a line."""
    at_end: bool
    """Whether the file holds nothing more to read for now."""


class LogWriter:
    """Appends to one run's log. Each call is one write, so that lines of two writers never mix."""

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._left = max_bytes - os.fstat(self._descriptor).st_size
        self.dropped = 0
        """Bytes that came when the log, or the disk, was full."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, stream: LogStream, text: str) -> None:
        """Add text as it came: lines and parts of lines."""
        at = iso_time(datetime.now(UTC).timestamp())
        entry = "".join(
            f"{at} {stream}{'' if complete else '+'} {piece}\n" for piece, complete in _pieces(storable(text))
        ).encode()
        if len(entry) > self._left:
            full = not self.dropped
            self.dropped += len(entry)
            if full:
                self._write(f"{at} {LogStream.EVENT} the log is full: what follows is dropped\n".encode())
            return
        self._left -= len(entry)
        self._write(entry)

    def _write(self, entry: bytes) -> None:
        try:
            os.write(self._descriptor, entry)
        except OSError:  # a full disk must not end the run whose output this is
            self.dropped += len(entry)

    def close(self) -> None:
        os.close(self._descriptor)


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Lines, cut where they are too long, each with whether its line ends there."""
    *lines, rest = text.split("\n")
    for line in lines:
        content = line.removesuffix("\r")
        last = max(0, len(content) - 1) // _PIECE_LETTERS
        for number in range(last + 1):
            yield content[number * _PIECE_LETTERS :][:_PIECE_LETTERS], number == last
    for start in range(0, len(rest), _PIECE_LETTERS):
        yield rest[start : start + _PIECE_LETTERS], False


def end_torn_line(path: Path) -> None:
    """Complete the last line that a dying writer left torn, so that readers show it."""
    with contextlib.suppress(FileNotFoundError), path.open("r+b") as log:
        if log.seek(0, os.SEEK_END) and log.seek(-1, os.SEEK_END) >= 0 and log.read(1) != b"\n":
            log.write(b"\n")


def tail_log(path: Path, lines: int, streams: Collection[LogStream] = ALL_STREAMS) -> LogPage:
    """The last lines of the wanted streams; the cursor leads to what comes after them."""
    if lines < 0:
        raise InvalidInput(f"cannot show {lines} lines", hint="give a number of lines, 0 or more")
    found: list[LogLine] = []
    cursor = 0
    for start, raw in _backwards(path):
        cursor = cursor or start + len(raw) + 1
        if len(found) >= lines:
            break
        line = _parse(raw)
        if line.stream in streams:
            found.append(line)
    return LogPage(_joined(reversed(found)), cursor, at_end=True)


def last_words(path: Path) -> str:
    """What a run that did not succeed is summed up by: the last lines of its log, and no more than a page."""
    lines = tail_log(path, LAST_LINES).lines
    return "\n".join(line.text for line in lines)[-LAST_LETTERS:]


def read_log(
    path: Path, cursor: int, max_bytes: int = _BLOCK_BYTES, streams: Collection[LogStream] = ALL_STREAMS
) -> LogPage:
    """The lines from the cursor on: as many as fit into the bytes, but at least one if there is one."""
    if cursor < 0:
        raise InvalidInput(f"not a cursor: {cursor}", hint="use a cursor as it was returned")
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            start = min(cursor, size)
            if start:
                # A cursor that was made up may lie within a line, whose rest is then skipped.
                log.seek(start - 1)
                start += len(log.readline(_BLOCK_BYTES)) - 1
            log.seek(start)
            block = log.read(max(max_bytes, _BLOCK_BYTES))
    except FileNotFoundError:
        return LogPage((), 0, at_end=True)
    *complete, rest = block.split(b"\n")
    if len(rest) >= _BLOCK_BYTES:  # no writer of ours made this; it must not hold up the reader
        complete.append(rest[:-1])
    lines: list[LogLine] = []
    taken = 0
    for raw in complete:
        if taken and taken + len(raw) + 1 > max_bytes:
            return LogPage(_joined(lines), start + taken, at_end=False)
        taken += len(raw) + 1
        line = _parse(raw)
        if line.stream in streams:
            lines.append(line)
    return LogPage(_joined(lines), start + taken, at_end=start + len(block) >= size)


def _backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """The complete lines from the last to the first, each with where it begins."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as log:
        position = log.seek(0, os.SEEK_END)
        head = b""
        behind_last_end = True
        while position:
            step = min(_BLOCK_BYTES, position)
            position -= step
            log.seek(position)
            data = log.read(step) + head
            end = position + len(data)
            head, *lines = data.split(b"\n")
            for line in reversed(lines):
                end -= len(line)
                if not behind_last_end:
                    yield end, line
                behind_last_end = False
                end -= 1
        if not behind_last_end:
            yield 0, head


def _parse(raw: bytes) -> LogLine:
    text = raw.decode("utf-8", "replace")
    match = _LINE.fullmatch(text)
    if match is None:  # the torn end of a writer that died
        return LogLine("", LogStream.EVENT, text)
    at, stream, goes_on, content = match.groups()
    return LogLine(at, LogStream(stream), content, complete=not goes_on)


def _joined(lines: Iterable[LogLine]) -> tuple[LogLine, ...]:
    """Lines whose parts were put together again, each standing where its first part stood."""
    whole: list[LogLine] = []
    unfinished: dict[LogStream, int] = {}
    for line in lines:
        place = unfinished.pop(line.stream, None)
        if place is None:
            place = len(whole)
            whole.append(line)
        else:
            first = whole[place]
            whole[place] = replace(first, text=first.text + line.text, complete=line.complete)
        if not line.complete:
            unfinished[line.stream] = place
    return tuple(whole)
