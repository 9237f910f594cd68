"""What the loop costs beside the requests it makes, and what fifty agents at once need of memory.

    python -m benchmarks.loop [--rounds 7] [--agents 50] [--json]

The floor is httpx2 alone: the very same requests, streamed and read as JSON, nothing else done with them. CPU
time of this process is compared, not the clock; the server is a process of its own. Rounds alternate, and the
median counts. `with_files` reads files, redacts and checks references, which the floor does not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from retinue.codebase import Codebase, Locator
from retinue.core import (
    Agent,
    AskParent,
    Message,
    MessageId,
    MessageStatus,
    ModelFacts,
    ModelSkills,
    OutputLine,
    ProcessIdentity,
    Prompt,
    Reply,
    ReplyPiece,
    Root,
    RunContext,
    RunId,
    Task,
)
from retinue.executors import LocalExecutor
from retinue.models import EndpointPlan, ModelPlan, Models, chat_completions
from retinue.models.client import ModelClient
from retinue.redaction import SecretRedactor

LIMITS = {"loop_cpu": 1.5, "agent_mb": 2.0}
STEPS = 12


class Recording:
    """Our client, with the bodies of its requests for the floor to repeat."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.bodies: list[object] = []

    async def facts(self) -> ModelFacts:
        return await self._client.facts()

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        self.bodies.append(chat_completions.build_request(prompt, "scripted"))
        return await self._client.reply(prompt, on_text)


@contextmanager
def model_server() -> Generator[str]:
    argv = [sys.executable, "-m", "benchmarks.looking_model"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


async def _skills(seconds: float) -> ModelSkills:
    return ModelSkills(calls_tools=True, follows_schema=True)


def executor(
    folder: Path, model: Recording | ModelClient, client: ModelClient, tools: tuple[str, ...]
) -> LocalExecutor:
    (folder / "src").mkdir(exist_ok=True)
    text = "".join(f"def attempt_{n}(times: int) -> int:  # counts retry {n}\n" for n in range(300))
    (folder / "src" / "app.py").write_text(text, encoding="utf-8")
    agent = Agent(
        name="bench", description="", executor="local", tools=tools, timeout_s=60, source="benchmark"
    )
    codebase = Codebase([Root.at(folder)])
    return LocalExecutor(
        agent=agent,
        model=model,
        codebase=codebase,
        locator=Locator(codebase),
        skills=_skills,
        speed=lambda _: None,
        redactor=SecretRedactor(),
        estimator=client.tokens,
        environment={},
    )


async def answer_at_once(question: str, wait_s: float | None) -> Message:
    return Message(
        id=MessageId.new(),
        run_id=RunId.new(),
        question=question,
        status=MessageStatus.ACKNOWLEDGED,
        asked_at=0,
        answer=f"The answer to {question} is in the part that counts the attempts, and nowhere else.",
    )


async def perform(given: LocalExecutor, folder: Path, ask: AskParent | None) -> None:
    async def emit(line: OutputLine) -> None:
        return

    async def started(identity: ProcessIdentity) -> None:
        return

    context = RunContext("run", folder, None, emit=emit, started=started, ask=ask)
    outcome = await given.run(Task("bench", "How are attempts counted?"), context)
    assert outcome.error is None and outcome.usage["steps"] == STEPS, outcome


async def bare(client: httpx2.AsyncClient, url: str, bodies: list[object]) -> None:
    for body in bodies:
        async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    json.loads(line[6:])


async def overhead(url: str, folder: Path, rounds: int) -> dict[str, float]:
    """CPU of a step of the loop, as a multiple of the same request made by httpx2 alone."""
    plan = ModelPlan(endpoint=url, model="scripted")
    figures: dict[str, list[float]] = {"loop": [], "with_files": [], "floor": []}
    async with Models(plan, {}) as models, httpx2.AsyncClient() as alone:
        client = models.client_for()
        recording = Recording(client)
        quick = executor(folder, recording, client, ("ask_parent",))
        reading = executor(folder, client, client, ("read_file",))
        await perform(quick, folder, answer_at_once)  # what is done once in a process is not a step's cost
        await perform(reading, folder, None)
        for _ in range(rounds):
            recording.bodies.clear()
            began = time.process_time()
            await perform(quick, folder, answer_at_once)
            looped = time.process_time()
            await bare(alone, url, recording.bodies)
            floor = time.process_time()
            await perform(reading, folder, None)
            figures["loop"].append(looped - began)
            figures["floor"].append(floor - looped)
            figures["with_files"].append(time.process_time() - floor)
    return {name: statistics.median(values) / STEPS for name, values in figures.items()}


async def crowd(url: str, folder: Path, agents: int) -> dict[str, float]:
    """The most memory with so many agents at work, beyond that of one."""
    plan = ModelPlan(endpoint="it", model="scripted", endpoints={"it": EndpointPlan(url)})
    async with Models(plan, {}) as models:
        client = models.client_for()
        one = executor(folder, client, client, ("read_file",))
        await perform(one, folder, None)
        before = _peak_mb()
        async with asyncio.TaskGroup() as group:
            for _ in range(agents):
                group.create_task(perform(one, folder, None))
        return {"one_mb": before, "crowd_mb": _peak_mb()}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with model_server() as url, tempfile.TemporaryDirectory() as name:
        # The crowd first: a peak is never forgotten.
        memory = asyncio.run(crowd(url, Path(name), arguments.agents))
        cpu = asyncio.run(overhead(url, Path(name), arguments.rounds))
    ratios = {
        "loop_cpu": cpu["loop"] / cpu["floor"],
        "agent_mb": (memory["crowd_mb"] - memory["one_mb"]) / arguments.agents,
    }
    if arguments.json:
        print(json.dumps({**ratios, **memory, **{f"{key}_ms": value * 1000 for key, value in cpu.items()}}))
    else:
        for key, value in cpu.items():
            print(f"{key:12} {value * 1000:6.2f} ms CPU a step")
        print(
            f"one agent    {memory['one_mb']:6.0f} MB; {arguments.agents} at once {memory['crowd_mb']:.0f} MB"
        )
        for key, value in ratios.items():
            print(f"{key:12} {value:6.2f}  (limit {LIMITS[key]})")
    return int(any(value > LIMITS[key] for key, value in ratios.items()))


if __name__ == "__main__":
    sys.exit(main())
