"""Bytes to text: byte-order marks first, then strict UTF-8, Latin-1 as the last resort. Opens nothing."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import NamedTuple

from retinue.codebase.access.limits import Bounds, OmissionTally, Omitted
from retinue.codebase.access.paths import FileEntry
from retinue.core import InvalidInput, counted

BINARY_CHECK_BYTES = 8_192

# The longer marks first: UTF-32's begins like UTF-16's.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class DecodedText(NamedTuple):
    utf8: bytes
    """Valid UTF-8 without byte-order mark, lines ended by `\\n` alone."""
    encoding: str
    """What the file was written in."""


def is_binary(data: bytes) -> bool:
    """A zero byte near the start that no byte-order mark explains. The first `BINARY_CHECK_BYTES` are enough."""
    return b"\0" in data[:BINARY_CHECK_BYTES] and not data.startswith(
        tuple(mark for mark, _ in BYTE_ORDER_MARKS)
    )


def decode_text(data: bytes) -> DecodedText:
    """The text of a file that is not binary. Nothing in it can make this fail."""
    encoding = "utf-8"
    for mark, marked in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :].decode(marked, "replace").encode(), marked
            break
    else:
        if not data.isascii() and not _is_utf8(data):
            data, encoding = data.decode("latin-1").encode(), "latin-1"
    return DecodedText(data.replace(b"\r\n", b"\n"), encoding)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def clip_line(line: str, limit: int, focus: int = 0) -> str:
    """At most `limit` characters of a line around the one at `focus`, with a mark for each cut end."""
    if len(line) <= limit:
        return line
    start = max(0, min(focus - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{counted(start, 'character')} cut]… " if start else ""
    after = f" …[{counted(len(line) - end, 'character')} cut]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


# MERGED read: An excerpt of a file by line numbers. Knows nothing of where the bytes come from.


@dataclass(frozen=True, slots=True)
class Excerpt:
    entry: FileEntry
    start: int
    """The number of the first line shown, from 1."""
    lines: tuple[str, ...]
    total_lines: int
    encoding: str
    omitted: Omitted
    """What of the lines asked for is not shown."""

    @property
    def end(self) -> int:
        """The number of the last line shown; one less than `start` if none is."""
        return self.start + len(self.lines) - 1


def make_excerpt(
    entry: FileEntry, text: DecodedText, start: int, lines: int | None, bounds: Bounds
) -> Excerpt:
    """Lines `start` to `start + lines - 1`, or to the end; fewer where the file or the bounds end."""
    if start < 1:
        raise InvalidInput(f"lines are numbered from 1, not {start}")
    if lines is not None and lines < 1:
        raise InvalidInput(f"at least 1 line must be asked for, not {lines}")
    every_line = split_lines(text.utf8.decode())
    wanted = every_line[start - 1 :] if lines is None else every_line[start - 1 : start - 1 + lines]
    tally = OmissionTally()
    shown: list[str] = []
    size = 0
    for line in wanted:
        clipped = clip_line(line, bounds.max_line_chars)
        size += len(clipped.encode()) + 1
        if len(shown) == bounds.max_lines or size > bounds.max_bytes:
            tally.reached("lines" if len(shown) == bounds.max_lines else "bytes")
            break
        if clipped is not line:
            tally.reached("line length")
        shown.append(clipped)
    if len(shown) < len(wanted):
        tally.counts["over_limit"] = len(wanted) - len(shown)
    return Excerpt(entry, start, tuple(shown), len(every_line), text.encoding, tally.omitted())


def split_lines(text: str) -> list[str]:
    """As editors number them: only `\\n` ends a line, and the last one need not have it."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
