"""A model that invents places is contradicted, also if the files it names have no extension (P3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase
from retinue.core import UNMETERED
from retinue.executors.wrappers import check_references
from tests.codebase.file_support import bounded_stop, create_root


@pytest.mark.parametrize(
    "place", ["Makefile:999", "LICENSE:5", "src/nothing:12", "src/tool:77", "Dockerfile:3"]
)
def test_invented_place_in_a_file_without_extension_is_marked(tmp_path: Path, place: str) -> None:
    codebase = Codebase([create_root(tmp_path / "root", {"Makefile": "all:\n", "src/tool": "x\n"})])
    verdict = check_references(
        f"see Makefile:1, src/tool:1 and {place}.", codebase, UNMETERED, bounded_stop()
    )
    assert (verdict.held, verdict.wrong) == (2, {place})
