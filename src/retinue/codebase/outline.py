"""A file cut into definition-sized chunks. Knows nothing of questions, nor of how a language looks.

Everything is in UTF-8 bytes: cutting and counting bytes is several times as fast as decoding them first.
"""

from __future__ import annotations

import re
from itertools import islice
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


class Columns(NamedTuple):
    """Chunks without their ends: each ends where the next one begins, the last with the file."""

    starts: list[int]
    lines: list[int]
    names: list[str]


def outline_text(path: str, data: bytes) -> Outline:
    starts, lines, names = columns(path, data)
    chunks = list(map(Chunk, starts, [*starts[1:], len(data)], lines, names))
    return Outline(chunks, imports_of(path, data))


def imports_of(path: str, data: bytes) -> list[str]:
    found = imports_for(path).finditer(b"\n" + data[: _IMPORTS_WITHIN - 1])
    names = dict.fromkeys(match[match.lastindex or 0].decode(errors="replace") for match in found)
    return list(names)[:_MOST_IMPORTS]


def columns(path: str, data: bytes) -> Columns:
    """For those who go through many files: objects for the chunks would cost a tenth more."""
    starts, lines, names = [0], [1], [b""]
    start, counted, passed = 0, 0, 0
    spaced = b"\n" + data  # so that every line, the first too, has a newline before it
    for match in islice(pattern_for(path).finditer(spaced), MOST_CHUNKS):
        here = match.start()  # the newline's place in `spaced` is the line's place in `data`
        # Below an empty line, as most definitions are, nothing speaks of it.
        begin = here if data[here - 2 : here - 1] == b"\n" else _with_leading(data, here, start)
        if begin == start:
            del starts[-1], lines[-1], names[-1]
        elif begin - start > CHUNK_BYTES:
            _cut_up(data, begin, passed + 1 - data.count(b"\n", start, counted), starts, lines, names)
        passed += data.count(b"\n", counted, here)
        counted, start = here, begin
        starts.append(begin)
        lines.append(passed + 1)
        names.append(match[match.lastindex or 0])
    _cut_up(data, len(data), passed + 1 - data.count(b"\n", start, counted), starts, lines, names)
    of_all = b"\n".join(names).decode(errors="replace").split("\n")
    kept = MOST_CHUNKS if data else 0
    return Columns(starts[:kept], lines[:kept], list(map(str.strip, of_all[:kept])))


def _cut_up(
    data: bytes, end: int, line: int, starts: list[int], lines: list[int], names: list[bytes]
) -> None:
    """Cut the last chunk, from `line` to `end`, into several that carry its name if it is a long one."""
    start, name = starts[-1], names[-1]
    while end - start > CHUNK_BYTES and (cut := data.rfind(b"\n", start, start + CHUNK_BYTES) + 1) > start:
        line += data.count(b"\n", start, cut)
        start = cut
        starts.append(start)
        lines.append(line)
        names.append(name)


def _with_leading(data: bytes, start: int, floor: int) -> int:
    """Where the comments and decorators right above the line at `start` begin, not before `floor`."""
    for _ in range(_LEADING_LINES):
        above = data.rfind(b"\n", floor, max(floor, start - 1)) + 1 or floor
        if above >= start or not _LEADING.match(data, above, start):
            break
        start = above
    return start
