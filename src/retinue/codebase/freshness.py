"""Whether files and folders are what they were, told by their stamps. Opens nothing.

As long as no known folder and no known file changed, no file was added, removed, renamed or edited, so the
walk with its rules and ignore files need not be done again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

GONE = 0
UNSETTLED = -1
"""Equal to no file's: touched so recently that a further edit might leave the same stamp."""
_SETTLED_NS = 100_000_000
"""Clocks of file systems tick every few milliseconds, on some of them every two seconds for whole seconds."""
_COARSE_NS = 2_100_000_000


def stamp(status: os.stat_result) -> int:
    """Size, modification, change and inode in one number: half the cost of four, and never -1."""
    return hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


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


def changed(root: Path, known: Iterable[tuple[str, int]]) -> list[int]:
    """Where in `known`, paths with their stamps, something is no longer the same."""
    prefix = f"{root}{os.sep}"
    lstat = os.lstat
    found: list[int] = []
    for place, (path, before) in enumerate(known):
        if before == UNSETTLED:
            found.append(place)
            continue
        try:
            now = lstat(prefix + path)
        except OSError:
            if before != GONE:
                found.append(place)
            continue
        # `stamp`, written out: this line runs for every file at every question.
        if hash((now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino)) != before:
            found.append(place)
    return found
