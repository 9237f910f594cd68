"""Reads streams of bytes so that no amount of data can keep the event loop from its other work.

Every source of output (programs, coding CLIs, MCP servers, model servers) is read through `read_fairly`. It
hands the data out in small slices and rests after them, so that all sources together take at most half of the
loop's time. The source is not read meanwhile: its pipe or connection fills up, and the writer waits.

Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable
from weakref import WeakKeyDictionary

SHARE = 0.5
"""The part of an event loop's time that all sources together may take."""
MIN_SLICE_BYTES, MAX_SLICE_BYTES = 1 << 8, 1 << 14
SLICE_S = 0.003
"""The time that a slice should take its consumer. The size of the slices is adjusted to it."""
MAX_SLICE_S = 0.25
"""A slice counts as at most this much: a consumer that waits does not work."""
MAX_READ_S = 0.001
"""The same for taking data out of the buffers of `chunks`, which usually waits."""
SHORTEST_REST_S = 0.001
"""Shorter rests are added up, because a timer costs time too."""


async def read_fairly(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield the chunks in slices, and rest between them for as long as the consumer took."""
    loop_share = LoopShare.current()
    size = MIN_SLICE_BYTES
    idle = time.thread_time()
    async for chunk in chunks:
        reading = min(time.thread_time() - idle, MAX_READ_S)
        at = 0
        while at < len(chunk):
            piece = chunk[at : at + size]
            began = time.monotonic()
            yield piece
            took = time.monotonic() - began
            at += len(piece)
            if took > SLICE_S:
                size = max(size // 2, MIN_SLICE_BYTES)
            elif took < SLICE_S / 4 and len(piece) == size:
                size = min(size * 2, MAX_SLICE_BYTES)
            await loop_share.rest(reading + min(took, MAX_SLICE_S))
            reading = 0.0
        idle = time.thread_time()


async def read_chunks(stream: asyncio.StreamReader, size: int) -> AsyncGenerator[bytes]:
    """Yield what arrives on a stream, at most `size` bytes at once."""
    while chunk := await stream.read(size):
        yield chunk


class LoopShare:
    """The time that sources have taken of one event loop, and when the next slice is due."""

    def __init__(self) -> None:
        self._due = 0.0
        """The time of the loop at which the time taken so far is balanced by rests."""

    @classmethod
    def current(cls) -> LoopShare:
        """Return the one of the running loop."""
        loop = asyncio.get_running_loop()
        share = _shares.get(loop)
        if share is None:
            share = _shares[loop] = cls()
        return share

    async def rest(self, spent: float) -> None:
        """Count the seconds that a slice took, and sleep until the loop has had its own share."""
        now = asyncio.get_running_loop().time()
        self._due = max(self._due, now - spent) + spent / SHARE
        if self._due - now >= SHORTEST_REST_S:
            await asyncio.sleep(self._due - now)


_shares: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopShare] = WeakKeyDictionary()
