"""Stretches of bytes that are to be replaced. Knows nothing of how they were found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    start: int
    end: int
    kind: str


def within(data: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """The parts of spans that lie in `data`, widened to whole UTF-8 characters."""
    for start, end, kind in spans:
        start, end = max(start, 0), min(end, len(data))
        if start >= end:
            continue
        while start > 0 and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        yield Span(start, end, kind)


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """In order, and overlapping spans as one, which takes the kind of the longest."""
    current, longest = None, 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        length = span.end - span.start
        if current is None or span.start >= current.end:
            if current:
                yield current
            current, longest = span, length
            continue
        kind = span.kind if length > longest else current.kind
        longest = max(longest, length)
        current = Span(current.start, max(current.end, span.end), kind)
    if current:
        yield current


def outside(spans: Iterable[Span], gaps: list[tuple[int, int]]) -> Iterator[Span]:
    """The parts of spans that lie in none of the gaps; both are in order."""
    first = 0
    for start, end, kind in spans:
        while first < len(gaps) and gaps[first][1] <= start:
            first += 1
        at = first
        while at < len(gaps) and gaps[at][0] < end:
            if start < gaps[at][0]:
                yield Span(start, gaps[at][0], kind)
            start = gaps[at][1]
            at += 1
        if start < end:
            yield Span(start, end, kind)
