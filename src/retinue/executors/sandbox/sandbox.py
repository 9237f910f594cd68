"""Defines what a sandboxed program may see and change, and the interface of every sandbox.

`bubblewrap.py` and `container.py` implement it. Knows no particular sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.core import NetworkChoice, find_program
from retinue.executors.process import Program

CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"),
    *(".netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/gh", ".config/gcloud"),
)
"""Files and folders of a home directory that appear empty to project checks."""
CACHES = (".cache",)
"""Folders of a home directory that project checks may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxAccess:
    """The files that a sandboxed program may see and change."""

    workspace: Path
    writable: bool = True
    """Whether the program may change the workspace."""
    network: NetworkChoice = True
    visible: tuple[Path, ...] = ()
    """More paths that the program may read."""
    changeable: tuple[Path, ...] = ()
    """More paths that the program may change."""
    hidden: tuple[Path, ...] = ()
    """Folders that the program must not see, such as our data folder with the secrets of other runs."""
    emptied: tuple[Path, ...] = ()
    """Files and folders that appear empty to the program."""
    bridge_script: Path | None = None
    """The script that connects the run to this server, if the sandbox has no programs of this machine."""


class Sandbox(Protocol):
    """Restricts what a program can see and change."""

    name: str
    """The value of `isolation` in a result."""
    has_host_programs: bool
    """Whether programs of this machine can be started in the sandbox."""

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        """Return a program that runs `program` in the sandbox."""
        ...

    async def clear(self, program: Program) -> None:
        """Remove what an enclosed program may have left behind when it was ended."""
        ...


class NoSandbox:
    """Runs programs with the user's own rights."""

    name = "none"
    has_host_programs = True

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        return program

    async def clear(self, program: Program) -> None:
        """Do nothing: the process group has ended everything."""


def sandbox_project_check(sandbox: Sandbox, home: Path, data_dir: Path, program: Program) -> Program:
    """Put one of the project's own checks into a sandbox.

    Unlike an agent's program, a check is the user's own command and needs the user's own tools, which are
    often in the home directory. So it may read the home directory without its credentials, and change its
    own folder. `data_dir` is our data folder, which appears empty to it.
    """
    access = SandboxAccess(
        workspace=program.cwd,
        visible=(home,),
        changeable=tuple(home / name for name in CACHES),
        emptied=(data_dir, *(home / name for name in CREDENTIALS)),
    )
    return sandbox.enclose(program, access)


def installation_folders(name: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders that a program needs to start: its own, its package's and its interpreter's."""
    found = find_program(name, env.get("PATH"))
    if found is None:
        return ()
    file = found.resolve()
    packages = [parent for parent in file.parents if parent.name == "node_modules"]
    folders = [found.parent, packages[-1] if packages else file.parent]
    with file.open("rb") as opened:
        first_line = opened.readline(200).decode("utf-8", "replace")
    if first_line.startswith("#!") and (interpreter := _find_interpreter(first_line[2:].split(), env)):
        folders += _interpreter_folders(interpreter)
    return tuple(dict.fromkeys(folders))


def _find_interpreter(words: Sequence[str], env: Mapping[str, str]) -> Path | None:
    """Find the interpreter of a script from the words of its first line, also for `#!/usr/bin/env NAME`."""
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return find_program(words[0], env.get("PATH")) if words else None


def _interpreter_folders(interpreter: Path) -> Iterator[Path]:
    """Yield an interpreter's folder, and the libraries of a Python or a virtual environment.

    The whole prefix would be too much: a Python may be installed directly in the home directory.
    """
    real = interpreter.resolve()
    yield real.parent
    if real.name.startswith("python"):
        for folder in dict.fromkeys((interpreter.parent, real.parent)):
            needed = (folder, *(folder.parent / name for name in ("lib", "lib64", "pyvenv.cfg")))
            yield from (path for path in needed if path.exists())
