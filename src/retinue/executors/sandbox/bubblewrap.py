"""Bubblewrap: a program sees the system read-only, its workspace, and a /tmp and a home of its own.

Its processes have their own process table, so the end of the sandbox is the end of all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from retinue.core import Unavailable
from retinue.executors.process import Program
from retinue.executors.sandbox.sandbox import SandboxPlace

TRIAL = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--", "true")
TRIAL_SECONDS = 5.0
NAMESERVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/nscd")
"""Where /etc/resolv.conf may point: without them nothing has an address."""


class Bubblewrap:
    name = "bwrap"
    has_host_programs = True

    def __init__(self, program: str) -> None:
        self._program = program

    def enclose(self, program: Program, place: SandboxPlace) -> Program:
        options = [*self._namespaces(place), *_mounts(program.env, place)]
        workspace = str(program.cwd.resolve())
        argv = (self._program, *options, "--chdir", workspace, "--", *program.argv)
        return replace(program, argv=argv)

    async def clear(self, program: Program) -> None:
        """Nothing outlives a process namespace."""

    def _namespaces(self, place: SandboxPlace) -> Iterator[str]:
        yield from ("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
        yield from ("--cap-drop", "ALL")
        if not place.network:
            yield "--unshare-net"


def _mounts(env: Mapping[str, str], place: SandboxPlace) -> Iterator[str]:
    """First the whole system read-only, then what hides parts of it, then what is given back."""
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    hidden = _hidden(env, place)
    for folder in hidden:
        yield from ("--tmpfs", str(folder))
    for name in NAMESERVERS:
        yield from ("--ro-bind-try", name, name)
    # What lies elsewhere is visible already, and every mount costs a start a tenth of a millisecond.
    covered = [path for path in _real(place.visible) if any(path.is_relative_to(one) for one in hidden)]
    given = dict.fromkeys(covered, "--ro-bind")
    given |= dict.fromkeys(_real((place.workspace,)), "--bind" if place.writable else "--ro-bind")
    given |= dict.fromkeys(_real(place.changeable), "--bind")
    for folder in sorted(given, key=lambda path: len(path.parts)):  # what lies within another comes after it
        yield from (given[folder], str(folder), str(folder))
    for path in _real(place.emptied):
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--dev-bind", os.devnull, str(path))


def _hidden(env: Mapping[str, str], place: SandboxPlace) -> list[Path]:
    """Temporary files, sockets of the user's own services, and the home with all its keys."""
    usual = [Path(name) for name in ("/tmp", "/var/tmp", "/run", tempfile.gettempdir())]  # noqa: S108
    if home := env.get("HOME"):
        usual.append(Path(home))
    found = {path for path in _real((*usual, *place.hidden)) if path != Path("/") and path.is_dir()}
    return sorted(found, key=lambda path: len(path.parts))


def _real(paths: tuple[Path, ...] | list[Path]) -> list[Path]:
    """Where they really lie; what is not there cannot be mounted."""
    found: list[Path] = []
    for path in paths:
        with suppress(OSError, RuntimeError):  # a loop of links is the latter
            found.append(path.resolve(strict=True))
    return found


@cache
def _works(program: str) -> bool:
    """Whether this system lets bubblewrap make a sandbox; asked once."""
    try:
        tried = subprocess.run([program, *TRIAL], capture_output=True, timeout=TRIAL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def find_bubblewrap(env: Mapping[str, str]) -> Bubblewrap | None:
    """The one on the PATH, if it works."""
    found = shutil.which("bwrap", path=env.get("PATH"))
    return Bubblewrap(found) if found and _works(found) else None


def demand_bubblewrap(env: Mapping[str, str]) -> Bubblewrap:
    if sandbox := find_bubblewrap(env):
        return sandbox
    raise Unavailable(
        "the agent asks for bubblewrap, which is missing or may not make a sandbox here",
        hint="install bubblewrap, or see `retinue doctor`; `sandbox: none` in its file runs it without",
    )
