"""What a locator does for an answer, and what it keeps between questions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from retinue.codebase import Codebase, Locator
from retinue.codebase.access.directory import DescriptorDirectory
from retinue.codebase.search import Ripgrep
from tests.codebase.file_support import bounded_stop, create_root, make_large

QUESTION = "how is the retry delay of a payment computed?"
FILES = {
    "net/retry.py": "class RetryPolicy:\n    def delay(self):\n        return 1\n",
    "pay.py": "def pay_again(): retry_delay()\n",
    "other.py": "def nothing(): pass\n",
    "docs/guide.md": "# Payments\n\nThe delay of a retry doubles.\n",
}


def test_a_scan_of_a_small_project_does_not_look_for_ripgrep(tmp_path: Path) -> None:
    """Starting it costs more than reading the files."""

    def looked_for() -> Ripgrep | None:
        raise AssertionError

    codebase = Codebase([create_root(tmp_path, FILES)], ripgrep=looked_for)
    assert Locator(codebase).locate(QUESTION, 5, bounded_stop()).places


def test_a_scan_with_ripgrep_gives_the_answers_of_a_scan_without_it(tmp_path: Path) -> None:
    """P8, P10"""
    codebase = Codebase([create_root(tmp_path, FILES)])
    make_large(tmp_path)
    with_ripgrep, without = Locator(codebase), Locator(codebase, ripgrep=lambda: None)
    for question in (QUESTION, "RETRY_POLICY", "paymentDelay"):
        found = with_ripgrep.locate(question, 5, bounded_stop())
        assert found.places
        assert found == without.locate(question, 5, bounded_stop())


def test_a_scan_reads_each_file_once(tmp_path: Path) -> None:
    opened: Counter[str] = Counter()

    class Watched(DescriptorDirectory):
        def open(self, name: str) -> tuple[int, os.stat_result]:
            opened[name] += 1
            return super().open(name)

    codebase = Codebase([create_root(tmp_path, FILES)], open_directory=Watched.from_path)
    found = Locator(codebase).locate(QUESTION, 5, bounded_stop())
    assert found.places
    assert {name: opened[name] for name in ("retry.py", "pay.py", "other.py", "guide.md")} == dict.fromkeys(
        ("retry.py", "pay.py", "other.py", "guide.md"), 1
    )


ASKING = """
import sys
from pathlib import Path

import psutil

from retinue.codebase import Codebase, Locator
from retinue.core import Root, Stop

tree, index, first, last = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
locator = Locator(Codebase([Root.at(tree)]), Path(index) if index else None, lambda: None)
if index:
    assert locator.update_index(Stop())
sizes = []
for number in range(last):
    words = " ".join(f"handler{(number * 7 + other) % 300}" for other in range(9))
    located = locator.locate(f"Where does {words} retry the payment of an order?", 10, Stop())
    assert located.places
    if number + 1 in (first, last):
        sizes.append(psutil.Process().memory_info().rss)
print((sizes[1] - sizes[0]) / 1e6)
"""


@pytest.mark.parametrize("has_index", [False, True], ids=["scan", "index"])
def test_many_different_questions_keep_memory_flat(tmp_path: Path, has_index: bool) -> None:
    """A server answers thousands of questions in one process."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(20):
        handlers = range(number * 15, number * 15 + 15)
        code = "".join(f"def handler{one}(order):\n    return retry(order)\n\n\n" for one in handlers)
        (tree / f"part{number}.py").write_text(code, encoding="utf-8")
    index = str(tmp_path / "index") if has_index else ""
    command = [sys.executable, "-c", ASKING, str(tree), index, "25", "115"]
    grown = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < 4, f"90 more questions took {grown:.1f} MB"
