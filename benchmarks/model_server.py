"""The fake endpoint in a process of its own, so that its time is not the client's: prints its URL, and serves
until its standard input ends."""

from __future__ import annotations

import itertools
import sys

import anyio
import anyio.to_thread

from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import VLLM
from tests.models.scripted_model import ScriptedModel


async def main(words: int) -> None:
    model = ScriptedModel(itertools.repeat("word " * words))
    async with serve_fake(FakeModelServer(model, VLLM)) as url:
        print(url, flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]))
