"""A made-up machine with a home and a project of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.setup import Machine, ServerEntry


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Machine("linux", tmp_path / "home", tmp_path / "project", {})


@pytest.fixture
def entry() -> ServerEntry:
    return ServerEntry.serving(("/opt/bin/retinue",), [Path("/srv/code")])


@pytest.fixture
def bin_folder(machine: Machine) -> Path:
    """The one folder of programs the made-up machine knows; real scripts can be put there."""
    folder = machine.home.parent / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def equipped(machine: Machine, bin_folder: Path) -> Machine:
    """The machine with a search path and with a secret in its environment."""
    return replace(machine, environment={"PATH": str(bin_folder), "API_TOKEN": "hunter2", "LANG": "C"})


@pytest.fixture
def program(bin_folder: Path) -> Callable[[str, str], Path]:
    """Puts a program on the made-up machine, run by the system's own shell."""

    def write(name: str, body: str) -> Path:
        file = bin_folder / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return file

    return write
