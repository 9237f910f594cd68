"""What the client of models costs, and what serving one agent's runs back to back saves.

    python -m benchmarks.models [--rounds 9] [--json]

CPU of `reply` against a bare streaming request of httpx2, in the same process and to the same fake endpoint,
which is a process of its own. Rounds alternate, medians count. Then, on a real llama.cpp server with one
slot, the prompt tokens that two agents' runs have it read, one agent after the other and in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio
import httpx2

from retinue.core import Prompt, Turn
from retinue.models import ModelPlan, Models

REQUESTS = 20
RUNS = 4
LIMIT = 1.5
ASK = Prompt(turns=(Turn("user", "hello"),), max_tokens=1_000_000)
AGENTS = {
    "reviewer": "You review changes. Look for what could break, name the line, and be brief. ",
    "writer": "You write documentation. Say what a thing is for before how it works. ",
}


@contextmanager
def process(*arguments: str) -> Generator[str]:
    """A server that prints its URL first and ends with its standard input."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdin and server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


async def bare(client: httpx2.AsyncClient, url: str) -> str:
    """As little as a client can do to have the text."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    said: list[str] = []
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                said.append(json.loads(line[6:])["choices"][0]["delta"].get("content") or "")
    return "".join(said)


async def spent(work: Callable[[], Awaitable[str]], words: int) -> float:
    """Milliseconds of CPU for one request."""
    before = time.process_time()
    for _ in range(REQUESTS):
        assert await work() == "word " * words
    return (time.process_time() - before) / REQUESTS * 1000


async def cost(words: int, rounds: int) -> tuple[float, float]:
    with process("benchmarks.model_server", str(words)) as url:
        async with httpx2.AsyncClient(timeout=60) as client, Models(ModelPlan(endpoint=url), {}) as models:
            model = models.client_for()

            async def ours() -> str:
                return (await model.reply(ASK)).text

            async def theirs() -> str:
                return await bare(client, url)

            for work in (ours, theirs):
                await spent(work, words)
            pairs = [(await spent(ours, words), await spent(theirs, words)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


async def read_by_the_server(url: str, order: list[str], mark: str) -> tuple[int, int]:
    """Prompt tokens that runs of these agents have, and those of them that the server had to read."""
    whole = read = 0
    async with Models(ModelPlan(endpoint=url), {}) as models:
        model = models.client_for()
        for number, agent in enumerate(order):
            system = Turn("system", f"{mark} {AGENTS[agent] * 20}")
            task = Turn("user", f"Task {number}: say yes.")
            reply = await model.reply(Prompt(turns=(system, task), max_tokens=2))
            whole += reply.prompt_tokens or 0
            read += (reply.prompt_tokens or 0) - (reply.cached_tokens or 0)
    return whole, read


async def main(rounds: int, as_json: bool) -> int:
    figures: dict[str, float] = {}
    for words in (20, 400):
        ours, theirs = await cost(words, rounds)
        figures[f"client_over_bare_{words}_words"] = ours / theirs
        if not as_json:
            ratio = f"{ours / theirs:.2f} x (limit {LIMIT})"
            print(f"{words:4} words: {ours:6.2f} ms CPU, bare {theirs:6.2f} ms: {ratio}")
    orders = {"back to back": sorted(list(AGENTS) * RUNS), "in turns": list(AGENTS) * RUNS}
    for kept in ("0", "8192"):
        for name, order in orders.items():
            with process("tests.models.llama_server", "4096", "1", kept) as url:
                whole, read = await read_by_the_server(url, order, name)
            figures[f"tokens_read_{name.replace(' ', '_')}_{kept}_MiB"] = read
            if not as_json:
                print(
                    f"{len(order)} runs {name}, {kept} MiB of kept prompts: {read:,} of {whole:,} tokens read"
                )
    if as_json:
        print(json.dumps(figures))
    return int(any(ratio > LIMIT for name, ratio in figures.items() if name.startswith("client")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sys.exit(anyio.run(main, arguments.rounds, arguments.json))
