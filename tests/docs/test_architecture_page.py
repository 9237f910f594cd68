"""`ARCHITECTURE.md` and the pages below it name modules that exist; `docs/modules.md` is generated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.make_docs import DOCS, PACKAGE, first_paragraph

PATH = re.compile(r"\b([a-z_]+(?:/[a-z_]+)+)\b")


@pytest.mark.parametrize("page", [DOCS.parent / "ARCHITECTURE.md", DOCS / "requests.md"])
def test_modules_named_in_the_text_exist(page: Path) -> None:
    rooms = {door.parent.name for door in PACKAGE.glob("*/__init__.py")}
    named = {path for path in PATH.findall(page.read_text(encoding="utf-8")) if path.split("/")[0] in rooms}
    assert named
    assert {path for path in named if not _exists(path)} == set()


def _exists(path: str) -> bool:
    return (PACKAGE / f"{path}.py").is_file() or (PACKAGE / path / "__init__.py").is_file()


def test_every_module_says_first_and_briefly_what_it_is_for() -> None:
    modules = [file for file in PACKAGE.rglob("*.py") if file.name != "__main__.py"]
    assert [file.name for file in modules if not 0 < len(first_paragraph(file)) <= 160] == []
