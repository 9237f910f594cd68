"""What a locator keeps between questions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
