"""Output is split into lines in bounded memory, and no text is changed or lost."""

from __future__ import annotations

import tracemalloc

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, strategies as st

from retinue.core import LimitExceeded, OutputLine
from retinue.executors.process import LAST_LINES, LineDecoder, Tail, Transcript


class Listener:
    def __init__(self) -> None:
        self.lines: list[OutputLine] = []

    async def __call__(self, line: OutputLine) -> None:
        self.lines.append(line)


def split(*chunks: bytes, max_chars: int = 100) -> list[tuple[str, bool]]:
    lines = LineDecoder("stdout", max_chars)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return [pair for line in (*found, *lines.feed(b"", last=True)) for pair in separate(line)]


def separate(line: OutputLine) -> list[tuple[str, bool]]:
    """The lines of a text with several, each with whether it is complete."""
    *earlier, last = line.text.split("\n")
    return [*((text, True) for text in earlier), (last, line.complete)]


def test_lines_have_no_newline_and_the_rest_is_incomplete() -> None:
    assert split(b"one\ntwo\r\n\nlast") == [("one", True), ("two", True), ("", True), ("last", False)]
    assert split(b"one\n") == [("one", True)]
    assert split() == []


def test_a_character_split_over_chunks_is_joined() -> None:
    """P8: four bytes that arrive one by one are one character."""
    assert split(*(bytes([byte]) for byte in "a😀ü\n".encode())) == [("a😀ü", True)]


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert split(b"\xff\xfe ok\n", b"cut \xf0\x9f") == [("\ufffd\ufffd ok", True), ("cut \ufffd", False)]


def test_a_long_line_is_split_into_incomplete_pieces() -> None:
    """P2."""
    assert split(b"abcdefgh", b"ij\nk\n", max_chars=4) == [
        ("abcd", False),
        ("efgh", False),
        ("ij", True),
        ("k", True),
    ]


@given(st.text(alphabet="aü😀\n", max_size=60), st.integers(1, 9), st.integers(1, 5))
def test_the_pieces_join_to_the_text_however_it_was_split(text: str, max_chars: int, step: int) -> None:
    """P8: a log made of the pieces equals the output of the program."""
    data = text.encode()
    pieces = split(*(data[at : at + step] for at in range(0, len(data), step)), max_chars=max_chars)
    assert "".join(piece + ("\n" if complete else "") for piece, complete in pieces) == text
    assert all(len(piece) <= max_chars for piece, _ in pieces)


def test_an_endless_line_does_not_fill_the_memory() -> None:
    """P2: 20 MB without a newline."""
    lines, chunk = LineDecoder("stdout", 1 << 16), b"x" * (1 << 16)
    tracemalloc.start()
    try:
        count = sum(len(line.text) for _ in range(320) for line in lines.feed(chunk))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert count + len(chunk) >= 320 * len(chunk)


def test_a_tail_keeps_the_last_lines_and_reports_that_it_was_cut() -> None:
    """P4, P8: the last lines summarise a failed run."""
    tail = Tail(10_000, max_lines=3)
    for number in range(3):
        tail.add(OutputLine("stdout", f"line {number}"))
    assert (tail.text, tail.cut) == ("line 0\nline 1\nline 2\n", False)
    tail.add(OutputLine("stderr", "line 3"))
    assert (tail.text, tail.cut) == ("line 1\nline 2\nline 3\n", True)


def test_a_tail_is_bounded_in_characters_too() -> None:
    """P4: it drops whole lines, and keeps the end of a line that is too long."""
    tail = Tail(10)
    for text in ("aaaa", "bbbb", "cccc"):
        tail.add(OutputLine("stdout", text))
    assert (tail.text, tail.cut) == ("bbbb\ncccc\n", True)
    tail.add(OutputLine("stdout", "0123456789abcdef"))
    assert tail.text == "789abcdef\n"


def test_incomplete_lines_of_two_streams_are_not_joined() -> None:
    tail = Tail(100)
    for stream, text, complete in [
        ("stdout", "half", False),
        ("stderr", "oops", True),
        ("stdout", " done", True),
    ]:
        tail.add(OutputLine("stdout" if stream == "stdout" else "stderr", text, complete=complete))
    assert tail.text == "half\noops\n done\n"


@pytest.mark.anyio
async def test_a_transcript_emits_lines_in_order_and_separates_the_answer_from_the_last_lines() -> None:
    listener = Listener()
    transcript = Transcript(listener, max_bytes=1000, max_line_chars=100)
    await transcript.take("stdout", b"answer\nmore")
    await transcript.take("stderr", b"warning\n")
    await transcript.finish()
    assert listener.lines == [
        OutputLine("stdout", "answer"),
        OutputLine("stderr", "warning"),
        OutputLine("stdout", "more", complete=False),
    ]
    assert transcript.answer.text == "answer\nmore"
    assert transcript.last_lines.text == "answer\nwarning\nmore"
    assert transcript.bytes == 19


@pytest.mark.anyio
async def test_output_up_to_the_limit_is_kept_and_the_error_names_the_limit() -> None:
    """P2."""
    listener = Listener()
    transcript = Transcript(listener, max_bytes=8, max_line_chars=100)
    await transcript.take("stdout", b"12345\n")
    with pytest.raises(LimitExceeded) as caught:
        await transcript.take("stderr", b"abcdef")
    await transcript.finish()
    assert (caught.value.kind, caught.value.used, caught.value.limit) == ("output_bytes", 12, 8)
    assert [line.text for line in listener.lines] == ["12345", "ab"]
    assert transcript.bytes == 8


@pytest.mark.anyio
async def test_two_streams_never_emit_at_the_same_time() -> None:
    """So a listener can write to a file without a lock."""
    inside = 0

    async def listener(line: OutputLine) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await anyio.lowlevel.checkpoint()
        inside -= 1

    transcript = Transcript(listener, max_bytes=10_000, max_line_chars=100)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(transcript.take, "stdout", b"a\nb\n")
            tasks.start_soon(transcript.take, "stderr", b"c\nd\n")
    assert transcript.last_lines.cut
    assert len(transcript.last_lines.text.splitlines()) == LAST_LINES
