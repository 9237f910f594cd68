"""What a workflow costs beyond the work of its agents: `python -m benchmarks.workflows [--json]`.

- overhead: CPU for each step of a chain of 200 and of 1,000 steps side by side, 8 at once, with agents that
  answer at once. The child run, its log, its handoff, redaction and checkpoints are in it. Goal: 5 ms.
- memory: what waiting steps hold while eight are at work, with 100 and with 2,000 of them. Goal: no more
  than 4 KiB for each that waits, which is its definition.

Ends non-zero when a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from retinue.core import Assignment, Outcome, Run, RunContext, RunId, RunSpec, RunStatus, Task, Workflow
from retinue.core.budget import UNLIMITED
from retinue.definitions import read_workflow
from retinue.redaction import SecretRedactor
from retinue.runtime import Changes, Pool, PreparedRun, Supervisor
from retinue.store import Capacity, Owner, Store
from retinue.workflows import AgentCall, EmbeddedEngine

MOST_MS = 5.0
MOST_WAITING_BYTES = 4096
AT_ONCE = 8
ANSWER = json.dumps({"decision": "PROCEED", "context_summary": "done as asked", "findings": {"found": ["a"]}})
Figures = dict[str, float]


class AtOnce:
    """An agent that answers at once, or when it is let go on."""

    def __init__(self, release: asyncio.Event | None = None) -> None:
        self.begun = 0
        self.all_begun = asyncio.Event()
        self._release = release

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.begun += 1
        if self.begun == AT_ONCE:
            self.all_begun.set()
        if self._release is not None:
            await self._release.wait()
        return Outcome(ANSWER)


class Starter:
    def __init__(self, supervisor: Supervisor, agent: AtOnce, cwd: Path) -> None:
        self._supervisor = supervisor
        self._agent = agent
        self._cwd = cwd

    async def agent(self, call: AgentCall, prompt: str, parent: RunId, also: Callable[[Run], object]) -> Run:
        spec = RunSpec(agent=call.agent, task=prompt, executor="scripted", parent=parent)
        return await self._supervisor.start(PreparedRun(spec, self._agent, self._cwd), also)

    async def check(self, name: str, parent: RunId, also: Callable[[Run], object]) -> Run | None:
        return None

    def unconfirmed_checks(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        return {}

    def confirm_checks(self, commands: Mapping[str, Sequence[str]]) -> None: ...


class Bench:
    def __init__(self, store: Store, changes: Changes, engine: EmbeddedEngine) -> None:
        self.store = store
        self._changes = changes
        self._engine = engine

    async def start(self, workflow: Workflow) -> RunId:
        run = await self._engine.submit(workflow, Assignment(feature="add a flag"), "bench", UNLIMITED)
        return run.id

    async def ended(self, run_id: RunId) -> None:
        def look() -> Run | None:
            run = self.store.runs.get(run_id)
            return run if run.status.ended else None

        run = await self._changes.until(look, {run_id})
        assert run is not None and run.status is RunStatus.SUCCESS, run and run.error


@asynccontextmanager
async def bench(folder: Path, agent: AtOnce) -> AsyncGenerator[Bench]:
    redactor = SecretRedactor()
    redactor.redact("the first text compiles the rules")
    with Store.open(folder) as store, Owner.register(store.folder) as owner:
        async with (
            Changes(store) as changes,
            Pool(store, changes, owner.id, Capacity(AT_ONCE, 1_000)) as pool,
            Supervisor(store, pool, redactor) as supervisor,
        ):
            starter = Starter(supervisor, agent, folder)
            yield Bench(store, changes, EmbeddedEngine(store, changes, supervisor, starter, redactor, folder))


def chain_of(steps: int) -> Workflow:
    return read_workflow("steps:\n" + "  - agent: a\n" * steps, "chain", "bench")


def parallel_of(steps: int) -> Workflow:
    text = f"steps:\n  - at_once: {AT_ONCE}\n    parallel:\n" + "      - agent: a\n" * steps
    return read_workflow(text, "parallel", "bench")


async def overhead(folder: Path, workflow: Workflow, steps: int) -> float:
    """CPU milliseconds for each step, all threads of the process together."""
    async with bench(folder, AtOnce()) as at:
        await at.ended(await at.start(chain_of(5)))  # what happens once only
        gc.collect()
        began = time.process_time()
        await at.ended(await at.start(workflow))
        return (time.process_time() - began) * 1000 / steps


async def waiting_bytes(folder: Path, few: int, many: int) -> tuple[float, int]:
    """Bytes for each step that waits, and how many runs were recorded while they did."""
    held: list[int] = []
    recorded = 0
    for steps in (few, many):
        release = asyncio.Event()
        agent = AtOnce(release)
        async with bench(folder / str(steps), agent) as at:
            workflow = parallel_of(steps)
            gc.collect()
            tracemalloc.start()
            run_id = await at.start(workflow)
            await agent.all_begun.wait()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
            recorded = len(at.store.runs.list(parent=run_id, limit=-1))
            release.set()
            await at.ended(run_id)
    return (held[1] - held[0]) / (many - few), recorded


async def measure() -> Figures:
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures["chain_ms_per_step"] = await overhead(folder / "chain", chain_of(200), 200)
        figures["parallel_ms_per_step"] = await overhead(folder / "parallel", parallel_of(1_000), 1_000)
        each, recorded = await waiting_bytes(folder, 100, 2_000)
        figures["bytes_per_waiting_step"] = each
        figures["runs_recorded_while_1992_wait"] = recorded
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    logging.disable(logging.WARNING)
    figures = asyncio.run(measure())
    goals = {
        "chain_ms_per_step": MOST_MS,
        "parallel_ms_per_step": MOST_MS,
        "bytes_per_waiting_step": MOST_WAITING_BYTES,
        "runs_recorded_while_1992_wait": AT_ONCE,
    }
    missed = [name for name, goal in goals.items() if figures[name] > goal]
    if wanted.json:
        print(json.dumps({"figures": figures, "goals": goals, "missed": missed}))
    else:
        for name, value in figures.items():
            print(f"{name:32} {value:10.2f}   goal {goals[name]:>6}   {value / goals[name]:.2f} of it")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
