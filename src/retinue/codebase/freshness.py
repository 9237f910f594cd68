"""Whether files and folders are what they were, told by their stamps. Opens nothing.

As long as no known folder and no known file changed, no file was added, removed, renamed or edited, so the
walk with its rules and ignore files need not be done again.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

GONE = 0
UNSETTLED = -1
"""Equal to no file's: touched so recently that a further edit might leave the same stamp."""
_SETTLED_NS = 100_000_000
"""Clocks of file systems tick every few milliseconds, on some of them every two seconds for whole seconds."""
_COARSE_NS = 2_100_000_000
_STAMPED = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")


def stamp(status: os.stat_result) -> int:
    """Size, modification, change and inode in one number: half the cost of four, and never -1."""
    return hash(_STAMPED(status))


def settled(status: os.stat_result, as_of_ns: int) -> int:
    """The stamp to remember of what was looked at then; UNSETTLED if it may have changed after the look."""
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    needed = _COARSE_NS if latest % 1_000_000_000 == 0 else _SETTLED_NS
    return UNSETTLED if as_of_ns - latest < needed else stamp(status)


def settled_at(path: str | Path, as_of_ns: int) -> int:
    try:
        return settled(os.lstat(path), as_of_ns)
    except OSError:
        return GONE


def changed(paths: Sequence[bytes], known: array[int]) -> list[int]:
    """Which of the paths no longer have the stamp known of them."""
    now = array("q")
    # `stamp` of each, as a chain that runs no line of Python: every question looks at every file.
    stamps = map(hash, map(_STAMPED, map(os.lstat, paths)))
    while len(now) < len(paths):
        try:
            now.extend(stamps)
        except OSError:
            now.append(GONE)  # the chain goes on behind it
    if now == known:
        return []
    return [place for place, (one, before) in enumerate(zip(now, known, strict=True)) if one != before]
