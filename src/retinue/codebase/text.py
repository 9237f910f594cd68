"""Bytes to text: byte-order marks first, then strict UTF-8, Latin-1 as the last resort. Opens nothing."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from retinue.core import counted

SNIFFED_BYTES = 8_192

# The longer marks first: UTF-32's begins like UTF-16's.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Text(NamedTuple):
    utf8: bytes
    """Valid UTF-8 without byte-order mark, lines ended by `\\n` alone."""
    encoding: str
    """What the file was written in."""


def is_binary(data: bytes) -> bool:
    """A zero byte near the start that no byte-order mark explains. The first `SNIFFED_BYTES` are enough."""
    return b"\0" in data[:SNIFFED_BYTES] and not data.startswith(tuple(mark for mark, _ in MARKS))


def to_text(data: bytes) -> Text:
    """The text of a file that is not binary. Nothing in it can make this fail."""
    encoding = "utf-8"
    for mark, marked in MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :].decode(marked, "replace").encode(), marked
            break
    else:
        if not data.isascii() and not _is_utf8(data):
            data, encoding = data.decode("latin-1").encode(), "latin-1"
    return Text(data.replace(b"\r\n", b"\n"), encoding)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def clip(line: str, limit: int, focus: int = 0) -> str:
    """At most `limit` characters of a line around the one at `focus`, with a mark for each cut end."""
    if len(line) <= limit:
        return line
    start = max(0, min(focus - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{counted(start, 'character')} cut]… " if start else ""
    after = f" …[{counted(len(line) - end, 'character')} cut]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"
