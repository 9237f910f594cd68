"""A search respects its bounds and its deadline, and says which ones it reached (P2, P4, P8)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from retinue.codebase import Bounds, Codebase, SearchPattern
from retinue.codebase.access import Omitted
from retinue.codebase.access.directory import DescriptorDirectory
from retinue.codebase.search.searcher import line_blocks
from retinue.core import Canceled, LimitExceeded, Stop
from tests.codebase.file_support import ManualDeadline, bounded_stop, create_root
from tests.codebase.search_support import LINES, Grep, as_lines


def test_an_enormous_line_is_cut_around_the_match(grep: Grep) -> None:
    """P4"""
    (match,) = (
        grep.codebase({"min.js": "x" * 400_000 + "needle" + "é" * 1_000})
        .grep(SearchPattern("needle"), bounded_stop())
        .matches
    )
    assert match.column == 400_001
    assert "needle" in match.text
    assert len(match.text) < 600
    assert match.text.startswith("[399875 characters cut]… x")
    assert match.text.endswith("é …[631 characters cut]")


@pytest.mark.timeout(30)
def test_a_pattern_designed_to_be_slow_is_bounded(grep: Grep) -> None:
    """P2, P8: RE2 would need minutes for it on one line of a megabyte."""
    codebase = grep.codebase({"a.min.js": "ab " * 300_000 + "\nab 7\n", "b.py": "ab ab 7\n"})
    found = codebase.grep(SearchPattern(r"(\w+\s+){0,900}\d"), Stop(20))
    assert as_lines(found) == ["a.min.js:2:1:ab 7", "b.py:1:1:ab ab 7"]
    assert found.omitted == Omitted(over_limit=1, limits=("pattern effort",))


@given(st.lists(LINES, max_size=6).map("\n".join), st.integers(1, 12))
def test_blocks_are_whole_lines_and_together_the_text(text: str, size: int) -> None:
    data = text.encode()
    cut = list(line_blocks(data, size))
    assert b"".join(data[start:end] for start, end in cut) == data
    for start, end in cut:
        assert end == len(data) or data[end - 1 : end] == b"\n"
        assert end - start <= size or b"\n" not in data[start : end - 1]


@pytest.mark.parametrize(
    ("bounds", "shown", "omitted"),
    [
        (Bounds(max_files=2), 6, Omitted(over_limit=3, limits=("files",))),
        (Bounds(max_matches=4), 4, Omitted(over_limit=2, limits=("matches",))),
        (Bounds(max_matches=6), 6, Omitted(over_limit=3, limits=("matches",))),
        (Bounds(max_matches_per_file=1), 4, Omitted(over_limit=8, limits=("matches per file",))),
        (Bounds(max_bytes=20), 5, Omitted(over_limit=1, limits=("bytes",))),
        (Bounds(), 12, Omitted()),
    ],
)
def test_each_bound_cuts_the_result_and_is_named(
    grep: Grep, bounds: Bounds, shown: int, omitted: Omitted
) -> None:
    """P2, P8"""
    codebase = grep.codebase({f"{name}.txt": "foo\nfoo\nfoo\n" for name in "abcd"})
    found = codebase.grep(SearchPattern("foo"), bounded_stop(), bounds=bounds)
    assert len(found.matches) == shown
    assert found.omitted == omitted


def test_a_budget_that_refuses_ends_the_search_and_is_named(grep: Grep) -> None:
    """P2: charged before the text is returned, and only for returned text."""
    asked: list[tuple[int, int]] = []

    def budget(files: int, size: int) -> None:
        if len(asked) == 2:
            raise LimitExceeded("bytes of the run", 9, 8)
        asked.append((files, size))

    codebase = grep.codebase({f"{name}.txt": "foo\n" for name in "abcd"})
    found = codebase.grep(SearchPattern("foo"), bounded_stop(), on_read=budget)
    assert [match.entry.path for match in found.matches] == ["a.txt", "b.txt"]
    assert asked == [(1, 4), (1, 4)]
    assert found.omitted == Omitted(over_limit=1, limits=("bytes of the run",))


def test_a_search_out_of_time_says_so(grep: Grep) -> None:
    """P2, P8"""
    found = grep.codebase({"a": "foo"}).grep(SearchPattern("foo"), Stop(0))
    assert found.matches == ()
    assert "time" in found.omitted.limits


def test_a_deadline_in_the_middle_keeps_what_was_found(grep: Grep) -> None:
    """P2, P8"""
    stop = ManualDeadline()

    def time_passes(files: int, size: int) -> None:
        stop.time_is_up = True

    codebase = grep.codebase({f"{name}.txt": "foo\n" for name in "abcd"})
    found = codebase.grep(SearchPattern("foo"), stop, on_read=time_passes)
    assert as_lines(found) == ["a.txt:1:1:foo"]
    assert found.omitted == Omitted(limits=("time",))


def test_a_deadline_while_hard_links_are_looked_up_keeps_what_was_found(tmp_path: Path) -> None:
    """P2, P8"""
    root = create_root(tmp_path / "root", {"a.txt": "foo\n", "b.txt": "foo\n", "folder/c.txt": "foo\n"})
    os.link(root.path / "b.txt", root.path / "d.txt")
    stop = ManualDeadline()

    class Slow(DescriptorDirectory):
        def lstat(self, name: str) -> os.stat_result:
            stop.time_is_up = stop.time_is_up or name == "."  # called only when hard links are looked up
            return super().lstat(name)

    found = Codebase([root], open_directory=Slow.from_path).grep(SearchPattern("foo"), stop)
    assert as_lines(found) == ["a.txt:1:1:foo"]
    assert found.omitted == Omitted(limits=("time",))


def test_a_cancel_in_the_middle_ends_the_search(grep: Grep) -> None:
    """P2"""
    stop = Stop()
    codebase = grep.codebase({f"{name}.txt": "foo\n" for name in "abcd"})
    with pytest.raises(Canceled):
        codebase.grep(SearchPattern("foo"), stop, on_read=lambda files, size: stop.cancel())
