"""Lines of a text held as UTF-8 bytes, found without splitting it. Knows nothing of files."""

from __future__ import annotations

from collections.abc import Iterator

from retinue.codebase.linear_regex import Regex


def pieces(text: bytes, size: int) -> Iterator[tuple[int, int]]:
    """The text cut into whole lines, as many as fit into `size` bytes; one that does not fit stands alone."""
    start = 0
    while start < len(text):
        end = len(text)
        if start + size < end:
            end = text.rfind(b"\n", start, start + size) + 1
            if end <= start:
                end = min(line_end(text, start) + 1, len(text))
        yield start, end
        start = end


def matching_lines(text: bytes, regex: Regex, start: int, end: int) -> Iterator[tuple[int, int]]:
    """For each line with a match from `start` to `end`: where it begins, and where its first match does."""
    while start < end:
        hit = regex.search(text, start, end)
        if hit is None or (hit.start() == end and text[end - 1 : end] == b"\n"):
            return  # an empty match behind the last line end belongs to no line
        line = text.rfind(b"\n", 0, hit.start()) + 1
        yield line, hit.start()
        start = line_end(text, line) + 1


def line_end(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def lines_before(text: bytes, start: int, count: int) -> list[bytes]:
    """Up to `count` whole lines above the one that begins at `start`."""
    found: list[bytes] = []
    while start > 0 and len(found) < count:
        end = start - 1
        start = text.rfind(b"\n", 0, end) + 1
        found.insert(0, text[start:end])
    return found


def lines_after(text: bytes, start: int, count: int) -> list[bytes]:
    """Up to `count` whole lines below the one that begins at `start`."""
    found: list[bytes] = []
    start = line_end(text, start) + 1
    while start < len(text) and len(found) < count:
        end = line_end(text, start)
        found.append(text[start:end])
        start = end + 1
    return found
