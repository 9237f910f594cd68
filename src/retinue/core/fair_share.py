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

SLICE_BYTES = 1 << 12
"""Bytes that are handed out at once. Even the costliest lines take only milliseconds for so many."""
SHARE = 0.5
"""The part of an event loop's time that all sources together may take."""
SHORTEST_REST_S = 0.001
"""Shorter rests are added up, because a timer costs time too."""
LONGEST_SLICE_S = 0.02
"""A slice counts as at most this much. What took longer was mostly other tasks, while the consumer waited."""
LONGEST_READ_S = 0.001
"""The same for taking data out of the buffers of `chunks`, which usually waits."""


async def read_fairly(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield the chunks in slices, and rest between them for as long as the consumer took.

    The time of the consumer is counted, and the time in which `chunks` took the data out of its buffers.
    """
    loop_share = LoopShare.current()
    idle = time.thread_time()
    async for chunk in chunks:
        reading = min(time.thread_time() - idle, LONGEST_READ_S)
        for at in range(0, len(chunk), SLICE_BYTES):
            began = time.thread_time()
            yield chunk[at : at + SLICE_BYTES]
            await loop_share.rest(reading + min(time.thread_time() - began, LONGEST_SLICE_S))
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
