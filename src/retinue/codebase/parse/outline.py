"""A file cut into definition-sized chunks. Knows nothing of questions, nor of how a language looks.

Everything is in UTF-8 bytes: cutting and counting bytes is several times as fast as decoding them first.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from retinue.codebase.parse.languages import definition_pattern, import_pattern

CHUNK_BYTES = 3_000
"""About 80 lines. A longer definition is cut into several chunks that carry its name."""
MAX_CHUNKS = 4_000
"""In one file; the last one takes the rest."""
_MAX_IMPORTS = 80
_IMPORT_BYTES = 16_000
"""Bytes from the top: what a file needs stands there in most languages."""

_LEADING_LINE = re.compile(rb"[ \t]{0,64}(?:#(?![ \t]{0,8}(?:define|include|if|endif))|//|/\*|\*|@|\[|--)")
"""A line above a definition that speaks of it: a comment, a decorator, an attribute."""
_MAX_LEADING_LINES = 12


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


class ChunkColumns(NamedTuple):
    """Chunks without their ends: each ends where the next one begins, the last with the file."""

    starts: list[int]
    lines: list[int]
    names: list[str]


def outline_text(path: str, data: bytes) -> Outline:
    starts, lines, names = chunk_columns(path, data)
    chunks = list(map(Chunk, starts, [*starts[1:], len(data)], lines, names))
    return Outline(chunks, find_imports(path, data))


def find_imports(path: str, data: bytes) -> list[str]:
    found = import_pattern(path).finditer(b"\n" + data[: _IMPORT_BYTES - 1])
    names = dict.fromkeys(match[match.lastindex or 0].decode(errors="replace") for match in found)
    return list(names)[:_MAX_IMPORTS]


def chunk_columns(path: str, data: bytes) -> ChunkColumns:
    """For those who go through many files: objects for the chunks would cost a tenth more."""
    starts, lines, names = [0], [1], [b""]
    start, counted, passed = 0, 0, 0
    spaced = b"\n" + data  # so that every line, the first too, has a newline before it
    for match in islice(definition_pattern(path).finditer(spaced), MAX_CHUNKS):
        here = match.start()  # the newline's place in `spaced` is the line's place in `data`
        # Below an empty line, as most definitions are, nothing speaks of it.
        begin = here if data[here - 2 : here - 1] == b"\n" else _start_of_leading_lines(data, here, start)
        if begin == start:
            del starts[-1], lines[-1], names[-1]
        elif begin - start > CHUNK_BYTES:
            _split_last_chunk(
                data, begin, passed + 1 - data.count(b"\n", start, counted), starts, lines, names
            )
        passed += data.count(b"\n", counted, here)
        counted, start = here, begin
        starts.append(begin)
        lines.append(passed + 1)
        names.append(match[match.lastindex or 0])
    _split_last_chunk(data, len(data), passed + 1 - data.count(b"\n", start, counted), starts, lines, names)
    of_all = b"\n".join(names).decode(errors="replace").split("\n")
    kept = MAX_CHUNKS if data else 0
    return ChunkColumns(starts[:kept], lines[:kept], list(map(str.strip, of_all[:kept])))


def _split_last_chunk(
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


def _start_of_leading_lines(data: bytes, start: int, floor: int) -> int:
    """Where the comments and decorators right above the line at `start` begin, not before `floor`."""
    for _ in range(_MAX_LEADING_LINES):
        above = data.rfind(b"\n", floor, max(floor, start - 1)) + 1 or floor
        if above >= start or not _LEADING_LINE.match(data, above, start):
            break
        start = above
    return start
