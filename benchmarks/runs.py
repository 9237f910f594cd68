"""What a run costs beyond its work: `python benchmarks/runs.py [--json] [--quick]`.

- overhead: record, queue, start and end trivial runs, 64 of them submitted at any time, against plain
  asyncio and SQLite doing the same writes (the view in a file included) in the same process, round by
  round in turn. Goal: at most twice.
- conversation: from a question in one process to its answer from another. Goal: 30 ms at the median.
- load: eight processes, 500 runs each, one data folder, four slots: from enqueue to start.

Every figure is the median of its rounds unless it says otherwise. Ends non-zero when a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.run_worker import DONE, SPEC, finish, record
from retinue.core import Endpoint, RunId, RunLimits, RunSpec
from retinue.runtime import Changes, Pool
from retinue.store import Capacity, Owner, Store

WORKER = Path(__file__).with_name("run_worker.py")
SLOTS = 4
AT_ONCE = 64
MOST_OVERHEAD = 2.0
MOST_ANSWER_MS = 30.0
FULL_SPEC = replace(
    SPEC, model="qwen", tools=("Read", "Grep"), limits=RunLimits(60, 60), endpoint=Endpoint("local", SLOTS)
)
Figures = dict[str, float]


def plain_tables(folder: Path) -> sqlite3.Connection:
    """What somebody would write in an afternoon: no guards, no queue, no rules, one process."""
    db = sqlite3.connect(folder / "plain.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, parent, request, agent, caller, task, executor, command,"
        " model, tools, limits, endpoint, owner, host, status, enqueued_at, started_at, ended_at,"
        " deadline_at, usage, result, error, summary, exit_code)"
    )
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, run_id, at, kind, data)")
    db.execute("CREATE INDEX events_of_run ON events (run_id)")
    return db


async def plain_run(db: sqlite3.Connection, slots: asyncio.Semaphore, folder: Path, spec: RunSpec) -> None:
    run_id = RunId.new()

    def status(name: str, sql: str, *values: object) -> None:
        db.execute("BEGIN IMMEDIATE")
        db.execute(sql, values)
        event = json.dumps({"status": name})
        db.execute(
            "INSERT INTO events (run_id, at, kind, data) VALUES (?, ?, 'status', ?)",
            (run_id, time.time(), event),
        )
        db.execute("COMMIT")

    status(
        "queued",
        "INSERT INTO runs (id, request, agent, caller, task, executor, model, tools, limits, endpoint,"
        " owner, host, status, enqueued_at, deadline_at, usage) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        *(run_id, run_id, spec.agent, spec.caller, spec.task, spec.executor, spec.model),
        *(json.dumps(spec.tools), json.dumps({"run_s": spec.limits.run_s}), "local"),
        *("owner", "host", "queued", time.time(), time.time() + 60, "{}"),
    )
    async with slots, asyncio.timeout(spec.limits.run_s):
        status(
            "running", "UPDATE runs SET status = 'running', started_at = ? WHERE id = ?", time.time(), run_id
        )
        await asyncio.sleep(0)
        status(
            "success",
            "UPDATE runs SET status = 'success', ended_at = ?, result = ?"
            " WHERE id = ? AND status = 'running'",
            *(time.time(), json.dumps(DONE.result), run_id),
        )
    view: dict[str, object] = {"id": run_id, "agentName": spec.agent, "status": "success", "messages": []}
    draft = folder / f"{run_id}.tmp"
    draft.write_text(json.dumps(view))
    draft.replace(folder / f"{run_id}.meta.json")


async def plain(folder: Path, runs: int) -> float:
    db = plain_tables(folder)
    slots = asyncio.Semaphore(SLOTS)
    left = iter(range(runs))

    async def work() -> None:
        for _ in left:
            await plain_run(db, slots, folder, FULL_SPEC)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    took = time.perf_counter() - started
    db.close()
    return took


async def ours(folder: Path, runs: int) -> float:
    store = Store.open(folder)
    owner = Owner.register(store.folder)

    left = iter(range(runs))

    async def work(pool: Pool) -> None:
        for _ in left:
            run = await record(store, pool, FULL_SPEC)
            async with pool.slot(run.id):
                await asyncio.sleep(0)
                await finish(store, pool, run.id)

    started = time.perf_counter()
    async with (
        Changes(store) as changes,
        Pool(store, changes, owner.id, Capacity(SLOTS, AT_ONCE)) as pool,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(AT_ONCE):
            group.create_task(work(pool))
    store.meta_files.close()  # returns when all are written
    took = time.perf_counter() - started
    owner.close()
    store.close()
    return took


def measure(run: Callable[[Path, int], Awaitable[float]], runs: int) -> tuple[float, float]:
    """Seconds by the clock and seconds of processor, for each run."""

    async def timed(folder: Path) -> tuple[float, float]:
        before = time.process_time()
        took = await run(folder, runs)
        return took / runs, (time.process_time() - before) / runs

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(timed(Path(folder)))


def overhead(rounds: int, runs: int) -> Figures:
    pairs = [(measure(plain, runs), measure(ours, runs)) for _ in range(rounds)]

    def median(pick: Callable[[tuple[tuple[float, float], tuple[float, float]]], float]) -> float:
        return statistics.median(pick(pair) for pair in pairs)

    return {
        "plain us/run": median(lambda pair: pair[0][0]) * 1e6,
        "ours us/run": median(lambda pair: pair[1][0]) * 1e6,
        "times plain, by the clock": median(lambda pair: pair[1][0] / pair[0][0]),
        "plain processor us/run": median(lambda pair: pair[0][1]) * 1e6,
        "ours processor us/run": median(lambda pair: pair[1][1]) * 1e6,
        "times plain, by the processor": median(lambda pair: pair[1][1] / pair[0][1]),
    }


async def answer_all(folder: Path, questions: int) -> list[float]:
    """The parent's side, which performs the run as well; the child is a process of its own."""
    with Store.open(folder) as store:
        owner = Owner.register(store.folder)
        async with Changes(store) as changes, Pool(store, changes, owner.id, Capacity(1, 1)) as pool:
            run = await record(store, pool, SPEC)
            async with pool.slot(run.id):
                child = await asyncio.create_subprocess_exec(
                    *(sys.executable, str(WORKER), "ask", str(folder), run.id, str(questions)),
                    stdout=asyncio.subprocess.PIPE,
                )
                for _ in range(questions):
                    pending = await changes.until(
                        lambda: store.messages.pending(run.id) or None, {run.id}, 30
                    )
                    assert pending, "the child does not ask"
                    await store.write(store.messages.reply, pending[0].id, f"answer to {pending[0].id}")
                output, _ = await child.communicate()
                await finish(store, pool, run.id)
        owner.close()
    return json.loads(output)


def conversation(questions: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        seconds = sorted(asyncio.run(answer_all(Path(folder), questions)))
    return {"p50 ms": middle(seconds) * 1e3, "p99 ms": nearly_all(seconds) * 1e3, "questions": questions}


def load(processes: int, runs: int) -> Figures:
    with tempfile.TemporaryDirectory() as name, Store.open(Path(name)) as store:
        command = [sys.executable, WORKER, "load", name, str(SLOTS), str(runs), "8"]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for worker in workers:
            assert worker.stdout
            worker.stdout.readline()
        started = time.perf_counter()
        for worker in workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            worker.communicate()
            assert worker.returncode == 0
        took = time.perf_counter() - started
        ended = store.runs.list(limit=-1)
    waits = sorted(run.timing.started_at - run.timing.enqueued_at for run in ended if run.timing.started_at)
    assert len(waits) == processes * runs
    return {
        "processes": processes,
        "runs": len(waits),
        "runs/s": len(waits) / took,
        "enqueue to start p50 ms": middle(waits) * 1e3,
        "enqueue to start p99 ms": nearly_all(waits) * 1e3,
    }


def middle(ordered: list[float]) -> float:
    return ordered[len(ordered) // 2]


def nearly_all(ordered: list[float]) -> float:
    return ordered[len(ordered) * 99 // 100]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    given = parser.parse_args()
    share = 10 if given.quick else 1
    figures = {
        "overhead": overhead(rounds=max(5, 15 // share), runs=max(500, 1000 // share)),
        "conversation": conversation(questions=500 // share),
        "load": load(processes=8, runs=500 // share),
    }
    if given.json:
        print(json.dumps(figures, indent=2))
    else:
        for part, lines in figures.items():
            print(part)
            for name, value in lines.items():
                print(f"  {name:<32}{value:>12,.1f}")
    missed = [
        f"overhead {times:.2f} times plain, at most {MOST_OVERHEAD}"
        for times in [figures["overhead"]["times plain, by the clock"]]
        if times > MOST_OVERHEAD
    ] + [
        f"answer after {p50:.1f} ms, at most {MOST_ANSWER_MS}"
        for p50 in [figures["conversation"]["p50 ms"]]
        if p50 > MOST_ANSWER_MS
    ]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
