"""After any sequence of changes to a tree, the index gives the answers of a scan (P8)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings, strategies as st

from retinue.codebase import Codebase, Locator
from retinue.core import Root, Stop
from tests.codebase.file_support import make_large
from tests.codebase.test_index import build_index

QUESTIONS = [
    "how does the cache retry a flush?",
    "`retry_cache` in net/a.py",
    "flushcache größe",
    "The cache retries\n\nIt does not flush.",
]

FOLDERS = ("", "net/", "net/deep/", "lib/")
NAMES = ("a.py", "retry_cache.py", "flush.md", "b.js", ".gitignore", ".ignore")
LINES = (
    "def retry_cache(flush):\n    return cacheRetry\n",
    "class FlushCache:\n    größe = 1\n\n    def flush(self): self.retry()\n",
    "# Cache\n\nHow to flush\xa0retries.\n",
    "import net.a\n",
    "deep/\n*.md\n",
    "",
)
paths = st.builds(str.__add__, st.sampled_from(FOLDERS), st.sampled_from(NAMES))

Step = Callable[[Path], None]


def written(path: str, lines: list[str]) -> Step:
    def step(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("".join(lines), encoding="utf-8")

    return step


def removed(path: str) -> Step:
    return lambda root: (root / path).unlink(missing_ok=True)


def renamed(path: str, to: str) -> Step:
    def step(root: Path) -> None:
        if (root / path).exists():
            (root / to).parent.mkdir(parents=True, exist_ok=True)
            (root / path).replace(root / to)

    return step


def folder_moved(_: None) -> Step:
    def step(root: Path) -> None:
        if (root / "net").exists() and not (root / "moved").exists():
            (root / "net").rename(root / "moved")

    return step


def many_written(number: int) -> Step:
    """Write more files than the index leaves to be read by a question."""

    def step(root: Path) -> None:
        for file in range(20):
            written(f"many/retry_{file}.py", [LINES[number % 2], f"cache_{number}\n"])(root)

    return step


steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(written, paths, st.lists(st.sampled_from(LINES), max_size=4)),
    st.builds(removed, paths),
    st.builds(renamed, paths, paths),
    st.builds(folder_moved, st.none()),
    st.builds(many_written, st.integers(0, 3)),
)


@given(st.lists(steps, max_size=10), st.lists(st.tuples(steps, st.booleans()), min_size=1, max_size=5))
@settings(max_examples=12, deadline=None)
def test_an_index_gives_the_answers_of_a_scan(first: list[Step], then: list[tuple[Step, bool]]) -> None:
    work = Path(tempfile.mkdtemp())
    try:
        root = work / "root"
        written("net/a.py", [LINES[0]])(root)
        make_large(root / "data")
        for step in first:
            step(root)
        codebase = Codebase([Root.at(root)])
        scan, indexed = Locator(codebase), Locator(codebase, work / "index")
        build_index(indexed, root)
        for step, taken_in in then:
            step(root)
            if taken_in:
                assert indexed.update_index(Stop())
            for question in QUESTIONS:
                assert indexed.locate(question, 20, Stop()) == scan.locate(question, 20, Stop())
    finally:
        shutil.rmtree(work)
