"""A run's log: written as output arrives, and readable meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from retinue.core import InvalidInput
from retinue.store import LogStream, LogWriter, logs
from retinue.store.logs import LogPage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def texts(page: LogPage) -> list[str]:
    return [line.text for line in page.lines]


def read_all(path: Path, max_bytes: int) -> tuple[list[str], list[LogPage]]:
    """Follow the cursor to the end, and join the parts of lines."""
    pages: list[LogPage] = []
    whole: list[str] = []
    cursor, unfinished = 0, False
    while True:
        page = logs.read_log(path, cursor, max_bytes)
        pages.append(page)
        for line in page.lines:
            if unfinished:
                whole[-1] += line.text
            else:
                whole.append(line.text)
            unfinished = not line.complete
        assert page.cursor > cursor or page.at_end
        cursor = page.cursor
        if page.at_end:
            return whole, pages


def test_lines_are_read_with_their_streams_and_times(path: Path) -> None:
    with LogWriter(path) as log:
        log.append(LogStream.STDOUT, "one\ntwo\n")
        log.append(LogStream.STDERR, "oh \ud800 no\r\n")
        log.append(LogStream.EVENT, "started\n")
    page = logs.read_log(path, 0)
    assert [(line.stream, line.text) for line in page.lines] == [
        (LogStream.STDOUT, "one"),
        (LogStream.STDOUT, "two"),
        (LogStream.STDERR, "oh ? no"),
        (LogStream.EVENT, "started"),
    ]
    assert all(line.at.endswith("Z") and len(line.at) == 24 for line in page.lines)
    assert page.at_end
    assert page.cursor == path.stat().st_size


def test_parts_of_a_line_are_joined(path: Path) -> None:
    with LogWriter(path) as log:
        for part in ("work", "ing"):
            log.append(LogStream.STDOUT, part)
        log.append(LogStream.STDERR, "warning\n")
        log.append(LogStream.STDOUT, " on it\nnext")
    page = logs.tail_log(path, 50)
    assert [(line.text, line.complete) for line in page.lines] == [
        ("working on it", True),
        ("warning", True),
        ("next", False),
    ]


def test_output_is_in_the_file_before_its_line_is_complete(path: Path) -> None:
    """P5: partial output survives the death of the server."""
    log = LogWriter(path)
    log.append(LogStream.STDOUT, "no end yet")
    assert "no end yet" in path.read_text()
    log.close()


def test_tail_shows_the_last_lines_and_its_cursor_continues_after_them(path: Path) -> None:
    with LogWriter(path) as log:
        for number in range(5000):
            log.append(LogStream.STDOUT, f"line {number}\n")
        page = logs.tail_log(path, 3)
        assert texts(page) == ["line 4997", "line 4998", "line 4999"]
        assert texts(logs.read_log(path, page.cursor)) == []
        log.append(LogStream.STDOUT, "later\n")
        assert texts(logs.read_log(path, page.cursor)) == ["later"]


def test_streams_are_filtered_and_the_cursor_skips_the_others(path: Path) -> None:
    with LogWriter(path) as log:
        for number in range(100):
            log.append(LogStream.STDOUT if number % 2 else LogStream.STDERR, f"{number}\n")
    assert texts(logs.tail_log(path, 2, {LogStream.STDERR})) == ["96", "98"]
    page = logs.read_log(path, 0, streams={LogStream.EVENT})
    assert (page.lines, page.cursor) == ((), path.stat().st_size)


def test_a_log_that_does_not_exist_yet_is_empty(path: Path) -> None:
    assert logs.tail_log(path, 50) == LogPage((), 0, at_end=True)
    assert logs.read_log(path, 0) == LogPage((), 0, at_end=True)
    logs.terminate_last_line(path)
    assert not path.exists()


def test_incomplete_last_line_is_shown_once_it_is_complete(path: Path) -> None:
    with LogWriter(path) as log:
        log.append(LogStream.STDOUT, "whole\n")
    with path.open("ab", buffering=0) as raw:
        raw.write(b"2026-01-01T00:00:00.000Z stdout to")
        page = logs.read_log(path, 0)
        assert texts(page) == texts(logs.tail_log(path, 5)) == ["whole"]
        assert logs.tail_log(path, 5).cursor == page.cursor
        raw.write(b"rn\n")
        assert texts(logs.read_log(path, page.cursor)) == ["torn"]


def test_pages_keep_to_their_size_and_lose_nothing(path: Path) -> None:
    """P4"""
    lines = [f"{number}:" + "x" * (number % 300) for number in range(400)]
    with LogWriter(path) as log:
        for line in lines:
            log.append(LogStream.STDOUT, line + "\n")
    whole, pages = read_all(path, 1000)
    assert whole == lines
    assert len(pages) > 10
    assert all(sum(len(text) for text in texts(page)) <= 1000 for page in pages)


def test_a_page_smaller_than_a_line_still_makes_progress(path: Path) -> None:
    with LogWriter(path) as log:
        log.append(LogStream.STDOUT, "a" * 500 + "\n" + "b" * 500 + "\n")
    assert read_all(path, 1)[0] == ["a" * 500, "b" * 500]


@pytest.mark.parametrize("letter", ["x", "ä", "\N{GRINNING FACE}"])
def test_long_line_is_split_in_the_file_and_joined_for_the_reader(path: Path, letter: str) -> None:
    text = letter * 100_000
    with LogWriter(path) as log:
        log.append(LogStream.STDOUT, text + "\nend\n")
    assert max(len(line) for line in path.read_bytes().split(b"\n")) < 64 * 1024
    assert read_all(path, 1000)[0] == [text, "end"]
    assert texts(logs.tail_log(path, 1000)) == [text, "end"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=st.lists(st.text(max_size=40), max_size=12), max_bytes=st.integers(1, 200))
def test_whatever_is_appended_is_read_back(path: Path, chunks: list[str], max_bytes: int) -> None:
    path.unlink(missing_ok=True)
    with LogWriter(path) as log:
        for chunk in chunks:
            log.append(LogStream.STDOUT, chunk)
    whole = "".join(chunks).encode("utf-8", "replace").decode()
    expected = whole.split("\n")
    if not expected[-1]:
        expected.pop()
    shown = read_all(path, max_bytes)[0]
    # A carriage return before a line break is dropped, unless it arrived separately.
    assert [line.rstrip("\r") for line in shown] == [line.rstrip("\r") for line in expected]
    assert [line.rstrip("\r") for line in texts(logs.tail_log(path, 10_000))] == [
        line.rstrip("\r") for line in expected
    ]


@given(cursor=st.integers(0, 2000))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_invented_cursor_shows_only_whole_lines(path: Path, cursor: int) -> None:
    if not path.exists():
        with LogWriter(path) as log:
            log.append(LogStream.STDOUT, "".join(f"ä{number}\n" for number in range(30)))
    page = logs.read_log(path, cursor)
    assert texts(page) == [f"ä{number}" for number in range(30)][30 - len(page.lines) :]
    assert page.cursor == path.stat().st_size


def test_bad_arguments_are_refused(path: Path) -> None:
    with pytest.raises(InvalidInput):
        logs.read_log(path, -1)
    with pytest.raises(InvalidInput):
        logs.tail_log(path, -1)
    assert logs.tail_log(path, 0).lines == ()


def test_invalid_utf_8_does_not_break_the_reader(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00 garbage\n2026 stdout ok\n" + os.urandom(200).replace(b"\n", b"") + b"\n")
    assert logs.read_log(path, 0).lines[1].text == "ok"
    assert len(logs.tail_log(path, 10).lines) == 3
    path.write_bytes(b"x" * 300_000)
    assert read_all(path, 1000)[1][-1].cursor > 200_000


def test_full_log_says_so_and_drops_further_output(path: Path) -> None:
    """P2"""
    with LogWriter(path, max_bytes=2000) as log:
        for _ in range(1000):
            log.append(LogStream.STDOUT, "x" * 50 + "\n")
        assert log.dropped > 0
    assert path.stat().st_size < 2200
    assert "the log is full" in logs.tail_log(path, 1).lines[0].text
    with LogWriter(path, max_bytes=2000) as again:
        again.append(LogStream.STDOUT, "more\n")
    assert path.stat().st_size < 2400


def test_lines_of_concurrent_writers_never_mix_and_readers_see_whole_lines(path: Path) -> None:
    done = threading.Event()
    seen: list[str] = []

    def write(name: str) -> None:
        with LogWriter(path) as log:
            for number in range(300):
                log.append(LogStream.STDOUT, f"{name}{number}:" + name * 100 + "\n")

    def follow() -> None:
        cursor = 0
        while True:
            last = done.is_set()
            page = logs.read_log(path, cursor)
            seen.extend(texts(page))
            cursor = page.cursor
            if last and page.at_end:
                return

    follower = threading.Thread(target=follow)
    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in [follower, *writers]:
        thread.start()
    for thread in writers:
        thread.join(20)
    done.set()
    follower.join(20)
    assert sorted(seen) == sorted(f"{name}{n}:" + name * 100 for name in "abc" for n in range(300))
