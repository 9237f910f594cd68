"""Small programs that behave badly, as code for `python -c`, and helpers to observe them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import psutil

from retinue.core import ProcessIdentity, StreamName
from retinue.executors.process import RUN_ID_VARIABLE, ProcessGroup, Program
from retinue.executors.process.identity import identify, is_alive

WAIT = 20.0
"""The longest wait, in seconds. Starting a few processes takes long on a busy machine."""


def unique_run_id(name: str) -> str:
    """Return a run id that only this test process uses.

    Processes are searched for by their run id, and ended, on the whole machine. Tests that run in parallel
    would end each other's processes if they shared an id.
    """
    return f"{name}-{os.getpid()}"


RUN_ID = unique_run_id("run")

BASICS = """
import os, signal, sys, time
say = lambda *words: os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def fork(role):
    if os.fork() == 0:
        role()
        os._exit(0)
def daemon(role):
    # fork, start a new session and fork again, so that the process has no parent
    def middle():
        os.setsid()
        fork(role)
    fork(middle)
def live(name="pid"):
    say(name, os.getpid())
    time.sleep(1000)
def stubborn():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
"""

STUBBORN_TREE = """
stubborn()
def parent():
    fork(live)
    live()
fork(live)
daemon(parent)
live()
"""
"""Four processes that ignore SIGTERM, two of them daemons. Each prints `pid N`."""
STUBBORN_TREE_SIZE = 4
HIDDEN_DAEMON = """
stubborn()
def hide():
    code = "import os, time; os.write(1, b'pid %d' % os.getpid() + bytes([10])); time.sleep(1000)"
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code], {})
daemon(hide)
live()
"""
"""A process and a daemon without the environment of its run. Both ignore SIGTERM and print `pid N`."""


def python(code: str, cwd: Path, *, run_id: str = RUN_ID, grace: float = 0.1) -> Program:
    """A Python program with the helpers above. It starts without site-packages, to be fast."""
    env = {"PATH": os.environ["PATH"], RUN_ID_VARIABLE: run_id}
    return Program((sys.executable, "-I", "-S", "-c", BASICS + code), env, cwd, grace)


class OutputRecorder:
    """Records the output of a program, and lets a test wait for it."""

    def __init__(self) -> None:
        self.output: dict[StreamName, bytes] = {"stdout": b"", "stderr": b""}
        self._more = anyio.Event()

    async def __call__(self, stream: StreamName, chunk: bytes) -> None:
        self.output[stream] += chunk
        self._more.set()
        self._more = anyio.Event()

    @property
    def lines(self) -> list[str]:
        return self.output["stdout"].decode().splitlines()

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(WAIT):
            while not condition():
                await self._more.wait()

    async def processes(self, size: int = STUBBORN_TREE_SIZE) -> set[ProcessIdentity]:
        """Return the processes that printed `pid N`, once there are this many."""
        await self.until(lambda: self.output["stdout"].count(b"\n") >= size)
        found = {identify(int(line.split()[1])) for line in self.lines}
        living = {identity for identity in found if identity}
        assert len(living) == size, f"only {living} of {self.lines} are alive"
        return living


def reaper_of(group: ProcessGroup) -> psutil.Process:
    reaper = psutil.Process(group.identity.pid).parent()
    assert reaper
    return reaper


def still_alive(processes: set[ProcessIdentity]) -> list[ProcessIdentity]:
    return sorted(
        (identity for identity in processes if is_alive(identity)), key=lambda identity: identity.pid
    )


def processes_of_run(run_id: str) -> list[psutil.Process]:
    """Return all living processes on this machine that belong to the run."""
    return [process for process in psutil.process_iter() if run_id_of(process) == run_id]


def run_id_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(RUN_ID_VARIABLE)
    except psutil.Error:
        return None


def wait_until(condition: Callable[[], bool], seconds: float = WAIT) -> None:
    """Poll for a condition that no event reports, such as the end of a process that is not our child."""
    deadline = time.monotonic() + seconds
    for _ in ticks():
        if condition():
            return
        assert time.monotonic() < deadline, "the condition did not become true in time"


def ticks() -> Iterator[None]:
    while True:
        yield
        time.sleep(0.005)
