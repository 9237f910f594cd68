"""A file cut into definition-sized chunks. Knows nothing of questions, nor of how a language looks.

Everything is in UTF-8 bytes: cutting and counting bytes is several times as fast as decoding them first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from retinue.codebase.languages import imports_for, pattern_for

CHUNK_BYTES = 3_000
"""About 80 lines. A longer definition is cut into several chunks that carry its name."""
MOST_CHUNKS = 4_000
"""In one file; the last one takes the rest."""
_MOST_IMPORTS = 80
_IMPORTS_WITHIN = 16_000
"""Bytes from the top: what a file needs stands there in most languages."""

_LEADING = re.compile(rb"[ \t]{0,64}(?:#(?![ \t]{0,8}(?:define|include|if|endif))|//|/\*|\*|@|\[|--)")
"""A line above a definition that speaks of it: a comment, a decorator, an attribute."""
_LEADING_LINES = 12


class Chunk(NamedTuple):
    """A definition with the comments above it, or a stretch of text that defines nothing."""

    start: int
    end: int
    """Half-open range of bytes."""
    line: int
    """The line that names it, below comments and decorators; for the rest its first line. Counted from 1."""
    name: str
    """The defined name, a heading, or nothing."""


class Outline(NamedTuple):
    chunks: list[Chunk]
    """The whole file in order, cut where definitions begin."""
    imports: list[str]
    """Modules, paths and headers that the file says it needs."""


def outline(path: str, data: bytes) -> Outline:
    spaced = b"\n" + data  # so that every line, the first too, has a newline before it
    imports = dict.fromkeys(
        found[found.lastindex or 0].decode(errors="replace")
        for found in imports_for(path).finditer(spaced, 0, _IMPORTS_WITHIN)
    )
    return Outline(_chunks(path, data, spaced), list(imports)[:_MOST_IMPORTS])


def _chunks(path: str, data: bytes, spaced: bytes) -> list[Chunk]:
    found: list[Chunk] = []
    start, line, name = 0, 1, ""
    counted, lines = 0, 0
    for match in pattern_for(path).finditer(spaced):
        here = match.start()  # the newline's place in `spaced` is the line's place in `data`
        cut = _with_leading(data, here, start)
        lines += data.count(b"\n", counted, here)
        counted = here
        if cut > start:
            _add(found, data, start, cut, line, name)
        if len(found) >= MOST_CHUNKS:
            break
        start, line = cut, lines + 1
        name = match[match.lastindex or 0].decode(errors="replace").strip()
    if len(data) > start:
        _add(found, data, start, len(data), line, name)
    return found


def _add(found: list[Chunk], data: bytes, start: int, end: int, line: int, name: str) -> None:
    """One chunk, or several of a long definition."""
    while end - start > CHUNK_BYTES and len(found) < MOST_CHUNKS:
        cut = data.rfind(b"\n", start, start + CHUNK_BYTES) + 1
        if cut <= start:
            break
        found.append(Chunk(start, cut, line, name))
        line += data.count(b"\n", start, cut)
        start = cut
    found.append(Chunk(start, end, line, name))


def _with_leading(data: bytes, start: int, floor: int) -> int:
    """Where the comments and decorators right above the line at `start` begin, not before `floor`."""
    if data[start - 2 : start - 1] == b"\n":
        return start  # below an empty line, as most definitions are
    for _ in range(_LEADING_LINES):
        above = data.rfind(b"\n", floor, max(floor, start - 1)) + 1 or floor
        if above >= start or not _LEADING.match(data, above, start):
            break
        start = above
    return start
