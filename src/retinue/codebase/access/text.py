"""Decodes files to text and takes excerpts by line numbers. Opens nothing.

A byte-order mark decides the encoding. A file without one is UTF-8 or, if it is not valid UTF-8, Latin-1.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import NamedTuple

from retinue.codebase.access.limits import Bounds, OmissionTally, Omitted
from retinue.codebase.access.paths import FileEntry
from retinue.core import InvalidInput, counted

BINARY_CHECK_BYTES = 8_192

# The longer marks come first: UTF-32's begins like UTF-16's.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class DecodedText(NamedTuple):
    """The text of a file."""

    utf8: bytes
    """Valid UTF-8 without byte-order mark and with `\\n` line ends."""
    encoding: str
    """The encoding of the file."""


def is_binary(data: bytes) -> bool:
    """Return whether there is a zero byte near the start, but no byte-order mark that explains it.

    Looks only at the first `BINARY_CHECK_BYTES`.
    """
    return b"\0" in data[:BINARY_CHECK_BYTES] and not data.startswith(
        tuple(mark for mark, _ in BYTE_ORDER_MARKS)
    )


def decode_text(data: bytes) -> DecodedText:
    """Decode a file that is not binary. Never fails."""
    encoding = "utf-8"
    for mark, marked in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :].decode(marked, "replace").encode(), marked
            break
    else:
        if not data.isascii() and not _is_utf8(data):
            data, encoding = data.decode("latin-1").encode(), "latin-1"
    if b"\r" in data:  # which is ten times as fast as a search for both bytes
        data = data.replace(b"\r\n", b"\n")
    return DecodedText(data, encoding)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def split_lines(text: str) -> list[str]:
    """Split a text into lines as editors count them: only `\\n` ends a line, and the last may lack it."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def clip_line(line: str, limit: int, focus: int = 0) -> str:
    """Cut a line to `limit` characters around position `focus`, with a mark at each cut."""
    if len(line) <= limit:
        return line
    start = max(0, min(focus - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{counted(start, 'character')} cut]… " if start else ""
    after = f" …[{counted(len(line) - end, 'character')} cut]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of one file."""

    entry: FileEntry
    start: int
    """The number of the first line, from 1."""
    lines: tuple[str, ...]
    total_lines: int
    encoding: str
    omitted: Omitted
    """What was requested but is left out."""

    @property
    def end(self) -> int:
        """The number of the last line; `start - 1` if there are no lines."""
        return self.start + len(self.lines) - 1


def make_excerpt(
    entry: FileEntry, text: DecodedText, start: int, lines: int | None, bounds: Bounds
) -> Excerpt:
    """Return `lines` lines from `start` on, or all lines to the end if `lines` is None.

    Returns fewer lines if the file ends or a limit of `bounds` is reached.
    """
    if start < 1:
        raise InvalidInput(f"lines are numbered from 1, not {start}")
    if lines is not None and lines < 1:
        raise InvalidInput(f"the number of lines must be at least 1, not {lines}")
    every_line = split_lines(text.utf8.decode())
    wanted = every_line[start - 1 :] if lines is None else every_line[start - 1 : start - 1 + lines]
    tally = OmissionTally()
    shown: list[str] = []
    size = 0
    for line in wanted:
        clipped = clip_line(line, bounds.max_line_chars)
        size += len(clipped.encode()) + 1
        if len(shown) == bounds.max_lines or size > bounds.max_bytes:
            tally.add_limit("lines" if len(shown) == bounds.max_lines else "bytes")
            break
        if clipped is not line:
            tally.add_limit("line length")
        shown.append(clipped)
    if len(shown) < len(wanted):
        tally.counts["over_limit"] = len(wanted) - len(shown)
    return Excerpt(entry, start, tuple(shown), len(every_line), text.encoding, tally.omitted())
