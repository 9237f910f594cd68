"""Small programs that behave badly, each as text for `python -c`, and how to watch them."""

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

WAIT = 5.0

BASICS = """
import os, signal, sys, time
say = lambda *words: os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def fork(role):
    if os.fork() == 0:
        role()
        os._exit(0)
def daemon(role):
    # fork, new session, fork again: nobody's child any more
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

STUBBORN_FAMILY = """
stubborn()
def parent():
    fork(live)
    live()
fork(live)
daemon(parent)
live()
"""
"""Four processes that ignore TERM, two of them daemons; each says `pid N`."""
STUBBORN_FAMILY_SIZE = 4


def python(code: str, cwd: Path, *, run_id: str = "test-run", grace: float = 0.1) -> Program:
    """A program with the helpers above, started as lightly as Python can be."""
    env = {"PATH": os.environ["PATH"], RUN_ID_VARIABLE: run_id}
    return Program((sys.executable, "-I", "-S", "-c", BASICS + code), env, cwd, grace)


class Ears:
    """Hears what a program says, and lets a test wait for it."""

    def __init__(self) -> None:
        self.heard: dict[StreamName, bytes] = {"stdout": b"", "stderr": b""}
        self._more = anyio.Event()

    async def __call__(self, stream: StreamName, chunk: bytes) -> None:
        self.heard[stream] += chunk
        self._more.set()
        self._more = anyio.Event()

    @property
    def lines(self) -> list[str]:
        return self.heard["stdout"].decode().splitlines()

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(WAIT):
            while not condition():
                await self._more.wait()

    async def family(self, size: int = STUBBORN_FAMILY_SIZE) -> set[ProcessIdentity]:
        """The processes that said `pid N`, once so many did."""
        await self.until(lambda: self.heard["stdout"].count(b"\n") >= size)
        found = {identify(int(line.split()[1])) for line in self.lines}
        living = {identity for identity in found if identity}
        assert len(living) == size, f"only {living} of {self.lines} live"
        return living


def keeper_of(group: ProcessGroup) -> psutil.Process:
    keeper = psutil.Process(group.identity.pid).parent()
    assert keeper
    return keeper


def left_of(family: set[ProcessIdentity]) -> list[ProcessIdentity]:
    return sorted((identity for identity in family if is_alive(identity)), key=lambda identity: identity.pid)


def marked(run_id: str) -> list[psutil.Process]:
    """All living processes on this machine that carry the run's mark."""
    return [process for process in psutil.process_iter() if mark_of(process) == run_id]


def mark_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(RUN_ID_VARIABLE)
    except psutil.Error:
        return None


def wait_until(condition: Callable[[], bool], seconds: float = WAIT) -> None:
    """For what no event announces: the death of processes that are nobody's children."""
    deadline = time.monotonic() + seconds
    for _ in ticks():
        if condition():
            return
        assert time.monotonic() < deadline, "not within the time allowed"


def ticks() -> Iterator[None]:
    while True:
        yield
        time.sleep(0.005)
