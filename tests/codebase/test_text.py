"""Excerpts have the right lines, stay within bounds, and say what was cut (P2, P3, P8)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from retinue.codebase import Bounds, Codebase, FileEntry
from retinue.codebase.access import Excerpt, Omitted, clip_line
from retinue.codebase.access.text import decode_text, is_binary
from retinue.core import (
    Canceled,
    ConfigInvalid,
    InvalidInput,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Root,
    Stop,
)
from tests.codebase.file_support import WAIT_SECONDS, bounded_stop, create_root


def read(
    folder: Path, content: str | bytes, start: int = 1, lines: int | None = None, **bounds: int
) -> Excerpt:
    codebase = Codebase([create_root(folder, {"f": content})])
    return codebase.read("f", bounded_stop(), start=start, lines=lines, bounds=Bounds(**bounds))


TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.mark.parametrize(
    ("start", "lines", "shown"),
    [
        (1, None, [*range(1, 11)]),
        (1, 3, [1, 2, 3]),
        (4, 2, [4, 5]),
        (9, 5, [9, 10]),
        (10, None, [10]),
        (11, None, []),
        (99, 5, []),
    ],
)
def test_line_numbers_are_those_of_the_file(
    tmp_path: Path, start: int, lines: int | None, shown: list[int]
) -> None:
    """P3"""
    excerpt = read(tmp_path, TEN, start, lines)
    assert excerpt.lines == tuple(f"line {number}" for number in shown)
    assert excerpt.total_lines == 10
    assert (excerpt.start, excerpt.end) == (start, start + len(shown) - 1)
    assert not excerpt.omitted


@pytest.mark.parametrize(("start", "lines"), [(0, 1), (-1, 1), (1, 0), (1, -5)])
def test_invalid_line_numbers_are_refused(tmp_path: Path, start: int, lines: int) -> None:
    with pytest.raises(InvalidInput):
        read(tmp_path, TEN, start, lines)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", ()),
        (b"\n", ("",)),
        (b"a", ("a",)),
        (b"a\n", ("a",)),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"a\r\nb\nc", ("a", "b", "c")),
        (b"a\rb\n", ("a\rb",)),
        (b"a\x0cb\x0bc\xc2\x85d\xe2\x80\xa8e\n", ("a\x0cb\x0bc\x85d\u2028e",)),
        (b"\n\n\n", ("", "", "")),
    ],
)
def test_only_line_feeds_end_lines(tmp_path: Path, content: bytes, lines: tuple[str, ...]) -> None:
    """P3: editors and compilers count lines this way."""
    assert read(tmp_path, content).lines == lines


@pytest.mark.parametrize(
    ("content", "encoding", "text"),
    [
        ("añb".encode(), "utf-8", "añb"),
        ("añb".encode("utf-8-sig"), "utf-8", "añb"),
        ("añb".encode("latin-1"), "latin-1", "añb"),
        (b"\xff\xfe" + "añ\r\nb".encode("utf-16-le"), "utf-16-le", "añ\nb"),
        (b"\xfe\xff" + "añb".encode("utf-16-be"), "utf-16-be", "añb"),
        (b"\xff\xfe\0\0" + "añb".encode("utf-32-le"), "utf-32-le", "añb"),
        (b"\0\0\xfe\xff" + "añb".encode("utf-32-be"), "utf-32-be", "añb"),
        (b"\xff\xfea", "utf-16-le", "\ufffd"),
        (b"x" * 8_192 + b"\0", "utf-8", "x" * 8_192 + "\0"),
    ],
)
def test_encodings_are_detected(tmp_path: Path, content: bytes, encoding: str, text: str) -> None:
    excerpt = read(tmp_path, content, max_line_chars=10_000)
    assert (excerpt.encoding, "\n".join(excerpt.lines)) == (encoding, text)


@pytest.mark.parametrize("content", [b"\0", b"\x7fELF\0", b"text" * 2_000 + b"\0"])
def test_binary_files_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(PathDenied, match="binary"):
        read(tmp_path, content)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused_as_binary(data: bytes) -> None:
    assert b"\0" in data or not is_binary(data)
    decode_text(data).utf8.decode()


@pytest.mark.parametrize(
    ("bounds", "shown", "omitted"),
    [
        ({"max_lines": 4}, 4, Omitted(over_limit=6, limits=("lines",))),
        ({"max_lines": 10}, 10, Omitted()),
        ({"max_bytes": 14}, 2, Omitted(over_limit=8, limits=("bytes",))),
        ({"max_bytes": 1}, 0, Omitted(over_limit=10, limits=("bytes",))),
        ({"max_line_chars": 6}, 10, Omitted(limits=("line length",))),
    ],
)
def test_each_bound_cuts_the_excerpt_and_is_named(
    tmp_path: Path, bounds: dict[str, int], shown: int, omitted: Omitted
) -> None:
    """P2, P8"""
    excerpt = read(tmp_path, TEN, **bounds)
    assert len(excerpt.lines) == shown
    assert excerpt.omitted == omitted


def test_one_enormous_line_is_cut_with_a_mark(tmp_path: Path) -> None:
    """P4"""
    excerpt = read(tmp_path, "x" * 1_000_000)
    assert excerpt.lines == ("x" * 500 + " …[999500 characters cut]",)
    assert excerpt.total_lines == 1


@given(st.text(max_size=60), st.integers(1, 30), st.integers(0, 59))
def test_a_cut_line_keeps_what_matters_and_counts_the_rest(line: str, limit: int, focus: int) -> None:
    focus = min(focus, max(0, len(line) - 1))
    shown = clip_line(line, limit, focus)
    if len(line) <= limit:
        assert shown == line
    else:
        assert line[focus] in shown
        assert len(shown) <= limit + 60


def test_the_budget_is_charged_before_text_is_returned_and_may_refuse(tmp_path: Path) -> None:
    """P2"""
    codebase = Codebase([create_root(tmp_path, {"f": TEN})])
    told: list[tuple[int, int]] = []
    codebase.read("f", bounded_stop(), lines=2, on_read=lambda files, size: told.append((files, size)))
    assert told == [(1, len("line 1\nline 2\n"))]

    def refuse(files: int, size: int) -> None:
        raise LimitExceeded("files", 51, 50)

    with pytest.raises(LimitExceeded):
        codebase.read("f", bounded_stop(), on_read=refuse)


def test_a_relative_path_means_the_one_root_that_has_it(tmp_path: Path) -> None:
    first = create_root(tmp_path / "first", {"a.txt": "1", "both.txt": "1"})
    second = create_root(tmp_path / "second", {"b.txt": "2", "both.txt": "2"})
    codebase = Codebase([first, second])
    assert codebase.read("b.txt", bounded_stop()).entry == FileEntry(second, "b.txt")
    assert codebase.read(str(second.path / "both.txt"), bounded_stop()).lines == ("2",)
    with pytest.raises(InvalidInput, match="several roots"):
        codebase.read("both.txt", bounded_stop())


def test_an_absolute_path_spelled_through_a_link_above_the_root_is_understood(tmp_path: Path) -> None:
    root = create_root(tmp_path / "real" / "root", {"a.txt": "1"})
    (tmp_path / "alias").symlink_to(tmp_path / "real", target_is_directory=True)
    path = tmp_path / "alias" / "root" / "a.txt"
    assert Codebase([root]).read(str(path), bounded_stop()).entry == FileEntry(root, "a.txt")


def test_bounds_below_one_are_refused() -> None:
    with pytest.raises(InvalidInput):
        Bounds(max_files=0)


def test_many_threads_read_at_once(tmp_path: Path) -> None:
    """P2: one codebase is shared by all workers."""
    root = create_root(tmp_path, {f"d{number % 7}/f{number}": f"text {number}" for number in range(100)})
    (root.path / "linked").hardlink_to(root.path / "d0" / "f0")
    codebase = Codebase([root])
    wrong: list[str] = []

    def work() -> None:
        for number in range(100):
            if codebase.read(f"d{number % 7}/f{number}", bounded_stop()).lines != (f"text {number}",):
                wrong.append(str(number))
        if codebase.read("linked", bounded_stop()).lines != ("text 0",):
            wrong.append("linked")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS * 4)
        assert not thread.is_alive()
    assert wrong == []


def test_a_stamp_changes_with_the_file_and_only_then(tmp_path: Path) -> None:
    root = create_root(tmp_path, {"a.txt": "one", "b.txt": "other"})
    entry = FileEntry(root, "a.txt")
    with Codebase([root]).opener(bounded_stop()) as opener:
        before = opener.stamp(entry)
        assert opener.stamp(entry) == before
        (root.path / "a.txt").write_text("changed")
        assert opener.stamp(entry) != before
        with pytest.raises(PathDenied):
            opener.stamp(FileEntry(root, ".env"))
        (root.path / "link").symlink_to("a.txt")
        with pytest.raises(PathMissing):
            opener.stamp(FileEntry(root, "link"))


def test_collecting_hard_links_ends_when_the_work_is_canceled(tmp_path: Path) -> None:
    """P2, P7: without a result the file stays closed."""
    root = create_root(tmp_path, {"a.txt": "one"})
    (root.path / "b.txt").hardlink_to(root.path / "a.txt")
    stop = Stop()
    with Codebase([root]).opener(stop) as opener:
        stop.cancel()
        with pytest.raises(Canceled):
            opener.read_text(FileEntry(root, "b.txt"))


def test_a_codebase_needs_a_root() -> None:
    with pytest.raises(ConfigInvalid):
        Codebase([])


def test_the_same_root_twice_is_one_root(tmp_path: Path) -> None:
    root = create_root(tmp_path, {"a.txt": "1"})
    assert Codebase([root, Root.at(tmp_path)]).roots == (root,)
