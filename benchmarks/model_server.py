"""The fake endpoint in a process of its own, so that its time is not the client's: prints its URL, and serves
until its standard input ends."""

from __future__ import annotations

import itertools
import sys

import anyio
import anyio.to_thread

from retinue.models.fake_endpoint import FakeEndpoint, serving
from retinue.models.fake_profiles import VLLM
from retinue.models.scripted import Scripted


async def main(words: int) -> None:
    model = Scripted(itertools.repeat("word " * words))
    async with serving(FakeEndpoint(model, VLLM)) as url:
        print(url, flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]))
