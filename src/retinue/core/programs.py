"""Finds the programs that Retinue starts by name: git, ripgrep, sandboxes, coding CLIs.

Every program is found here, because PATH can lead into the files that Retinue reads. A repository could then
choose the program. Starts nothing.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProgramLookup:
    """Where a program is, and which programs of the same name were not taken."""

    path: Path | None
    """Absolute. Symlinks are kept, because some programs look at the name they were started by."""
    refused: tuple[str, ...] = ()
    """A sentence for each program of this name that was found and not taken."""


def find_program(name: str, search_path: str | None = None, outside: Iterable[Path] = ()) -> Path | None:
    """Return the absolute path of a program, or None. See `look_up_program`."""
    return look_up_program(name, search_path, outside).path


def look_up_program(name: str, search_path: str | None = None, outside: Iterable[Path] = ()) -> ProgramLookup:
    """Look for a program on `search_path`, by default on this process's PATH.

    Ignores a folder that is relative, that every user may write to, or that is in one of the folders
    `outside` or in the repository around it. One that contains the home directory does not count, because
    the user's own programs are there. This Python's own folder is always allowed. A name with a folder is not
    looked up: it is taken as it is, relative to the current directory.
    """
    if os.path.dirname(name):  # noqa: PTH120
        found = shutil.which(name)
        return ProgramLookup(None if found is None else Path(found).absolute())
    forbidden = [
        folder
        for inner in map(os.path.realpath, outside)
        for folder in (inner, *_repositories_around(inner))
        if not _contains_home(folder)
    ]
    refused: list[str] = []
    path = os.environ.get("PATH", os.defpath) if search_path is None else search_path
    for folder in dict.fromkeys(path.split(os.pathsep)):
        # An empty entry means the current directory.
        found = shutil.which(name, path=folder or os.curdir)
        if found is None:
            continue
        if reason := _refusal(folder, found, forbidden):
            refused.append(f"{found} is not used: {reason}")
        else:
            return ProgramLookup(Path(found), tuple(refused))
    return ProgramLookup(None, tuple(refused))


def _refusal(folder: str, program: str, forbidden: list[str]) -> str:
    """Return why a program of this folder must not be started, or an empty string."""
    if not os.path.isabs(folder):  # noqa: PTH117
        return "its folder on PATH is not an absolute path"
    if not os.path.isabs(program):  # noqa: PTH117
        return "it is in the current directory"  # Windows looks there first
    real = os.path.realpath(program)
    for inner in (os.path.realpath(folder), os.path.dirname(real)):  # noqa: PTH120
        if any(map(Path(inner).is_relative_to, forbidden)) and not Path(inner).is_relative_to(sys.prefix):
            return "it is inside a folder that Retinue reads or works in"
        if _anyone_may_write(inner):
            return "every user may write to its folder"
    return ""


def _repositories_around(folder: str) -> Iterator[str]:
    """Yield the repositories that contain a folder."""
    return (str(each) for each in Path(folder).parents if os.path.lexists(each / ".git"))


def _contains_home(folder: str) -> bool:
    return Path(os.path.realpath(Path.home())).is_relative_to(folder)


def _anyone_may_write(folder: str) -> bool:
    try:
        return sys.platform != "win32" and bool(os.stat(folder).st_mode & stat.S_IWOTH)  # noqa: PTH116
    except OSError:
        return True
