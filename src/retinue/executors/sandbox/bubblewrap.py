"""The bubblewrap sandbox: a program sees a read-only system, its workspace, and an empty /tmp and home.

The sandbox has its own process namespace, so all its processes end with it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from retinue.core import Unavailable, find_program
from retinue.executors.process import Program
from retinue.executors.sandbox.sandbox import SandboxAccess

TRIAL_OPTIONS = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--", "true")
TRIAL_SECONDS = 5.0
RESOLVER_FOLDERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/nscd")
"""Folders that /etc/resolv.conf may link to. Without them no host name can be resolved."""


class Bubblewrap:
    """Runs programs with `bwrap`."""

    name = "bwrap"
    has_host_programs = True

    def __init__(self, program: str) -> None:
        self._program = program

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        options = [*_namespace_options(access), *_mount_options(program.env, access)]
        workspace = str(program.cwd.resolve())
        argv = (self._program, *options, "--chdir", workspace, "--", *program.argv)
        return replace(program, argv=argv)

    async def clear(self, program: Program) -> None:
        """Do nothing: no process outlives its process namespace."""


def _namespace_options(access: SandboxAccess) -> Iterator[str]:
    yield from ("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--cap-drop", "ALL")
    if not access.network:
        yield "--unshare-net"


def _mount_options(env: Mapping[str, str], access: SandboxAccess) -> Iterator[str]:
    """Mount the whole system read-only, hide parts of it, and mount what the access allows over that."""
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    hidden = _hidden_folders(env, access)
    for folder in hidden:
        yield from ("--tmpfs", str(folder))
    for name in RESOLVER_FOLDERS:
        yield from ("--ro-bind-try", name, name)
    # Paths outside hidden folders are visible already, and each mount takes a tenth of a millisecond.
    covered = [
        path for path in _resolve_existing(access.visible) if any(path.is_relative_to(one) for one in hidden)
    ]
    mounts = dict.fromkeys(covered, "--ro-bind")
    mounts |= dict.fromkeys(
        _resolve_existing((access.workspace,)), "--bind" if access.writable else "--ro-bind"
    )
    mounts |= dict.fromkeys(_resolve_existing(access.changeable), "--bind")
    for folder in sorted(mounts, key=lambda path: len(path.parts)):  # outer folders first
        yield from (mounts[folder], str(folder), str(folder))
    for path in _resolve_existing(access.emptied):
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--dev-bind", os.devnull, str(path))
        for folder in _resolve_existing((access.workspace,)):
            if folder.is_relative_to(path):  # a worktree in our data folder
                yield from (mounts[folder], str(folder), str(folder))


def _hidden_folders(env: Mapping[str, str], access: SandboxAccess) -> list[Path]:
    """Return the folders to hide: temporary files, sockets of the user's services, and the home directory."""
    usual = [Path(name) for name in ("/tmp", "/var/tmp", "/run", tempfile.gettempdir())]  # noqa: S108
    if home := env.get("HOME"):
        usual.append(Path(home))
    found = {
        path for path in _resolve_existing((*usual, *access.hidden)) if path != Path("/") and path.is_dir()
    }
    return sorted(found, key=lambda path: len(path.parts))


def _resolve_existing(paths: Iterable[Path]) -> list[Path]:
    """Resolve the paths that exist; the others cannot be mounted."""
    found: list[Path] = []
    for path in paths:
        with suppress(OSError, RuntimeError):  # `RuntimeError` is a symlink loop
            found.append(path.resolve(strict=True))
    return found


@cache
def _can_create_sandbox(program: str) -> bool:
    """Return whether bubblewrap can create a sandbox on this system. Tries it once per process."""
    try:
        trial = subprocess.run(
            [program, *TRIAL_OPTIONS], capture_output=True, timeout=TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0


def find_bubblewrap(env: Mapping[str, str], outside: Iterable[Path] = ()) -> Bubblewrap | None:
    """Return the bubblewrap on the PATH, if it works and is in none of the folders `outside`."""
    found = find_program("bwrap", env.get("PATH"), outside)
    return Bubblewrap(str(found)) if found and _can_create_sandbox(str(found)) else None


def require_bubblewrap(env: Mapping[str, str], outside: Iterable[Path] = ()) -> Bubblewrap:
    """Return what `find_bubblewrap` finds; raise `Unavailable` if there is nothing."""
    if sandbox := find_bubblewrap(env, outside):
        return sandbox
    raise Unavailable(
        "the agent needs bubblewrap, which is not installed or cannot create a sandbox on this system",
        hint="install bubblewrap or run `retinue doctor`; `sandbox: none` in the agent's file disables it",
    )
