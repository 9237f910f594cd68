"""The output of a run: one text file, `logs/<run-id>.log`, which the run's process writes.

Each line is `<time> <stream> <text>`. A `+` after the stream means that the text continues in the next
line of that stream: output is written as it arrives, even if its line is incomplete, so a crash loses
nothing. Readers may read while a run writes: they leave a last line without a line break for later.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Self

from retinue.core import InvalidInput, LongText
from retinue.store.files import replace_surrogates

MAX_LOG_BYTES = 64 * 1024 * 1024
_PIECE_CHARACTERS = 8 * 1024
_BLOCK_BYTES = 64 * 1024  # more than the longest line: a prefix and a piece of four-byte characters
_LINE = re.compile(r"(\S+) (stdout|stderr|event)(\+?) (.*)", re.DOTALL)


SUMMARY_LINES = 50
SUMMARY_CHARACTERS = 8_000
KEPT_CHARACTERS = 32_000
"""Characters of the beginning and of the end of a long answer that are stored with its run."""


class LogStream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"
    EVENT = "event"


ALL_STREAMS = frozenset(LogStream)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of output, joined from its parts."""

    at: str
    stream: LogStream
    text: str
    complete: bool = True
    """False if the text continues in a later line of the stream."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines of a log, and where to continue reading."""

    lines: tuple[LogLine, ...]
    cursor: int
    """The byte offset at which to continue; always the beginning of a line."""
    at_end: bool
    """Whether there is nothing more to read for now."""


class LogWriter:
    """Appends to one run's log. Each call is a single write, so the lines of two writers never mix."""

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._left = max_bytes - os.fstat(self._descriptor).st_size
        self._full = False
        self.dropped = 0
        """Bytes that were lost because the log or the disk was full."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, stream: LogStream, text: str) -> None:
        """Append text as it arrives: lines and parts of lines. Once the log is full, nothing is written."""
        if self._full:
            self.dropped += len(text)
            return
        at = iso_time(datetime.now(UTC).timestamp())
        text = replace_surrogates(text)
        if len(text) <= _PIECE_CHARACTERS and text.endswith("\n"):  # whole lines, none of them too long
            prefix = f"{at} {stream} "
            lines = text.replace("\r\n", "\n")[:-1]
            entry = (prefix + lines.replace("\n", f"\n{prefix}") + "\n").encode()
        else:
            entry = "".join(
                f"{at} {stream}{'' if complete else '+'} {piece}\n" for piece, complete in _split_lines(text)
            ).encode()
        if len(entry) > self._left:
            self._full = True
            self.dropped += len(entry)
            self._write(f"{at} {LogStream.EVENT} the log is full: further output is dropped\n".encode())
            return
        self._left -= len(entry)
        self._write(entry)

    def _write(self, entry: bytes) -> None:
        try:
            os.write(self._descriptor, entry)
        except OSError:  # a full disk must not end the run
            self.dropped += len(entry)

    def close(self) -> None:
        os.close(self._descriptor)


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _split_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Split text into lines, and long lines into pieces; each with whether it completes its line."""
    *lines, rest = text.split("\n")
    for line in lines:
        content = line.removesuffix("\r")
        last = max(0, len(content) - 1) // _PIECE_CHARACTERS
        for number in range(last + 1):
            yield content[number * _PIECE_CHARACTERS :][:_PIECE_CHARACTERS], number == last
    for start in range(0, len(rest), _PIECE_CHARACTERS):
        yield rest[start : start + _PIECE_CHARACTERS], False


def terminate_last_line(path: Path) -> None:
    """Add the line break that a dying writer left out, so that readers show the last line."""
    with contextlib.suppress(FileNotFoundError), path.open("r+b") as log:
        if log.seek(0, os.SEEK_END) and log.seek(-1, os.SEEK_END) >= 0 and log.read(1) != b"\n":
            log.write(b"\n")


def tail_log(path: Path, lines: int, streams: Collection[LogStream] = ALL_STREAMS) -> LogPage:
    """Read the last lines of the given streams. The cursor points behind them."""
    if lines < 0:
        raise InvalidInput(f"cannot show {lines} lines", hint="pass a number of lines, 0 or more")
    found: list[LogLine] = []
    cursor = 0
    for start, raw in _read_lines_backwards(path):
        cursor = cursor or start + len(raw) + 1
        if len(found) >= lines:
            break
        line = _parse(raw)
        if line.stream in streams:
            found.append(line)
    return LogPage(_join_parts(reversed(found)), cursor, at_end=True)


def summarize_log(path: Path) -> str:
    """The summary of a failed run: the last lines of its log."""
    lines = tail_log(path, SUMMARY_LINES).lines
    return "\n".join(line.text for line in lines)[-SUMMARY_CHARACTERS:]


def read_output(path: Path, kept_characters: int = KEPT_CHARACTERS) -> LongText:
    """Read what was written to stdout: its beginning, its end and its size."""
    beginning, end = StringIO(), ""
    characters = lines = 0
    with contextlib.suppress(FileNotFoundError), path.open("rb") as log:
        for raw in log:
            _, stream, *rest = raw.removesuffix(b"\n").split(b" ", 2)
            if stream.rstrip(b"+") != b"stdout":
                continue
            text = b"".join(rest).decode("utf-8", "replace") + ("" if stream.endswith(b"+") else "\n")
            if characters < kept_characters:
                beginning.write(text[: kept_characters - characters])
            characters += len(text)
            lines += text.endswith("\n")
            end += text
            if len(end) > 2 * kept_characters:
                end = end[-kept_characters:]
    return LongText(beginning.getvalue(), end[-kept_characters:], characters, lines)


def count_lines(path: Path, streams: Collection[LogStream] = ALL_STREAMS) -> int:
    """The number of lines of the given streams."""
    try:
        with path.open("rb") as log:
            return sum(line.complete and line.stream in streams for line in map(_parse, log))
    except FileNotFoundError:
        return 0


def read_log(
    path: Path, cursor: int, max_bytes: int = _BLOCK_BYTES, streams: Collection[LogStream] = ALL_STREAMS
) -> LogPage:
    """Read the lines after the cursor that fit into `max_bytes`, but at least one if there is one."""
    if cursor < 0:
        raise InvalidInput(f"invalid cursor: {cursor}", hint="pass a cursor that Retinue has returned")
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            start = min(cursor, size)
            if start:
                # An invented cursor may point into a line; then skip the rest of that line.
                log.seek(start - 1)
                start += len(log.readline(_BLOCK_BYTES)) - 1
            log.seek(start)
            block = log.read(max(max_bytes, _BLOCK_BYTES))
    except FileNotFoundError:
        return LogPage((), 0, at_end=True)
    *complete, rest = block.split(b"\n")
    if len(rest) >= _BLOCK_BYTES:  # not written by LogWriter; it must not block the reader
        complete.append(rest[:-1])
    lines: list[LogLine] = []
    taken = 0
    for raw in complete:
        if taken and taken + len(raw) + 1 > max_bytes:
            return LogPage(_join_parts(lines), start + taken, at_end=False)
        taken += len(raw) + 1
        line = _parse(raw)
        if line.stream in streams:
            lines.append(line)
    return LogPage(_join_parts(lines), start + taken, at_end=start + len(block) >= size)


def _read_lines_backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines from the last to the first, each with its byte offset."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as log:
        position = log.seek(0, os.SEEK_END)
        head = b""
        after_last_break = True
        while position:
            step = min(_BLOCK_BYTES, position)
            position -= step
            log.seek(position)
            data = log.read(step) + head
            end = position + len(data)
            head, *lines = data.split(b"\n")
            for line in reversed(lines):
                end -= len(line)
                if not after_last_break:
                    yield end, line
                after_last_break = False
                end -= 1
        if not after_last_break:
            yield 0, head


def _parse(raw: bytes) -> LogLine:
    text = raw.decode("utf-8", "replace")
    match = _LINE.fullmatch(text)
    if match is None:  # a partial line of a writer that died
        return LogLine("", LogStream.EVENT, text)
    at, stream, continues, content = match.groups()
    return LogLine(at, LogStream(stream), content, complete=not continues)


def _join_parts(lines: Iterable[LogLine]) -> tuple[LogLine, ...]:
    """Join the parts of each line. A joined line takes the place of its first part."""
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
