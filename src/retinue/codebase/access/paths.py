"""Turns a path from a caller into a root and a path below it. Checks the spelling, not the files.

Reads the disk only for an absolute path that leads through a link above the root, as `/tmp` does on macOS.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from retinue.codebase.access.directory import POSIX
from retinue.core import InvalidInput, PathDenied, Root


class FileEntry(NamedTuple):
    """The path of a file or folder inside a root. It may no longer exist.

    A named tuple instead of a dataclass, because a walk creates tens of thousands of them.
    """

    root: Root
    path: str
    """Relative to the root, `/`-separated, spelled as on disk. `""` is the root itself."""


def candidate_entries(roots: Sequence[Root], path: str) -> list[FileEntry]:
    """Return every entry that a path can mean: one if it is absolute, one in each root if it is relative."""
    if "\0" in path:
        raise InvalidInput("a path cannot contain a zero byte")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a path must be valid UTF-8 text") from None
    pure = PurePosixPath(path) if POSIX else PureWindowsPath(path)
    if ".." in pure.parts:
        raise PathDenied("a path cannot contain '..'", hint="name the path from its root", reason="denied")
    if pure.is_absolute():
        return [_entry_of_absolute(roots, Path(pure))]
    if pure.drive or pure.root:
        raise PathDenied("a path cannot name a drive without its root", reason="denied")
    relative = "" if str(pure) == "." else pure.as_posix()
    return [FileEntry(root, relative) for root in roots]


def _entry_of_absolute(roots: Sequence[Root], absolute: Path) -> FileEntry:
    """Return the entry of an absolute path in the innermost root that contains it."""
    for spelled in (absolute, Path(os.path.realpath(absolute))):
        containing = [root for root in roots if spelled.is_relative_to(root.path)]
        if containing:
            innermost = max(containing, key=lambda root: len(root.path.parts))
            path = spelled.relative_to(innermost.path).as_posix()
            return FileEntry(innermost, "" if path == "." else path)
    raise PathDenied(
        "the path is outside the roots", hint="name a path below one of the roots", reason="denied"
    )
