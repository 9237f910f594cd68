"""What to run: a program with its arguments, environment and directory, and why it may not be startable."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retinue.core import InvalidInput, RetinueError, Unavailable
from retinue.executors.process.reaper import FIRST_HANDED

CAN_HAND = sys.platform == "linux"
"""Whether programs can be handed secrets: that takes a keeper and files in memory."""


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The whole environment, and never shown."""
    cwd: Path
    grace: float = 2.0
    """Seconds from TERM to KILL."""
    handed: tuple[bytes, ...] = field(default=(), repr=False)
    """Secrets that it reads from open files (`handed_descriptor`): no environment or folder has them."""

    @property
    def name(self) -> str:
        """Without its directory, which may lie outside the roots."""
        return os.path.basename(self.argv[0])  # noqa: PTH119 (`Path` would drop a trailing slash)

    def file(self) -> str:
        """Where the program is, found on its own PATH; a relative path is relative to its own directory."""
        if not self.cwd.is_dir():
            raise unstartable(self.name, "directory", errno.ENOENT)
        asked = self.argv[0]
        if os.path.dirname(asked):  # noqa: PTH120
            asked = str(self.cwd.absolute() / asked)
        found = shutil.which(asked, path=self.env.get("PATH", os.defpath))
        if found is None:
            raise unstartable(self.name, "program", errno.EACCES if Path(asked).is_file() else errno.ENOENT)
        return os.path.abspath(found)  # noqa: PTH100 (without following the symlink it may be)


def unstartable(name: str, step: str, number: int) -> RetinueError:
    """The error for a program that the system refused to start, from the number it gave."""
    if step == "directory":
        return InvalidInput(
            f"{name} cannot start: its working directory cannot be entered",
            hint="name an existing directory",
            reason=os.strerror(number),
        )
    hint = {
        errno.ENOENT: "install it or correct its name; a script also needs the interpreter it names",
        errno.EACCES: "make the file executable",
        errno.ENOEXEC: "the file is not a program: a script needs a first line like `#!/bin/sh`",
        errno.E2BIG: "the arguments and the environment are too long: pass the prompt on stdin",
    }.get(number)
    return Unavailable(f"{name} cannot start: {os.strerror(number)}", hint=hint, program=name)


def handed_descriptor(place: int) -> int:
    """The descriptor under which a program finds the file at this place of `handed`."""
    return FIRST_HANDED + place
