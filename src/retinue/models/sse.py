"""Server-sent events out of a stream of bytes, bounded. Knows nothing of what they say.

httpx2 has a reader of its own. This one also gives the last event of a server that broke off behind it, and
the lines `error: ...` of older llama.cpp servers, both of which that one drops without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

SseEvent = tuple[str, bytes]
"""Its name, `message` where it has none, and its data."""

DONE = b"[DONE]"
"""The data of the last event."""
MAX_STREAM = 64 * 1024 * 1024
"""More than the longest reply of any model."""
MAX_EVENT = 4 * 1024 * 1024


class TooLong(Exception):
    """A stream or an event without an end."""


class Reader(Protocol):
    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """The events that are complete with this chunk; all of them must be taken."""
        ...

    def end(self) -> Iterator[SseEvent]:
        """What was left when the stream ended."""
        ...


def reader_for(content_type: str) -> Reader:
    """Some servers answer a request for a stream with one piece of JSON."""
    return WholeReader() if content_type.startswith("application/json") else EventReader()


class EventReader:
    def __init__(self) -> None:
        self._rest = b""
        self._name = "message"
        self._data: list[bytes] = []
        self._size = 0
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        self._seen += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line:
                self._take(line)
            elif self._data:
                yield self._event()
        if len(self._rest) + self._size > MAX_EVENT or self._seen > MAX_STREAM:
            raise TooLong

    def end(self) -> Iterator[SseEvent]:
        if self._rest:
            self._take(self._rest.removesuffix(b"\r"))
        if self._data:
            yield self._event()

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value.decode("ascii", "replace")
        elif field == b"error":
            self._name, self._data = "error", [value]

    def _event(self) -> SseEvent:
        event = self._name, b"\n".join(self._data)
        self._name, self._data, self._size = "message", [], 0
        return event


class WholeReader:
    """All of the answer is one event."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        self._seen += len(chunk)
        if self._seen > MAX_EVENT:
            raise TooLong
        self._parts.append(chunk)
        return iter(())

    def end(self) -> Iterator[SseEvent]:
        yield "message", b"".join(self._parts)
