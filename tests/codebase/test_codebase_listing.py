"""Listing and globbing show what is there, within bounds, and count what they do not show (P2, P6, P8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Bounds, Codebase
from retinue.codebase.access import Omitted
from retinue.codebase.access.globs import glob_matcher
from retinue.codebase.access.walk import FolderItem
from retinue.core import Canceled, InvalidInput, PathDenied, PathMissing, Root, Stop
from tests.codebase.file_support import bounded_stop, create_root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return create_root(
        tmp_path,
        {
            "README.md": "hello",
            "src/a.py": "1",
            "src/deep/b.py": "22",
            "src/deep/er/c.py": "",
            ".env": "x",
            ".gitignore": "out/\n",
            "out/x.o": "",
        },
    )


def test_a_folder_shows_names_kinds_and_sizes_and_counts_what_is_hidden(root: Root) -> None:
    """P6, P8"""
    listing = Codebase([root]).list("", bounded_stop())
    assert listing.items == (
        FolderItem(".gitignore", "file", 5),
        FolderItem("README.md", "file", 5),
        FolderItem("src", "folder", None),
    )
    assert listing.omitted == Omitted(denied=1, ignored=1)


@pytest.mark.parametrize(
    ("path", "depth", "shown"),
    [
        ("src", 1, ["src/a.py", "src/deep"]),
        ("src", 2, ["src/a.py", "src/deep", "src/deep/b.py", "src/deep/er"]),
        ("src/deep/er", 3, ["src/deep/er/c.py"]),
        ("./src/", 1, ["src/a.py", "src/deep"]),
        ("out", 1, ["out/x.o"]),
    ],
)
def test_a_listing_stops_at_its_depth(root: Root, path: str, depth: int, shown: list[str]) -> None:
    assert [item.path for item in Codebase([root]).list(path, bounded_stop(), depth=depth).items] == shown


def test_a_limit_cuts_off_the_deepest_levels_first_and_is_named(root: Root) -> None:
    """P2, P8"""
    listing = Codebase([root]).list("", bounded_stop(), depth=5, bounds=Bounds(max_entries=4))
    assert [item.path for item in listing.items] == [".gitignore", "README.md", "src", "src/a.py"]
    assert listing.omitted == Omitted(denied=1, ignored=1, over_limit=1, limits=("entries",))


def test_a_folder_of_thousands_is_listed_up_to_the_limit_and_says_so(tmp_path: Path) -> None:
    """P2, P8"""
    root = create_root(tmp_path, {f"{number:04}.txt": "" for number in range(2_000)})
    listing = Codebase([root]).list("", bounded_stop())
    assert len(listing.items) == 1_000
    assert listing.omitted == Omitted(over_limit=1_000, limits=("entries",))
    assert listing.omitted.sentence() == "Left out: 1000 past a limit. Limits reached: entries."


@pytest.mark.parametrize("path", ["README.md", "no-such", ".env", ".ssh", "/etc", "src/../src"])
def test_a_path_that_is_no_readable_folder_is_refused(root: Root, path: str) -> None:
    with pytest.raises((InvalidInput, PathMissing, PathDenied)):
        Codebase([root]).list(path, bounded_stop())


@pytest.mark.parametrize("depth", [0, -1, 11])
def test_impossible_depths_are_refused(root: Root, depth: int) -> None:
    with pytest.raises(InvalidInput):
        Codebase([root]).list("", bounded_stop(), depth=depth)


def test_a_listing_out_of_time_says_so_and_a_canceled_one_ends(root: Root) -> None:
    """P2"""
    assert Codebase([root]).list("", Stop(0)).omitted.limits == ("time",)
    stop = Stop()
    stop.cancel()
    with pytest.raises(Canceled):
        Codebase([root]).list("", stop)


@pytest.mark.parametrize(
    ("globs", "shown"),
    [
        (["*.py"], ["src/a.py", "src/deep/b.py", "src/deep/er/c.py"]),
        (["/*.md"], ["README.md"]),
        (["src/*.py"], ["src/a.py"]),
        (["./src/*.py"], ["src/a.py"]),
        (["src/**"], ["src/a.py", "src/deep/b.py", "src/deep/er/c.py"]),
        (["src/**/er/*"], ["src/deep/er/c.py"]),
        (["**/deep/**"], ["src/deep/b.py", "src/deep/er/c.py"]),
        (["*.{md,py}", "!**/deep/**"], ["README.md", "src/a.py"]),
        (["[a-b].py"], ["src/a.py", "src/deep/b.py"]),
        (["?.py", "!a*"], ["src/deep/b.py", "src/deep/er/c.py"]),
        (["*.o", ".env", "../*", "/etc/*"], []),
    ],
)
def test_globs_select_files(root: Root, globs: list[str], shown: list[str]) -> None:
    found = Codebase([root]).glob(globs, bounded_stop())
    assert [entry.path for entry in found.entries] == shown


def test_a_glob_past_its_limit_says_how_many_more_there_are(root: Root) -> None:
    """P2, P8"""
    found = Codebase([root]).glob(["*.py"], bounded_stop(), bounds=Bounds(max_entries=1))
    assert [entry.path for entry in found.entries] == ["src/a.py"]
    assert found.omitted == Omitted(denied=1, ignored=1, over_limit=2, limits=("entries",))


@pytest.mark.parametrize("glob", ["{a", "a}", "\\", "[z-a]", "\ud800*"])
def test_an_invalid_glob_is_refused(root: Root, glob: str) -> None:
    with pytest.raises(InvalidInput):
        Codebase([root]).glob([glob], bounded_stop())


def test_an_empty_list_of_globs_is_refused(root: Root) -> None:
    with pytest.raises(InvalidInput):
        Codebase([root]).glob([], bounded_stop())


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("a[!b]c", "axc", True),
        ("a[!b]c", "a/c", False),
        ("a[ -~]c", "a/c", False),
        ("a[ -~]c", "a.c", True),
        ("a[ -~]c", "a0c", True),
        ("a[/]c", "a/c", False),
        ("a?c", "a/c", False),
        ("a?c", "aéc", True),
        ("[]]", "]", True),
        ("[!]]", "]", False),
        ("[a-]", "-", True),
        ("[^a]", "b", True),
        ("**", "a/b", True),
        ("**/", "a/b", True),
        ("a/**", "a", False),
        ("a/**/b", "a/b", True),
        ("a**b", "a/b", False),
        ("{a,b/**}/c", "b/x/c", True),
        ("x{,y}", "x", False),
        ("\\*", "*", True),
        ("\\*", "a", False),
    ],
)
def test_globs_match_the_expected_paths(glob: str, path: str, fits: bool) -> None:
    assert glob_matcher(glob)(path) is fits


@pytest.mark.timeout(10)
def test_a_glob_designed_to_hang_is_fast() -> None:
    """P2: a backtracking matcher would practically never finish this."""
    assert not glob_matcher("*a" * 30 + "b")("a" * 200)
