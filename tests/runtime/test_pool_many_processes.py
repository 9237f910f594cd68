"""Many processes on one data folder: each run is performed once, within the cap (P2, P5)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from retinue.core import RunStatus
from retinue.store import Store

WORKER = Path(__file__).parents[2] / "benchmarks" / "run_worker.py"
CAP = 4

HIGH_WATER = (
    "CREATE TABLE high_water (most INTEGER NOT NULL)",
    "INSERT INTO high_water VALUES (0)",
    "CREATE TRIGGER watch_slots AFTER UPDATE OF slot ON runs WHEN NEW.slot = 1 BEGIN"
    " UPDATE high_water SET most = max(most, (SELECT count(*) FROM runs WHERE slot = 1)); END",
)


def most_at_work(witness: Path) -> tuple[int, Counter[str]]:
    """From the workers' log: the maximum number of concurrent runs, and how often each run was performed."""
    now = most = 0
    performed = Counter[str]()
    for line in witness.read_text().splitlines():
        sign, run_id = line.split()
        now += 1 if sign == "+" else -1
        most = max(most, now)
        performed[run_id] += sign == "+"
    assert now == 0
    return most, performed


def many_processes(folder: Path, processes: int, runs: int) -> list[float]:
    """Run the workers and return the sorted seconds from enqueue to start."""
    with Store.open(folder) as store:
        with store.database.write() as tx:
            for statement in HIGH_WATER:
                tx.execute(statement)
        command = [sys.executable, WORKER, "load", folder, str(CAP), str(runs), "8"]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for worker in workers:
            assert worker.stdout and worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            worker.communicate(timeout=500)
        assert [worker.returncode for worker in workers] == [0] * processes

        recorded = store.runs.list(limit=-1)
        assert len(recorded) == processes * runs
        assert {run.status for run in recorded} == {RunStatus.SUCCESS}
        most, performed = most_at_work(folder / "witness.txt")
        assert performed == Counter({str(run.id): 1 for run in recorded})
        assert 2 <= most <= CAP
        assert store.database.rows("SELECT most FROM high_water")[0][0] <= CAP
        assert len({run.owner for run in recorded}) == processes
        return sorted(
            run.timing.started_at - run.timing.enqueued_at for run in recorded if run.timing.started_at
        )


def test_four_processes_perform_each_run_once_within_the_cap(tmp_path: Path) -> None:
    assert len(many_processes(tmp_path, processes=4, runs=25)) == 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_eight_processes_perform_4000_runs_once_each_within_the_cap(tmp_path: Path) -> None:
    waits = many_processes(tmp_path, processes=8, runs=500)
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(f"enqueue to start: p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms")
