"""A model's server for the benchmark of the loop: every agent looks eleven times, then answers.

    python -m benchmarks.looking_model

Prints its URL and serves until its stdin ends. What it says depends on the prompt alone, so that any number
of agents may ask at once, and a replayed request gets the same reply.
"""

from __future__ import annotations

import sys
from itertools import repeat

import anyio
import anyio.to_thread

from retinue.core import Prompt
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls, says

LOOKS = 11
WORDS = "I will look at the next part of the file to see how the attempts are counted there. "


def line(prompt: Prompt) -> ScriptLine:
    done = sum(turn.role == "tool" for turn in prompt.turns)
    if done >= LOOKS:
        return says("Retry is handled in src/app.py:4. " + WORDS * 3)
    if any(tool.name == "ask_parent" for tool in prompt.tools):
        return calls("ask_parent", question=f"question {done}", said=WORDS)
    return calls("read_file", path="src/app.py", start=1 + 20 * done, lines=20, said=WORDS)


async def main() -> None:
    endpoint = FakeModelServer(
        ScriptedModel(repeat(line)), SERVER_BEHAVIOURS["vllm"], FakeServerState(context=32_768, slots=64)
    )
    async with serve_fake(endpoint) as url:
        print(url, flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(main)
