"""A server that tests kill: it resumes the workflow it finds, or starts one, and prints when it has ended."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from retinue.core import ACTIVE_STATUSES, Outcome, RunContext, RunStatus, Task
from retinue.store import recover_dead_owners
from tests.workflows.workflow_bench import REDACTOR, Bench, Scripted, bench, handoff_in, proceed

WORKFLOW = """
steps:
  - {id: one, agent: a, finding: {way: [left, right]}}
  - branch: way
    cases:
      left:
        - {id: two, agent: a}
        - id: wide
          at_once: 3
          parallel:
            - {id: p1, agent: a}
            - {id: p2, agent: a}
            - [{id: p3, agent: a}, {id: p4, agent: a}]
            - {id: p5, agent: a}
      right: [{id: never, agent: a}]
  - {id: write, agent: a, phase: write, idempotent: true}
  - {id: last, agent: a}
"""
STEPS = 9


class Noting(Scripted):
    """Logs every start of an agent, so that a repeated step is noticed."""

    def __init__(self, file: Path) -> None:
        super().__init__("")
        self._file = file

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        request = handoff_in(task.prompt)
        with self._file.open("a") as file:
            file.write(json.dumps({"step": request["task_id"], "run": ctx.run_id}) + "\n")
        await asyncio.sleep(0.004)
        return Outcome(json.dumps(proceed(f"did {request['task_id']}", way="left", files_changed=[])))


async def recovered(at: Bench) -> None:
    """Wait until the previous server counts as dead; its lock may outlive it for a moment."""
    for _ in range(5_000):
        await asyncio.to_thread(recover_dead_owners, at.store, lambda _: None)
        if all(run.owner == "" for run in at.store.runs.list(statuses=ACTIVE_STATUSES, limit=-1)):
            return
        await asyncio.sleep(0.001)
    raise AssertionError("a run outlived its server")


async def main(folder: Path) -> None:
    REDACTOR.redact("its rules are compiled by the first text, which takes longer than the steps here")
    async with bench(folder / "data", {"a": Noting(folder / "begun.jsonl")}) as at:
        await recovered(at)
        run_id = next(iter(await at.engine.resume_all()), None)
        print("up", flush=True)
        while True:
            run_id = run_id or await at.start(WORKFLOW)
            run = await at.settled(run_id)
            assert run.status is RunStatus.SUCCESS, run.error
            run_id = None


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
