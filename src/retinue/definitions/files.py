"""Opening an agent's file: regular, of a bounded size, and inside its project whatever links say (P6)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from retinue.definitions.frontmatter import MAX_BYTES
from retinue.definitions.problem import MalformedDefinition

DefinitionStamp = tuple[int, ...]


def stamp(file: Path) -> DefinitionStamp | None:
    """Changes when the file does; None if it is gone."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def read_file(file: Path, base: Path | None = None) -> bytes:
    """Its bytes, one more than is allowed at most; `MalformedDefinition` if it may not or cannot be read."""
    try:
        real = file.resolve(strict=True)
        if base is not None and not real.is_relative_to(base.resolve()):
            raise MalformedDefinition(
                1, "the file lies outside of its project", "a project's link may not leave it"
            )
        # Not blocking: a pipe would keep us waiting for whoever writes into it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(real, flags | getattr(os, "O_BINARY", 0)), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise MalformedDefinition(1, "not a regular file")
            if not os.path.samestat(found, file.resolve(strict=True).stat()):
                raise MalformedDefinition(1, "the file was swapped while it was read", "try again")
            return opened.read(MAX_BYTES + 1)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "links in a circle"
        raise MalformedDefinition(1, f"cannot be read: {reason}") from None
