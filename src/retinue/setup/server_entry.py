"""The program that a host starts: its command, its arguments and its environment variables.

Knows nothing of hosts and their files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retinue.core import InvalidInput, find_program

SHARED_COMMAND = ("retinue",)
"""The command in a project's file, which other people share: no path of this machine, found on PATH."""

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UV_CACHE_FOLDER = re.compile(r"(archive|environments|builds)-v\d+")


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """The program that a host starts, with its arguments and its environment variables."""

    command: str
    """An absolute path, because desktop programs do not see the PATH of the user's shell."""
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    approved: bool = False
    """Whether the host may call the tools without asking, if its file can say so."""

    @classmethod
    def serving(
        cls,
        command: Iterable[str],
        roots: Iterable[str | Path] = (),
        env: Mapping[str, str] | None = None,
        *,
        follow_host: bool = False,
        approved: bool = False,
    ) -> ServerEntry:
        """Build the entry that starts `retinue serve` with these roots."""
        program, *leading = command
        args = [*leading, "serve"]
        if follow_host:
            args.append("--follow-host")
        for root in roots:
            args += ["--root", str(root)]
        for text in (program, *args):
            _require_writable(text, f"the path {text!a}")
        variables = tuple((env or {}).items())
        for name, value in variables:
            if not _VARIABLE_NAME.fullmatch(name):
                raise InvalidInput(f"not a valid variable name: {name!a}", hint="write --env NAME=VALUE")
            _require_writable(value, f"the value of {name}")
        return cls(program, tuple(args), variables, approved)


def _require_writable(text: str, what: str) -> None:
    """Raise `InvalidInput` if the text cannot be written as UTF-8 or contains a NUL character."""
    try:
        text.encode("utf-8")
        writable = "\0" not in text
    except UnicodeEncodeError:
        writable = False
    if not writable:
        raise InvalidInput(
            f"{what} cannot be written to a host's file",
            hint="it contains characters that are not valid text; change it or leave it out",
        )


def retinue_command(
    invoked_as: str | None = None, search_path: str | None = None, interpreter: str | None = None
) -> tuple[str, ...]:
    """Return the command that starts the running Retinue, with an absolute path.

    Does not follow symlinks, because an upgrade keeps the link but may move its target.
    """
    invoked = sys.argv[0] if invoked_as is None else invoked_as
    if Path(invoked).stem == "retinue" and (found := find_program(invoked, search_path)):
        return (str(found),)
    return (interpreter or sys.executable, "-m", "retinue")


def is_in_package_cache(command: str) -> bool:
    """Return whether uv may delete the program when it clears its cache (as with `uvx --from`)."""
    parts = Path(command).parts
    return "uv" in parts and any(_UV_CACHE_FOLDER.fullmatch(part) for part in parts)
