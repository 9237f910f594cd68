"""What a run's programs may see and change, and who holds them to it. Knows no particular sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.core import NetworkChoice
from retinue.executors.process import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPlace:
    workspace: Path
    writable: bool = True
    """Whether the workspace may be changed."""
    network: NetworkChoice = True
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

    def enclose(self, program: Program, place: SandboxPlace) -> Program:
        """The program that runs the given one inside."""
        ...

    async def clear(self, program: Program) -> None:
        """Remove what an enclosed program that was ended may have left behind."""
        ...


class NoSandbox:
    """The programs run with the user's own rights."""

    name = "none"
    has_host_programs = True

    def enclose(self, program: Program, place: SandboxPlace) -> Program:
        return program

    async def clear(self, program: Program) -> None:
        """Nothing is left that the process group has not ended."""


def installation(name: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    """What a program needs to start: its own folder, that of its package, those of its interpreter."""
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        return ()
    file = Path(found).resolve()
    packages = [parent for parent in file.parents if parent.name == "node_modules"]
    folders = [Path(found).absolute().parent, packages[-1] if packages else file.parent]
    with file.open("rb") as opened:
        first = opened.readline(200).decode("utf-8", "replace")
    if first.startswith("#!") and (interpreter := _interpreter(first[2:].split(), env)):
        folders += _home_of(interpreter)
    return tuple(dict.fromkeys(folders))


def _interpreter(words: Sequence[str], env: Mapping[str, str]) -> Path | None:
    """Of a script's first line: its first word, or what `env` is to look for."""
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0], path=env.get("PATH")) if words else None
    return None if found is None else Path(found).absolute()


def _home_of(interpreter: Path) -> Iterator[Path]:
    """Where it lies, and the libraries of a Python or a virtual environment: those alone, as it may be the
    home that it is installed in."""
    real = interpreter.resolve()
    yield real.parent
    if real.name.startswith("python"):
        for place in dict.fromkeys((interpreter.parent, real.parent)):
            found = (place, *(place.parent / name for name in ("lib", "lib64", "pyvenv.cfg")))
            yield from (path for path in found if path.exists())
