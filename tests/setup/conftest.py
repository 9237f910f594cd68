"""Fixtures: a fake machine with its own home and project folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.setup import DoctorCheck, Machine, ServerEntry


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Machine("linux", tmp_path / "home", tmp_path / "project", {}, tmp_path / "backups")


@pytest.fixture
def entry() -> ServerEntry:
    return ServerEntry.serving(("/opt/bin/retinue",), [Path("/srv/code")])


@pytest.fixture
def bin_folder(machine: Machine) -> Path:
    """The only folder on the fake machine's PATH. Tests put real scripts into it."""
    folder = machine.home.parent / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def equipped(machine: Machine, bin_folder: Path) -> Machine:
    """The machine with a PATH and a secret in its environment."""
    return replace(machine, environment={"PATH": str(bin_folder), "API_TOKEN": "hunter2", "LANG": "C"})


@pytest.fixture
def program(bin_folder: Path) -> Callable[[str, str], Path]:
    """Returns a function that writes a shell script into the fake machine's PATH."""

    def write(name: str, body: str) -> Path:
        file = bin_folder / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return file

    return write


def only(checks: list[DoctorCheck]) -> DoctorCheck:
    """Return the only check in the list."""
    assert len(checks) == 1, checks
    return checks[0]
