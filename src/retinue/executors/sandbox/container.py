"""The Docker and Podman sandbox: a program runs in an image and sees only its workspace of this machine.

The values of variables are passed in the engine's environment, because any user of the machine can read its
arguments.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from retinue.core import Unavailable, find_program
from retinue.executors.process import RUN_ID_VARIABLE, Program
from retinue.executors.sandbox.fifo_bridge import BRIDGE_SCRIPT_PATH
from retinue.executors.sandbox.sandbox import SandboxAccess

ENGINES = ("podman", "docker")
HOST_VARIABLES = ("PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP")
"""Variables that describe this machine, so they are not passed into an image."""
MAX_PROCESSES = "512"
ULIMIT = "4096"
CLEAR_SECONDS = 20.0


class Container:
    """Runs programs in an image with Podman or Docker."""

    has_host_programs = False

    def __init__(self, engine: str, image: str) -> None:
        self.name = Path(engine).name
        self._engine = engine
        self._image = image

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        options = [
            *self._isolation_options(program),
            *_mount_options(access),
            *_variable_options(program.env),
        ]
        if access.network is not True:
            options += ("--network", access.network or "none")
        workspace = str(program.cwd.resolve())
        argv = (self._engine, "run", *options, "--workdir", workspace, self._image, *program.argv)
        return replace(program, argv=argv)

    async def clear(self, program: Program) -> None:
        """Remove the container, which may still run after the engine's client was killed."""
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

    def _isolation_options(self, program: Program) -> Iterator[str]:
        yield from ("--rm", "--interactive", "--name", container_name(program))
        yield from ("--read-only", "--tmpfs", "/tmp", "--tmpfs", "/home", "--env", "HOME=/home")  # noqa: S108
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        yield from ("--pids-limit", MAX_PROCESSES)
        yield from _ulimit_options()
        if self.name == "docker" and sys.platform == "linux":
            # Docker's root is this machine's root. Without capabilities it cannot read the user's files.
            yield from ("--user", f"{os.getuid()}:{os.getgid()}")


def container_name(program: Program) -> str:
    return f"retinue-{program.env[RUN_ID_VARIABLE]}"


def _ulimit_options() -> Iterator[str]:
    """Set low limits. Engines ask for a million by default and fail where that is not allowed."""
    for name in ("nofile", "nproc"):
        yield from ("--ulimit", f"{name}={ULIMIT}:{ULIMIT}")


def _mount_options(access: SandboxAccess) -> Iterator[str]:
    mounts = dict.fromkeys(access.visible, "ro")
    mounts[access.workspace] = "rw" if access.writable else "ro"
    mounts |= dict.fromkeys(access.changeable, "rw")
    for path, mode in mounts.items():
        if path.exists():
            yield from ("--volume", f"{path.resolve()}:{path.resolve()}:{mode}")
    if access.bridge_script is not None:
        yield from ("--volume", f"{access.bridge_script}:{BRIDGE_SCRIPT_PATH}:ro")
    for path in (path.resolve() for path in access.emptied):
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--volume", f"{os.devnull}:{path}:ro")


def _variable_options(env: Mapping[str, str]) -> Iterator[str]:
    for name in env:
        if name not in HOST_VARIABLES:
            yield from ("--env", name)


def find_container_engine(image: str, env: Mapping[str, str], outside: Iterable[Path] = ()) -> Container:
    """Return Podman or Docker, whichever is on the PATH; raise `Unavailable` if neither is.

    Takes no program in one of the folders `outside`.
    """
    for name in ENGINES:
        if found := find_program(name, env.get("PATH"), outside):
            return Container(str(found), image)
    raise Unavailable(
        "the agent runs in a container, but neither Podman nor Docker is installed",
        hint="install one of them, or remove `container` from the agent's file",
    )
