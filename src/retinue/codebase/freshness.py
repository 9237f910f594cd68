"""Whether files and folders are what they were, told by their stamps. Opens nothing.

As long as no known folder and no known file changed, no file was added, removed, renamed or edited, so the
walk with its rules and ignore files need not be done again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

Stamped = tuple[int, int, int, int]
"""Size, modification and change in nanoseconds, inode."""

GONE: Stamped = (-1, -1, -1, -1)
UNSETTLED: Stamped = (-2, -2, -2, -2)
"""Equal to no file: touched so recently that a further edit might leave the same stamp."""
_SETTLED_NS = 100_000_000
"""Clocks of file systems tick every few milliseconds, on some of them every two seconds for whole seconds."""


def stamp_of(status: os.stat_result, now_ns: int) -> Stamped:
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    needed = 2_100_000_000 if latest % 1_000_000_000 == 0 else _SETTLED_NS
    if now_ns - latest < needed:
        return UNSETTLED
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def stamp_at(path: str | Path) -> Stamped:
    """What to remember of a path now."""
    try:
        return stamp_of(os.lstat(path), time.time_ns())
    except OSError:
        return GONE


def changed(roots: Sequence[Path], known: Iterable[tuple[int, str, Stamped]]) -> list[tuple[int, str]]:
    """Those of the known (root, path, stamp) that are no longer the same."""
    prefixes = [f"{root}{os.sep}" for root in roots]
    lstat = os.lstat
    found: list[tuple[int, str]] = []
    for root, path, (size, modified, changed_at, inode) in known:
        try:
            now = lstat(prefixes[root] + path)
        except OSError:
            if size != GONE[0]:
                found.append((root, path))
            continue
        if (
            now.st_mtime_ns != modified
            or now.st_size != size
            or now.st_ctime_ns != changed_at
            or now.st_ino != inode
        ):
            found.append((root, path))
    return found
