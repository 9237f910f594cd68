"""Splits a file into chunks of the size of a definition, and finds its imports.

Works on UTF-8 bytes: splitting and counting bytes is several times as fast as decoding them first. The
regular expressions of each language are in `languages`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from retinue.codebase.parse.languages import definition_pattern, import_pattern

CHUNK_BYTES = 3_000
"""About 80 lines. A longer definition is split into several chunks with the same name."""
MAX_CHUNKS = 4_000
"""Limit for one file. The last chunk contains the rest."""
_MAX_IMPORTS = 80
_IMPORT_BYTES = 16_000
"""How much of a file is searched for imports: in most languages they come first."""

_LEADING_LINE = re.compile(rb"[ \t]{0,64}(?:#(?![ \t]{0,8}(?:define|include|if|endif))|//|/\*|\*|@|\[|--)")
"""A line above a definition that belongs to it: a comment, a decorator or an attribute."""
_MAX_LEADING_LINES = 12


class Chunk(NamedTuple):
    """A definition with the comments above it, or a part of the text that defines nothing."""

    start: int
    end: int
    """The chunk is `data[start:end]`."""
    line: int
    """The line with the name, below comments and decorators, or else the first line. Counted from 1."""
    name: str
    """The defined name, a heading, or an empty string."""


class Outline(NamedTuple):
    """The chunks and imports of one file."""

    chunks: list[Chunk]
    """The whole file in order, split where definitions begin."""
    imports: list[str]
    """Modules, paths and headers that the file imports."""


class ChunkColumns(NamedTuple):
    """The chunks of a file as columns. Each chunk ends where the next begins; the last ends with the file."""

    starts: list[int]
    lines: list[int]
    names: list[str]


def outline_text(path: str, data: bytes) -> Outline:
    """Return the chunks and imports of a file. The suffix of the path determines the language."""
    starts, lines, names = chunk_columns(path, data)
    chunks = list(map(Chunk, starts, [*starts[1:], len(data)], lines, names))
    return Outline(chunks, find_imports(path, data))


def find_imports(path: str, data: bytes) -> list[str]:
    """Return the distinct modules, paths and headers that a file imports."""
    found = import_pattern(path).finditer(b"\n" + data[: _IMPORT_BYTES - 1])
    names = dict.fromkeys(match[match.lastindex or 0].decode(errors="replace") for match in found)
    return list(names)[:_MAX_IMPORTS]


def chunk_columns(path: str, data: bytes) -> ChunkColumns:
    """Return the chunks as columns, which saves a tenth of the time compared with `Chunk` objects."""
    starts, lines, names = [0], [1], [b""]
    start, counted, lines_passed = 0, 0, 0
    padded = b"\n" + data  # every line, the first one included, now follows a newline
    for match in islice(definition_pattern(path).finditer(padded), MAX_CHUNKS):
        here = match.start()  # the newline's position in `padded` is the line's position in `data`
        # Most definitions follow an empty line and have no comment above.
        begin = here if data[here - 2 : here - 1] == b"\n" else _start_of_leading_lines(data, here, start)
        if begin == start:
            del starts[-1], lines[-1], names[-1]
        elif begin - start > CHUNK_BYTES:
            _split_last_chunk(
                data, begin, lines_passed + 1 - data.count(b"\n", start, counted), starts, lines, names
            )
        lines_passed += data.count(b"\n", counted, here)
        counted, start = here, begin
        starts.append(begin)
        named = match.lastindex or 0  # the name may be on the line below its type
        lines.append(lines_passed + 1 + padded.count(b"\n", here + 1, match.start(named)))
        names.append(match[named])
    _split_last_chunk(
        data, len(data), lines_passed + 1 - data.count(b"\n", start, counted), starts, lines, names
    )
    all_names = b"\n".join(names).decode(errors="replace").split("\n")
    kept = MAX_CHUNKS if data else 0
    return ChunkColumns(starts[:kept], lines[:kept], list(map(str.strip, all_names[:kept])))


def _split_last_chunk(
    data: bytes, end: int, line: int, starts: list[int], lines: list[int], names: list[bytes]
) -> None:
    """Split the last chunk, which starts on `line` and ends at byte `end`, if it is too long."""
    start, name = starts[-1], names[-1]
    while end - start > CHUNK_BYTES and (cut := data.rfind(b"\n", start, start + CHUNK_BYTES) + 1) > start:
        line += data.count(b"\n", start, cut)
        start = cut
        starts.append(start)
        lines.append(line)
        names.append(name)


def _start_of_leading_lines(data: bytes, start: int, floor: int) -> int:
    """Return where the comments and decorators directly above the line at `start` begin, at least `floor`."""
    for _ in range(_MAX_LEADING_LINES):
        above = data.rfind(b"\n", floor, max(floor, start - 1)) + 1 or floor
        if above >= start or not _LEADING_LINE.match(data, above, start):
            break
        start = above
    return start
