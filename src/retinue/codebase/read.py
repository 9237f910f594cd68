"""An excerpt of a file by line numbers. Knows nothing of where the bytes come from."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.codebase.bounds import Bounds
from retinue.codebase.entry import FileEntry
from retinue.codebase.omitted import Omitted, Tally
from retinue.codebase.text import Text, clip
from retinue.core import InvalidInput


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


def excerpt(entry: FileEntry, text: Text, start: int, lines: int | None, bounds: Bounds) -> Excerpt:
    """Lines `start` to `start + lines - 1`, or to the end; fewer where the file or the bounds end."""
    if start < 1:
        raise InvalidInput(f"lines are numbered from 1, not {start}")
    if lines is not None and lines < 1:
        raise InvalidInput(f"at least 1 line must be asked for, not {lines}")
    every_line = split_lines(text.utf8.decode())
    wanted = every_line[start - 1 :] if lines is None else every_line[start - 1 : start - 1 + lines]
    tally = Tally()
    shown: list[str] = []
    size = 0
    for line in wanted:
        clipped = clip(line, bounds.max_line_chars)
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
