"""What every test stands on: folders of its own, and no settings of the person who runs it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False
"""Every process of a parallel run imports all tests, and half of that time goes into rewriting assertions."""

gc.disable()
"""Until all tests are collected: what collecting makes is no garbage, and looking for some takes seconds."""

RETINUE = [sys.executable, "-m", "retinue"]
"""The command line of the real program."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs like this
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""The programs that tests start can be interrupted, also if the tests themselves cannot."""

settings.register_profile("parallel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("parallel")
"""Tests run in parallel, so the time that an example takes says nothing about the code."""


def pytest_collection_finish() -> None:
    """Collect garbage again, but never look through the thousands of tests for it."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths for test homes. For each new folder, `mktemp` would list all earlier ones."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_folders(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, for this process and those it starts. Answers with the data folder."""
    home = next(homes)
    home.mkdir(mode=0o700)
    for name in list(os.environ):
        if name.startswith(("RETINUE_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RETINUE_DATA_DIR", str(home / "data"))
    monkeypatch.chdir(home)
    return home / "data"


AddProgram = Callable[[str, str], None]


@pytest.fixture
def add_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddProgram:
    """Returns a function that puts a Python script of a name on the PATH, before all other programs."""

    def add(name: str, code: str) -> None:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    return add


class ChildProcesses:
    """The child processes that a test starts.

    Leaves out those that were running before: a process that runs several tests may have a shared server.
    """

    def __init__(self) -> None:
        self._earlier = set(psutil.Process().children())

    def list(self, *, recursive: bool = False) -> list[psutil.Process]:
        started = [child for child in psutil.Process().children() if child not in self._earlier]
        if recursive:
            for child in tuple(started):
                with suppress(psutil.NoSuchProcess):
                    started += child.children(recursive=True)
        return started


@pytest.fixture
def children() -> ChildProcesses:
    return ChildProcesses()


def environment_in(home: Path) -> dict[str, str]:
    """The environment for a server that several tests share: as `own_folders` sets it, with this home."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("RETINUE_", "XDG_"))}
    return {**mine, "HOME": str(home), "RETINUE_DATA_DIR": str(home / "data"), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def environment() -> Mapping[str, str]:
    """For real processes: what the test itself has, nothing buffered."""
    return {**os.environ, "PYTHONUNBUFFERED": "1"}
