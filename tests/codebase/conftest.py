"""Fixtures that run every search twice: with ripgrep and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import find_ripgrep
from retinue.codebase.search import Ripgrep
from tests.codebase.search_support import Grep


@pytest.fixture(params=["ripgrep", "pure"])
def ripgrep(request: pytest.FixtureRequest) -> Ripgrep | None:
    return find_ripgrep() if request.param == "ripgrep" else None


@pytest.fixture
def grep(tmp_path: Path, ripgrep: Ripgrep | None) -> Grep:
    return Grep(tmp_path / "root", ripgrep)
