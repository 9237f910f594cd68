"""Shared by the tests of memories and skills: a project with some code, and a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retinue.codebase import Codebase
from retinue.core import NewMemory, Root
from retinue.learning import Memories, MemoryAuthor, RecalledMemory
from retinue.redaction import SecretRedactor
from tests.learning.skill_support import Place

DAY = 86_400.0
PERSON = MemoryAuthor("person")
RUN = MemoryAuthor("coder", "1k0c1kwtrpk2qxw")
CODE = "def load():\n    return 1\n\n\ndef save():\n    return 2\n"


class MemoryBench:
    """The memories of a project in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_700_000_000.0
        self.data = folder / "data"
        self.project = folder / "project"
        (self.project / "src").mkdir(parents=True)
        (self.project / "src" / "store.py").write_text(CODE)
        self.memories = self.open()

    def open(self) -> Memories:
        """Another view of the same files, as a second process has."""
        return Memories(
            data_dir=self.data,
            project=self.project,
            redactor=SecretRedactor(["hunter2-of-the-user"]),
            open_codebase=lambda: Codebase([Root.at(self.project)]),
            clock=lambda: self.now,
        )

    def add(self, text: str, author: MemoryAuthor = PERSON, **more: Any) -> str:
        return self.memories.remember(NewMemory(text=text, **more), author)["id"]

    def recall(self, query: str, limit: int = 5) -> list[RecalledMemory]:
        return self.memories.recall(query, limit=limit)

    def texts(self, query: str) -> list[str]:
        return [each.text for each in self.recall(query)]

    def tier(self, memory_id: str) -> str | None:
        return self.memories.get(memory_id).memory.tier


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MemoryBench]:
    made = MemoryBench(tmp_path)
    yield made
    made.memories.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
