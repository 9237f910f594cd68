"""Paths match patterns by the files that they lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core.file_pattern import DeniedFiles, matches_surely, read_path

FOLDER = "/work/project"


def test_path_is_read_as_written_and_with_links_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    readings = read_path("link/./x", str(tmp_path))
    assert readings.certain == {str(tmp_path / "link/x"), str(tmp_path.resolve() / "real/x")}


@pytest.mark.parametrize(
    "path", ["", "~/x", "a\0b", "a\nb", "a\\b", "a./b", " a", "/proc/self/root/x", "x" * 5_000]
)
def test_path_that_tools_read_differently_is_not_certain_P7(path: str) -> None:
    readings = read_path(path, FOLDER)
    assert readings.certain == frozenset()
    assert readings.possible


@pytest.mark.parametrize(
    ("pattern", "path", "surely", "possibly"),
    [
        ("src/**", "src/a/b", True, True),
        ("src/*", "src/a", True, True),
        ("src/*.py", "src/a/b.py", False, True),
        ("src", "src/a", True, True),
        ("src/", "src/a", True, True),
        ("./src", "src/a", True, True),
        ("a.py", "a.py", True, True),
        ("a.py", "src/a.py", False, True),
        ("**/a.py", "src/a.py", True, True),
        ("src/[ab].py", "src/a.py", True, True),
        ("src/[!ab].py", "src/a.py", False, False),
        ("src/?.py", "src/a.py", True, True),
        ("src/\\*.py", "src/*.py", True, True),
        ("src/\\*.py", "src/a.py", False, False),
        ("src/[", "src/[", True, True),
        ("SRC/**", "src/a", False, True),
        ("/src/**", "src/a", True, True),
        ("/src/**", "/src/a", False, True),
        ("//src/**", "/src/a", True, True),
        ("../other/**", "/work/other/x", True, True),
        ("!src/**", "src/a", False, True),
        ("src/**", "srcx/a", False, False),
    ],
)
def test_pattern_matches_surely_and_possibly(pattern: str, path: str, surely: bool, possibly: bool) -> None:
    readings = read_path(path, FOLDER)
    assert matches_surely(pattern, readings, FOLDER) is surely
    assert DeniedFiles.of(pattern, FOLDER).may_include(readings) is possibly


def test_link_out_of_the_folder_is_not_surely_inside_P7(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/out").symlink_to("/etc")
    assert not matches_surely("src/**", read_path("src/out/hosts", str(tmp_path)), str(tmp_path))


def test_link_in_a_rule_is_followed_to_what_it_denies_P6(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "secrets").symlink_to("vault")
    assert DeniedFiles.of("secrets/*", str(tmp_path)).may_include(read_path("vault/key", str(tmp_path)))


@pytest.mark.parametrize(
    ("path", "included", "above", "inside"),
    [
        (".", False, True, True),
        ("/", False, True, True),
        ("secrets", True, True, True),
        ("secrets/deep", True, False, True),
        ("src", False, False, False),
    ],
)
def test_folder_that_contains_denied_files(path: str, included: bool, above: bool, inside: bool) -> None:
    denied, readings = DeniedFiles.of("secrets/**", FOLDER), read_path(path, FOLDER)
    assert denied.may_include(readings) is included
    assert denied.may_be_below(readings) is above
    assert denied.may_be_in(readings) is inside


def test_folder_with_some_denied_files_is_not_denied_itself() -> None:
    denied = DeniedFiles.of("src/*.pem", FOLDER)
    assert not denied.may_include(read_path("src", FOLDER))
    assert not denied.may_include(read_path("src/a.py", FOLDER))
    assert denied.may_be_below(read_path("src", FOLDER))
