"""A thousand parallel steps, eight at once: waiting steps cost nothing (P2)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from retinue.core import Outcome, RunStatus
from tests.workflows.workflow_bench import PATIENCE_S, Scripted, bench, proceed

pytestmark = pytest.mark.anyio

AT_ONCE = 8


@pytest.mark.parametrize(
    "steps", [100, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(180)])]
)
async def test_waiting_parallel_steps_are_not_recorded(tmp_path: Path, steps: int) -> None:
    """A step that waits has neither a run nor a task."""
    at_work, most = 0, 0
    full, release = asyncio.Event(), asyncio.Event()

    async def work(prompt: str, number: int) -> str | dict[str, object] | Outcome:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if at_work == AT_ONCE:
            full.set()
        await release.wait()
        at_work -= 1
        return proceed("done")

    text = f"steps:\n  - at_once: {AT_ONCE}\n    parallel:\n" + "      - {agent: a}\n" * steps
    async with bench(tmp_path, {"a": Scripted(work)}, slots=2 * AT_ONCE, queued=0) as at:
        tasks_before = len(asyncio.all_tasks())
        run_id = await at.start(text)
        await asyncio.wait_for(full.wait(), PATIENCE_S)
        assert len(at.store.runs.list(parent=run_id, limit=-1)) == AT_ONCE
        assert len(asyncio.all_tasks()) - tasks_before <= 3 * AT_ONCE
        release.set()
        await at.until(lambda: at.store.runs.get(run_id).status.ended, patience_s=150)
        assert at.store.runs.get(run_id).status is RunStatus.SUCCESS
        assert len(at.store.runs.list(parent=run_id, limit=-1)) == steps
    assert most == AT_ONCE


async def test_slots_limit_parallel_steps(tmp_path: Path) -> None:
    at_work, most = 0, 0

    async def work(prompt: str, number: int) -> dict[str, object]:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        at_work -= 1
        return proceed("done")

    text = "steps:\n  - parallel:\n" + "      - {agent: a}\n" * 30
    async with bench(tmp_path, {"a": Scripted(work)}, slots=2) as at:
        assert (await at.result(await at.start(text)))["decision"] == "PROCEED"
    assert most <= 2
