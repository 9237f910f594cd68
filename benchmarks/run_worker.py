"""A server process for load: `run_worker.py load|ask FOLDER ...`. Started by `runs.py` and by the tests.

`load` performs trivial runs and notes each beginning and end in a file of its own making, so that the
cap can be judged without believing the database. `ask` asks questions and prints how long answers took.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from retinue.core import Ending, Run, RunId, RunSpec, RunStatus
from retinue.runtime import Changes, Pool, QuestionBroker
from retinue.store import Capacity, Owner, Store

SPEC = RunSpec(agent="load", task="nothing", executor="scripted")
DONE = Ending(status=RunStatus.SUCCESS, result={"ok": True})


async def record(store: Store, pool: Pool, spec: RunSpec) -> Run:
    """Record a run as the supervisor does."""
    run, _, admitted = await store.write(store.runs.record_and_admit, spec, pool.claim, lambda _: None)
    pool.start(admitted)
    return run


async def finish(store: Store, pool: Pool, run_id: RunId) -> None:
    """End a run as the supervisor does."""
    _, admitted = await store.persist(store.runs.finish_and_admit, run_id, DONE, pool.claim, lambda: None)
    pool.start(admitted)
    pool.mark_ended(run_id)


async def load(folder: Path, cap: int, runs: int, at_once: int) -> None:
    """So many runs, so many of them submitted and not yet ended at any time."""
    witness = os.open(folder / "witness.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    left = iter(range(runs))
    with Store.open(folder) as store:
        owner = Owner.register(store.folder)

        async def perform(pool: Pool) -> None:
            for _ in left:
                run = await record(store, pool, SPEC)
                async with pool.slot(run.id):
                    os.write(witness, f"+ {run.id}\n".encode())
                    await asyncio.sleep(0)
                    os.write(witness, f"- {run.id}\n".encode())
                    await finish(store, pool, run.id)

        print("ready", flush=True)
        sys.stdin.readline()
        async with (
            Changes(store) as changes,
            Pool(store, changes, owner.id, Capacity(cap, 100_000)) as pool,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(at_once):
                group.create_task(perform(pool))
        owner.close()
    os.close(witness)


async def ask(folder: Path, run_id: str, questions: int) -> None:
    """The child's side of a conversation: one question after the other."""
    run = RunId.parse(run_id)
    seconds: list[float] = []
    with Store.open(folder) as store:
        async with Changes(store) as changes:
            broker = QuestionBroker(store, changes)
            for number in range(questions):
                started = time.perf_counter()
                message = await broker.ask(run, f"question {number}?", wait_s=30)
                assert message.answer == f"answer to {message.id}"
                seconds.append(time.perf_counter() - started)
    print(json.dumps(seconds))


def main() -> None:
    mode, folder, *rest = sys.argv[1:]
    if mode == "load":
        cap, runs, at_once = map(int, rest)
        asyncio.run(load(Path(folder), cap, runs, at_once))
    else:
        asyncio.run(ask(Path(folder), rest[0], int(rest[1])))


if __name__ == "__main__":
    main()
