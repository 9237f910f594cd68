"""From a path that somebody wrote to a root and a path below it. Looks at spelling, not at the files.

The one look at the disk is for an absolute path spelled through a link above the root, as `/tmp` is on macOS."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from retinue.codebase.access.directory import POSIX
from retinue.core import InvalidInput, PathDenied, Root

# MERGED entry: One file inside a root, known by its name alone. Says nothing of whether it still exists.


class FileEntry(NamedTuple):
    """A tuple, not a dataclass: a walk makes tens of thousands of them."""

    root: Root
    path: str
    """Relative to the root, `/`-separated, spelled as on disk."""


def candidate_entries(roots: Sequence[Root], given: str) -> list[FileEntry]:
    """Every place the path can mean: one for an absolute path, one in each root for a relative one.

    The path `""` of an entry is the root itself.
    """
    if "\0" in given:
        raise InvalidInput("a path cannot hold a zero byte")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a path must be text that UTF-8 can hold") from None
    pure = PurePosixPath(given) if POSIX else PureWindowsPath(given)
    if ".." in pure.parts:
        raise PathDenied("a path cannot hold '..'", hint="name the path from its root", reason="denied")
    if pure.is_absolute():
        return [_entry_of_absolute(roots, Path(pure))]
    if pure.drive or pure.root:
        raise PathDenied("a path cannot name a drive without its root", reason="denied")
    path = "" if str(pure) == "." else pure.as_posix()
    return [FileEntry(root, path) for root in roots]


def _entry_of_absolute(roots: Sequence[Root], absolute: Path) -> FileEntry:
    for spelled in (absolute, Path(os.path.realpath(absolute))):
        around = [root for root in roots if spelled.is_relative_to(root.path)]
        if around:
            innermost = max(around, key=lambda root: len(root.path.parts))
            path = spelled.relative_to(innermost.path).as_posix()
            return FileEntry(innermost, "" if path == "." else path)
    raise PathDenied(
        "the path is outside the roots", hint="name a path below one of the roots", reason="denied"
    )
