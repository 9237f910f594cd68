"""Asks another program a short question, such as its version. Knows nothing of the programs."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import cast

from retinue.setup.machine import Machine

MAX_OUTPUT = 64 * 1024

PASSED_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR"),
        *("USERPROFILE", "SYSTEMROOT", "PATHEXT", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"),
    )
)
"""Enough for a program to find itself; no key, token or address goes to it."""

_VERSION = re.compile(rb"\d+(?:\.\d+)+(?:[-+][0-9A-Za-z.]+)?")


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    code: int | None
    """None when it could not be started or had to be stopped."""
    output: bytes
    late: bool = False
    """Whether it had to be stopped."""

    @property
    def version(self) -> str:
        """The first thing that looks like a version; nothing else of a strange program's words is shown."""
        found = _VERSION.search(self.output)
        return found[0].decode("ascii")[:40] if found else ""


def find(program: str, machine: Machine) -> str | None:
    return shutil.which(program, path=machine.environment.get("PATH", ""))


def ask(command: list[str], machine: Machine, seconds: float) -> ProgramAnswer:
    """What it says with its input closed; it and all it started are stopped when the time is up."""
    environment = {
        name: machine.environment[name] for name in PASSED_VARIABLES if name in machine.environment
    }
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return ProgramAnswer(None, b"")
    heard: list[bytes] = []
    # A thread, for a grandchild may hold the pipe open long after the program itself has ended.
    listener = threading.Thread(target=_listen, args=(process, heard), daemon=True)
    listener.start()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        _stop(process)
        code = None
    listener.join(0.5)
    return ProgramAnswer(code, b"".join(heard), late=code is None)


def _listen(process: subprocess.Popen[bytes], heard: list[bytes]) -> None:
    """Keeps what has been said so far, up to a limit; beyond it the program waits until it is stopped."""
    output = cast("io.BufferedReader", process.stdout)
    with output:
        left = MAX_OUTPUT
        while left > 0 and (chunk := output.read1(left)):
            heard.append(chunk)
            left -= len(chunk)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
