"""A made-up machine with a home and a project of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.setup.entry import Entry
from retinue.setup.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Machine("linux", tmp_path / "home", tmp_path / "project", {})


@pytest.fixture
def entry() -> Entry:
    return Entry.serving(("/opt/bin/retinue",), [Path("/srv/code")])
