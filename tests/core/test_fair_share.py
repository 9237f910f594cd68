"""Reading takes at most its share of the event loop, and loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence

import pytest

from retinue.core import read_fairly

pytestmark = pytest.mark.anyio


async def given(chunks: Sequence[bytes]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk


def work(seconds: float) -> None:
    """Take processor time: on a busy machine, the clock also counts the time of others."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("size", [1, 255, 256, 100_000])
async def test_slices_join_to_the_chunks(size: int) -> None:
    """P8."""
    data = bytes(range(256)) * 1_000
    chunks = [data[at : at + size] for at in range(0, 200 * size, size)]
    assert b"".join([piece async for piece in read_fairly(given(chunks))]) == b"".join(chunks)


async def test_other_tasks_get_most_of_the_time_of_a_busy_loop() -> None:
    """Four sources that never wait and whose every slice takes 2 ms."""
    began = time.perf_counter()
    busy = 0.0

    async def consume() -> None:
        nonlocal busy
        async for _ in read_fairly(given([b"x" * 256] * 25)):
            work(0.002)
            busy += 0.002

    await asyncio.gather(*(consume() for _ in range(4)))
    assert busy >= 0.19
    assert busy / (time.perf_counter() - began) < 0.5


async def test_costly_data_is_handed_out_in_small_slices() -> None:
    """However large a chunk is, a slice takes only milliseconds."""
    sizes: list[int] = []
    async for piece in read_fairly(given([b"x" * 20_000])):
        sizes.append(len(piece))
        work(len(piece) * 5e-6)
    assert max(sizes) <= 2_048


async def test_a_quiet_source_does_not_rest() -> None:
    """A line now and then is passed on at once, even if the consumer waits long."""

    async def slow() -> AsyncGenerator[bytes]:
        for _ in range(20):
            await asyncio.sleep(0.002)
            yield b"a line\n"

    began = time.perf_counter()
    async for _ in read_fairly(slow()):
        pass
    assert time.perf_counter() - began < 5


async def test_sources_take_turns() -> None:
    """A source with little to say is not kept waiting by those that never stop."""
    flooding = True

    async def endless() -> AsyncGenerator[bytes]:
        while flooding:
            yield b"x" * 1_000

    async def flood() -> None:
        async for _ in read_fairly(endless()):
            work(0.002)

    floods = [asyncio.create_task(flood()) for _ in range(4)]
    await asyncio.sleep(0.05)
    began = time.perf_counter()
    async for _ in read_fairly(given([b"a line\n"] * 10)):
        pass
    took = time.perf_counter() - began
    flooding = False
    await asyncio.gather(*floods)
    assert took < 10


async def test_a_source_steps_back_while_the_loop_is_late_for_its_other_work() -> None:
    """It takes a slice only now and then, not one whenever the other work lets it."""
    flooding = True
    slices = 0

    async def endless() -> AsyncGenerator[bytes]:
        while flooding:
            yield b"x" * 256

    async def flood() -> None:
        nonlocal slices
        async for _ in read_fairly(endless()):
            work(0.005)
            slices += 1

    source = asyncio.create_task(flood())
    await asyncio.sleep(0.1)  # past what a source may take without waiting
    before, pieces = slices, 40
    for _ in range(pieces):
        work(0.03)
        await asyncio.sleep(0)
    taken = slices - before
    flooding = False
    await source
    assert 0 < taken <= pieces // 5  # without stepping back, it would be one in three
