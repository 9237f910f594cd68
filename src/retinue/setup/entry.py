"""What a host is told to start: our program, its arguments, its variables. Knows nothing of hosts."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retinue.core import InvalidInput

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPORARY_FOLDERS = re.compile(r"(archive|environments|builds)-v\d+")


@dataclass(frozen=True, slots=True)
class ServerEntry:
    command: str
    """Absolute: a desktop program does not see the search path of the user's shell."""
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def serving(
        cls, command: Iterable[str], roots: Iterable[Path] = (), env: Mapping[str, str] | None = None
    ) -> ServerEntry:
        """The entry that starts `retinue serve` on these roots."""
        program, *leading = command
        args = [*leading, "serve"]
        for root in roots:
            args += ["--root", str(root)]
        for text in (program, *args):
            _check_writable(text, f"the path {text!a}")
        variables = tuple((env or {}).items())
        for name, value in variables:
            if not _VARIABLE.fullmatch(name):
                raise InvalidInput(f"not the name of a variable: {name!a}", hint="write --env NAME=VALUE")
            _check_writable(value, f"the value of {name}")
        return cls(program, tuple(args), variables)


def _check_writable(text: str, what: str) -> None:
    try:
        text.encode("utf-8")
        writable = "\0" not in text
    except UnicodeEncodeError:
        writable = False
    if not writable:
        raise InvalidInput(
            f"{what} cannot be written into a host's file",
            hint="it holds bytes that are not text; rename it or leave it out",
        )


def own_command(
    invoked_as: str | None = None, search_path: str | None = None, interpreter: str | None = None
) -> tuple[str, ...]:
    """The absolute command that starts this very program again.

    Links are not followed: installers keep a link's place over an upgrade, not its target's.
    """
    invoked = sys.argv[0] if invoked_as is None else invoked_as
    if Path(invoked).stem == "retinue" and (found := shutil.which(invoked, path=search_path)):
        return (os.path.abspath(found),)  # noqa: PTH100 - Path.resolve would follow links
    return (interpreter or sys.executable, "-m", "retinue")


def is_temporary(command: str) -> bool:
    """Whether the program lies in a cache that its package manager may clear (as with `uvx retinue`)."""
    parts = Path(command).parts
    return "uv" in parts and any(_TEMPORARY_FOLDERS.fullmatch(part) for part in parts)
