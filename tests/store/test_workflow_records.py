"""Records of workflow runs, and the checkpoints of their steps (P5)."""

from __future__ import annotations

import pytest

from retinue.core import Conflict, RunUnknown
from retinue.store import WorkflowRecord
from tests.store.store_support import Bench
from tests.store.test_runs_parking import RESUMABLE


def test_finished_step_never_changes(bench: Bench) -> None:
    run = bench.queued(RESUMABLE)
    child = bench.queued(bench.child_of(run.id))
    steps = bench.store.checkpoints
    steps.begin(run.id, "a", child.id)
    steps.begin(run.id, "a", child.id)  # tried again
    steps.finish(run.id, "a", {"x": 1})
    with pytest.raises(Conflict, match="stays so"):
        steps.finish(run.id, "a", {"x": 2})
    with pytest.raises(Conflict, match="stays so"):
        steps.begin(run.id, "a", child.id)
    kept = steps.get(run.id, "a")
    assert kept is not None
    assert (kept.output, kept.child) == ({"x": 1}, child.id)
    assert steps.get(run.id, "b") is None
    assert [each.step for each in steps.of_run(run.id)] == ["a"]


def test_workflow_is_stored_as_it_was_started(bench: Bench) -> None:
    run = bench.queued(RESUMABLE)
    record = WorkflowRecord(
        kind="workflow", text="steps: [\ud800]", source="x", assignment={"feature": "f"}, cwd="/p"
    )
    bench.store.workflows.record(run.id, record)
    assert bench.store.workflows.get(run.id).assignment == {"feature": "f"}
    assert bench.store.workflows.newest(5) == [run.id]
    with pytest.raises(RunUnknown, match="not a workflow"):
        bench.store.workflows.get(bench.queued().id)
