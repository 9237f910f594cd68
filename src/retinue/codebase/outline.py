"""A file cut into definition-sized chunks. Knows nothing of questions, nor of how a language looks.

Everything is in UTF-8 bytes: cutting and counting bytes is several times as fast as decoding them first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.codebase.languages import pattern_for

CHUNK_BYTES = 3000
"""About 80 lines. A longer definition is cut into several chunks that carry its name."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A definition with the comments above it, or a stretch of text that defines nothing."""

    start: int
    end: int
    """Half-open range of bytes."""
    line: int
    """The line that names it, below comments and decorators; for the rest its first line. Counted from 1."""
    name: str
    """The defined name, a heading, or nothing."""


_LEADING = re.compile(rb"[ \t]*(?:#(?![ \t]*(?:define|include|if|endif))|//|/\*|\*|@|\[|--)")
"""A line above a definition that speaks of it: a comment, a decorator, an attribute."""
_LEADING_LINES = 12


def chunks(path: str, data: bytes) -> list[Chunk]:
    """The whole of `data` in order, cut where definitions begin."""
    found: list[Chunk] = []
    start, line, name = 0, 1, ""
    counted, lines = 0, 0
    for match in pattern_for(path).finditer(data):
        cut = _with_leading(data, match.start(), start)
        lines += data.count(b"\n", counted, match.start())
        counted = match.start()
        if cut > start:
            _add(found, data, Chunk(start, cut, line, name))
        start, line, name = cut, lines + 1, match[match.lastindex or 0].decode(errors="replace").strip()
    if len(data) > start:
        _add(found, data, Chunk(start, len(data), line, name))
    return found


def _add(found: list[Chunk], data: bytes, chunk: Chunk) -> None:
    while chunk.end - chunk.start > CHUNK_BYTES:
        cut = data.rfind(b"\n", chunk.start, chunk.start + CHUNK_BYTES) + 1
        if cut <= chunk.start:
            break
        found.append(Chunk(chunk.start, cut, chunk.line, chunk.name))
        chunk = Chunk(cut, chunk.end, chunk.line + data.count(b"\n", chunk.start, cut), chunk.name)
    found.append(chunk)


def _with_leading(data: bytes, start: int, floor: int) -> int:
    """Where the comments and decorators right above the line at `start` begin, not before `floor`."""
    for _ in range(_LEADING_LINES):
        above = data.rfind(b"\n", floor, start - 1) + 1 if start - 1 > floor else floor
        if above >= start or above < floor or not _LEADING.match(data, above, start):
            break
        start = above
    return start
