"""What a run's programs may see and change, and who holds them to it. Knows no particular sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.core.agent import Network
from retinue.executors.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    workspace: Path
    writable: bool = True
    """Whether the workspace may be changed."""
    network: Network = True
    visible: tuple[Path, ...] = ()
    """What may be read besides, wherever it lies."""
    changeable: tuple[Path, ...] = ()
    """What may be changed besides."""
    hidden: tuple[Path, ...] = ()
    """Folders that are not to be seen: ours, for example, with every other run's secrets."""
    emptied: tuple[Path, ...] = ()
    """Files and folders that are to be found empty."""
    child: Path | None = None
    """The program through which a run reaches us, where programs of this machine cannot be started."""


class Sandbox(Protocol):
    name: str
    """As a result's `isolation` says it."""
    has_host_programs: bool
    """Whether programs of this machine can be started inside."""

    def enclose(self, program: Program, place: Place) -> Program:
        """The program that runs the given one inside."""
        ...

    async def clear(self, program: Program) -> None:
        """Remove what an enclosed program that was ended may have left behind."""
        ...


class NoSandbox:
    """The programs run with the user's own rights."""

    name = "none"
    has_host_programs = True

    def enclose(self, program: Program, place: Place) -> Program:
        return program

    async def clear(self, program: Program) -> None:
        """Nothing is left that the process group has not ended."""


def installation(name: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders that a program needs to start: its own, that of its package, that of its interpreter."""
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        return ()
    file = Path(found).resolve()
    packages = [parent for parent in file.parents if parent.name == "node_modules"]
    folders = [Path(found).absolute().parent, packages[-1] if packages else file.parent]
    with file.open("rb") as opened:
        first = opened.readline(200)
    if first.startswith(b"#!"):
        interpreter = shutil.which(first[2:].split()[-1].decode("utf-8", "replace"), path=env.get("PATH"))
        if interpreter:
            folders.append(Path(interpreter).resolve().parent)
    return tuple(dict.fromkeys(folders))
