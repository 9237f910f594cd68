"""Reads streams of bytes so that no amount of data can keep the event loop from its other work.

Every source of output (programs, coding CLIs, MCP servers, model servers) is read through `read_fairly`. It
hands the data out in small slices and rests after them, so that all sources together take at most a third of
the loop's time, and much less if the loop or the machine is busy. The source is not read meanwhile: its pipe
or connection fills up, and the writer waits.

Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable
from weakref import WeakKeyDictionary

SHARE = 1 / 3
"""The part of an event loop's time that all sources together may take."""
MIN_SLICE_BYTES, MAX_SLICE_BYTES = 1 << 8, 1 << 14
SLICE_S = 0.002
"""The CPU time that a slice should take its consumer. The size of the slices is adjusted to it."""
MAX_SLOWDOWN = 5
"""On a busy machine, work takes up to so many times its CPU time. For the rest, the consumer waits."""
MAX_READ_S = 0.001
"""The same for taking data out of the buffers of `chunks`, which usually waits."""
FREE_S, FREE_SHARE = 0.02, 0.02
"""What each source may take without waiting for its turn: so many seconds at first, and this share later. It
lets a source with little to say get ahead of those that never stop."""
SHORTEST_REST_S = 0.001
"""Shorter rests are added up, because a timer costs time too."""
LATE_WAKE_S, LONGEST_REST_S = 0.005, 0.5
"""If a rest ends so much too late, others need the loop more, so the next turn waits in proportion to it. It
waits at most so long, so that every source goes on."""


async def read_fairly(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield the chunks in slices. The sources of an event loop take turns, with rests between them."""
    share = LoopShare.current()
    size = MIN_SLICE_BYTES
    free, counted = FREE_S, time.monotonic()
    cpu = time.thread_time()
    async for chunk in chunks:
        cpu, idle = time.thread_time(), cpu
        reading = min(cpu - idle, MAX_READ_S)
        at = 0
        while at < len(chunk):
            began = time.monotonic()
            free, counted = min(FREE_S, free + (began - counted) * FREE_SHARE), began
            if free <= 0:
                await share.wait_for_turn()
                began, cpu = time.monotonic(), time.thread_time()
            piece = chunk[at : at + size]
            yield piece
            cpu, before = time.thread_time(), cpu
            took = min(time.monotonic() - began, (cpu - before) * MAX_SLOWDOWN)
            free -= took
            share.end_turn(reading + took)
            reading = 0.0
            at += len(piece)
            if cpu - before > SLICE_S:
                size = max(size // 2, MIN_SLICE_BYTES)
            elif cpu - before < SLICE_S / 2 and len(piece) == size:
                size = min(size * 2, MAX_SLICE_BYTES)


async def read_chunks(stream: asyncio.StreamReader, size: int) -> AsyncGenerator[bytes]:
    """Yield what arrives on a stream, at most `size` bytes at once."""
    while chunk := await stream.read(size):
        yield chunk


class LoopShare:
    """Lets the sources of one event loop take turns, one after the other, and the loop rest after each."""

    def __init__(self) -> None:
        self._turns = asyncio.Lock()
        """Whoever waits longest is next."""
        self._next_turn = 0.0
        """The time of the loop at which it has rested enough."""
        self._rest = 0.0
        """Rests that were too short for a timer."""

    @classmethod
    def current(cls) -> LoopShare:
        """Return the one of the running loop."""
        loop = asyncio.get_running_loop()
        share = _shares.get(loop)
        if share is None:
            share = _shares[loop] = cls()
        return share

    async def wait_for_turn(self) -> None:
        """Wait until the loop has rested and everybody who came before has had a turn."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_turn and not self._turns.locked():
            return
        async with self._turns:
            left = self._next_turn - loop.time()
            while left > 0:  # a turn that was still going on may have ended meanwhile
                await asyncio.sleep(left)
                left = self._next_turn - loop.time()
            if -left > LATE_WAKE_S:  # the loop has other work, or the machine does not let it run
                await asyncio.sleep(min(-left * (1 / SHARE - 1), LONGEST_REST_S))

    def end_turn(self, seconds: float) -> None:
        """Let the loop rest in proportion to the seconds that a turn took."""
        self._rest += seconds * (1 / SHARE - 1)
        if self._rest >= SHORTEST_REST_S:
            now = asyncio.get_running_loop().time()
            self._next_turn = max(self._next_turn, now) + self._rest
            self._rest = 0.0


_shares: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopShare] = WeakKeyDictionary()
