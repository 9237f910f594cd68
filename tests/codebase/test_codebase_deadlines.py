"""A deadline ends a question between two files or steps, not after thousands of them (P2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from retinue.codebase import Codebase, Locator
from retinue.codebase.access.directory import DescriptorDirectory
from retinue.codebase.search import Ripgrep
from retinue.core import DeadlineExceeded, Stop
from tests.codebase.file_support import ManualDeadline, create_root, make_large
from tests.codebase.test_index import wait_for_stable_stamps

QUESTION = "where is the anchor raised?"


def files(count: int) -> dict[str, str]:
    return {f"part_{number}.py": f"def raise_anchor_{number}(): ...\n" for number in range(count)}


def watched_directory(on_look: Callable[[], None]) -> type[DescriptorDirectory]:
    """Return directories that report every access to a file."""

    class Watched(DescriptorDirectory):
        def lstat(self, name: str) -> os.stat_result:
            on_look()
            return super().lstat(name)

    return Watched


def test_no_file_is_examined_after_the_deadline(tmp_path: Path) -> None:
    clock, looks = ManualDeadline(), list[bool]()

    def on_look() -> None:
        looks.append(clock.time_is_up)
        clock.time_is_up = len(looks) >= 10

    codebase = Codebase(
        [create_root(tmp_path, files(50))], open_directory=watched_directory(on_look).from_path
    )
    with pytest.raises(DeadlineExceeded):
        Locator(codebase, ripgrep=lambda: None).locate(QUESTION, 5, clock)
    assert len(looks) == 10


def test_ripgrep_is_not_started_again_after_the_deadline(tmp_path: Path) -> None:
    clock, asked = ManualDeadline(), list[Path]()

    class Late(Ripgrep):
        def files_that_may_match(
            self, root: Path, paths: Sequence[str], pattern: str, *, ignore_case: bool, stop: Stop
        ) -> set[str] | None:
            asked.append(root)
            clock.time_is_up = True
            return None

    roots = [create_root(tmp_path / name, files(3)) for name in ("one", "two")]
    make_large(tmp_path / "one")
    with pytest.raises(DeadlineExceeded):
        Locator(Codebase(roots), ripgrep=lambda: Late(Path("rg"))).locate(QUESTION, 5, clock)
    assert len(asked) == 1


def test_an_index_gives_no_answer_after_the_deadline(tmp_path: Path) -> None:
    codebase = Codebase([create_root(tmp_path / "tree", files(3))])
    wait_for_stable_stamps(tmp_path / "tree")
    locator = Locator(codebase, tmp_path / "index")
    assert locator.update_index(Stop())
    clock = ManualDeadline()
    clock.time_is_up = True
    with pytest.raises(DeadlineExceeded):
        locator.locate(QUESTION, 5, clock)
