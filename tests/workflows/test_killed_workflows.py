"""Kill the server with -9 between and inside steps: no finished step runs twice, none is lost (P5)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retinue.core import RunStatus
from retinue.store import RESULT_STEP, Store
from tests.workflows.crashing_workflow import STEPS, Noting, recovered
from tests.workflows.workflow_bench import bench

SERVER = "tests.workflows.crashing_workflow"
PROJECT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills of POSIX")


def killed_server(folder: Path, instant: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", SERVER, str(folder)], stdout=subprocess.PIPE, text=True, cwd=PROJECT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    patience = time.monotonic() + 20
    while not (folder / "begun.jsonl").exists():  # on a busy machine the first step may begin late
        assert time.monotonic() < patience
        time.sleep(0.001)
    end = time.monotonic() + instant
    while time.monotonic() < end:
        pass
    assert process.poll() is None
    process.kill()
    process.wait(5)
    process.stdout.close()


async def finish(folder: Path) -> None:
    """Run a server that is not killed: everything that was started must end."""
    async with bench(folder / "data", {"a": Noting(folder / "begun.jsonl")}) as at:
        await recovered(at)
        for run_id in await at.engine.resume_all():
            assert (await at.result(run_id))["decision"] == "PROCEED"


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_no_finished_step_runs_twice_and_none_is_lost(tmp_path: Path, times: int) -> None:
    chance = random.Random(times)  # noqa: S311 - the same instants each time
    for _ in range(times):
        killed_server(tmp_path, 0.2 * chance.random())
    asyncio.run(finish(tmp_path))

    begun = Counter(json.loads(line)["run"] for line in (tmp_path / "begun.jsonl").read_text().splitlines())
    assert max(begun.values()) == 1
    with Store.open(tmp_path / "data") as store:
        workflows = store.workflows.newest(10_000)
        assert workflows
        interrupted = 0
        for run_id in workflows:
            assert store.runs.get(run_id).status is RunStatus.SUCCESS
            kept = store.checkpoints.get(run_id, RESULT_STEP)
            output: Any = None if kept is None else kept.output
            assert len(output["savings"]["phases"]) == STEPS
            children = store.runs.list(parent=run_id, limit=-1)
            finished = Counter(
                json.loads(child.spec.task.split("```json\n")[1].split("\n```")[0])["task_id"]
                for child in children
                if child.status is RunStatus.SUCCESS
            )
            assert set(finished.values()) == {1}
            assert len(finished) == STEPS
            others = [child for child in children if child.status is not RunStatus.SUCCESS]
            assert {child.status for child in others} <= {RunStatus.INTERRUPTED}
            interrupted += len(others)
        # Every step that began has a run, and that run has ended.
        assert set(begun) <= {str(run.id) for run in store.runs.list(limit=-1)}
        assert interrupted or times < 100, "no kill hit a step"
        print(f"{times} kills, {len(workflows)} workflows, {interrupted} steps interrupted")
