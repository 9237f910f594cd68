"""Docker and Podman: a program runs in an image, with its workspace and nothing else of this machine.

Values of variables go through the engine's own environment, never through its arguments, which anybody on
the machine can read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from retinue.core import Unavailable
from retinue.executors.process import MARK, Program
from retinue.executors.sandbox.fifo_bridge import INSIDE
from retinue.executors.sandbox.sandbox import SandboxPlace

ENGINES = ("podman", "docker")
THE_IMAGES_OWN = ("PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP")
"""Variables that mean this machine, not the image."""
MAX_PROCESSES = "512"
MAX_OF_A_KIND = "4096"
CLEAR_SECONDS = 20.0


class Container:
    has_host_programs = False

    def __init__(self, engine: str, image: str) -> None:
        self.name = Path(engine).name
        self._engine = engine
        self._image = image

    def enclose(self, program: Program, place: SandboxPlace) -> Program:
        options = [*self._options(program), *_mounts(place), *_variables(program.env)]
        if place.network is not True:
            options += ("--network", place.network or "none")
        workspace = str(program.cwd.resolve())
        argv = (self._engine, "run", *options, "--workdir", workspace, self._image, *program.argv)
        return replace(program, argv=argv)

    async def clear(self, program: Program) -> None:
        """The engine's client may be dead while the container lives."""
        remove = [self._engine, "rm", "--force", container_name(program)]
        run = partial(
            subprocess.run,
            remove,
            env=dict(program.env),
            capture_output=True,
            timeout=CLEAR_SECONDS,
            check=False,
        )
        await anyio.to_thread.run_sync(run)

    def _options(self, program: Program) -> Iterator[str]:
        yield from ("--rm", "--interactive", "--name", container_name(program))
        yield from ("--read-only", "--tmpfs", "/tmp", "--tmpfs", "/home", "--env", "HOME=/home")  # noqa: S108
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        yield from ("--pids-limit", MAX_PROCESSES)
        yield from _limits()
        if self.name == "docker" and sys.platform == "linux":
            # Its root is this machine's, and without capabilities may not even read the user's files.
            yield from ("--user", f"{os.getuid()}:{os.getgid()}")


def container_name(program: Program) -> str:
    return f"retinue-{program.env[MARK]}"


def _limits() -> Iterator[str]:
    """Modest ones: an engine asks for a million by itself, and fails where that is not given."""
    for name in ("nofile", "nproc"):
        yield from ("--ulimit", f"{name}={MAX_OF_A_KIND}:{MAX_OF_A_KIND}")


def _mounts(place: SandboxPlace) -> Iterator[str]:
    mounts = dict.fromkeys(place.visible, "ro")
    mounts[place.workspace] = "rw" if place.writable else "ro"
    mounts |= dict.fromkeys(place.changeable, "rw")
    for path, access in mounts.items():
        if path.exists():
            yield from ("--volume", f"{path.resolve()}:{path.resolve()}:{access}")
    if place.child is not None:
        yield from ("--volume", f"{place.child}:{INSIDE}:ro")
    for path in (path.resolve() for path in place.emptied):
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--volume", f"{os.devnull}:{path}:ro")


def _variables(env: Mapping[str, str]) -> Iterator[str]:
    for name in env:
        if name not in THE_IMAGES_OWN:
            yield from ("--env", name)


def find_container_engine(image: str, env: Mapping[str, str]) -> Container:
    for name in ENGINES:
        if found := shutil.which(name, path=env.get("PATH")):
            return Container(found, image)
    raise Unavailable(
        "the agent runs in a container, and neither Podman nor Docker is here",
        hint="install one of them, or take `container` out of the agent's file",
    )
