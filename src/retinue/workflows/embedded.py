"""The engine of one machine: a workflow is performed as a run of its own, on checkpoints in the store.

When it must ask, it is let go of: nothing of it stays in memory, and whoever brings the answer goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from retinue.core import (
    Assignment,
    Budget,
    Conflict,
    Emit,
    Outcome,
    OutputLine,
    Redactor,
    RetinueError,
    Run,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    Task,
    Workflow,
    WorkflowStopped,
)
from retinue.definitions import MalformedDefinition, read_team, read_workflow
from retinue.runtime import Changes, Parked, Supervisor, Work
from retinue.store import RESULT_STEP, Store, WorkflowRecord
from retinue.workflows.embedded_steps import AwaitingAnswer, EmbeddedSteps, Starter
from retinue.workflows.perform import run_workflow

LONGEST_LINE = 1_000


class Embedded:
    """Starts workflows, and goes on with those that nobody performs."""

    def __init__(
        self,
        store: Store,
        changes: Changes,
        supervisor: Supervisor,
        starter: Starter,
        redactor: Redactor,
        cwd: Path,
    ) -> None:
        self._store = store
        self._supervisor = supervisor
        self._executor = WorkflowExecutor(store, changes, starter, redactor)
        self._cwd = cwd

    async def submit(self, workflow: Workflow, assignment: Assignment, caller: str, budget: Budget) -> Run:
        """Record the run and the workflow's text in one transaction, and start the run."""
        spec = RunSpec(
            agent=workflow.name,
            task=assignment.feature,
            executor="workflow",
            caller=caller,
            limits=RunLimits(budget=budget),
            needs_slot=False,
            resumable=True,
        )
        record = WorkflowRecord(
            kind=workflow.kind,
            text=workflow.text,
            source=workflow.source,
            assignment={
                "feature": assignment.feature,
                "spec_path": assignment.spec_path,
                "relevant_files": assignment.relevant_files,
                "constraints": assignment.constraints,
            },
            cwd=str(self._cwd),
        )
        return await self._supervisor.start(
            self._work(spec), lambda run: self._store.workflows.record(run.id, record)
        )

    async def resume(self, run_id: RunId) -> bool:
        """Go on with a run that nobody performs; False if somebody does, or it waits, or it has ended."""
        if self._store.workflows.get(run_id).cwd != str(self._cwd):
            raise Conflict(
                f"workflow {run_id} belongs to another folder",
                hint="start retinue with the root that it was started with",
            )
        return await self._supervisor.resume(run_id, self._work(self._store.runs.get(run_id).spec))

    async def resume_all(self) -> list[RunId]:
        """Resume every workflow of this folder that nobody performs and that can go on."""
        return [
            run_id
            for run_id in self._store.runs.adoptable()
            if self._store.workflows.get(run_id).cwd == str(self._cwd) and await self.resume(run_id)
        ]

    def _work(self, spec: RunSpec) -> Work:
        return Work(spec, self._executor, self._cwd)


class WorkflowExecutor:
    """Performs the workflow that was recorded with the run."""

    def __init__(self, store: Store, changes: Changes, starter: Starter, redactor: Redactor) -> None:
        self._store = store
        self._changes = changes
        self._starter = starter
        self._redactor = redactor

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        run_id = RunId.parse(ctx.run_id)
        record = self._store.workflows.get(run_id)
        workflow = workflow_of(record, task.agent)
        assignment = assignment_of(record)
        steps = EmbeddedSteps(run_id, self._store, self._changes, self._starter, self._redactor, ctx.emit)
        while True:
            try:
                result = await run_workflow(steps, workflow, assignment)
            except AwaitingAnswer:
                if await self._store.persist(self._store.runs.park, run_id):
                    raise Parked from None
                continue  # the answer came while others were still at work
            except RetinueError as error:
                await self._end_children(run_id)
                result = {"workflow": workflow.name, "decision": "STOP", "reason": error.message}
                return await self._outcome(run_id, result, error, ctx.emit)
            error = WorkflowStopped(_told(result)) if result["decision"] == "STOP" else None
            return await self._outcome(run_id, result, error, ctx.emit)

    async def _outcome(
        self, run_id: RunId, result: dict[str, Any], error: RetinueError | None, emit: Emit
    ) -> Outcome:
        """Kept whole, and in the log too: what an answer cuts can be read there."""
        clean = self._redactor.redact_value(result)
        if self._store.checkpoints.get(run_id, RESULT_STEP) is None:
            await self._store.persist(self._store.checkpoints.finish, run_id, RESULT_STEP, clean)
        for line in _lines("result", clean):
            await emit(OutputLine("stdout", line))
        return Outcome(json.dumps(clean, ensure_ascii=False), error=error)

    async def _end_children(self, run_id: RunId) -> None:
        active = {
            child.id for child in self._store.runs.list(parent=run_id, limit=-1) if not child.status.ended
        }
        for child in active:
            await self._store.persist(self._store.runs.request_cancel, child)
        await self._changes.until(
            lambda: all(self._store.runs.get(child).status.ended for child in active) or None, active
        )


def _lines(name: str, value: Any) -> Iterator[str]:
    """A value in lines of a length that can be read page by page."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_LINE or not isinstance(value, dict | list):
        yield f"{name}: {text}"
        return
    parts = (
        cast("dict[str, Any]", value).items()
        if isinstance(value, dict)
        else enumerate(cast("list[Any]", value))
    )
    for key, part in parts:
        yield from _lines(f"{name}.{key}", part)


def _told(result: dict[str, Any]) -> str:
    return f"{result['last_step']}: {result['reason']}"


def workflow_of(record: WorkflowRecord, name: str) -> Workflow:
    """As it was when it began; a later version of ours may read fewer things than it was written for."""
    try:
        return (read_team if record.kind == "team" else read_workflow)(record.text, name, record.source)
    except MalformedDefinition as error:
        raise WorkflowStopped(
            f"its text cannot be read any more: {error.problem}", hint="run it again"
        ) from None


def assignment_of(record: WorkflowRecord) -> Assignment:
    match record.assignment:
        case {
            "feature": str(feature),
            "spec_path": str() | None as spec_path,
            "relevant_files": [*files],
            "constraints": [*constraints],
        }:
            return Assignment(
                feature=feature,
                spec_path=spec_path,
                relevant_files=tuple(map(str, files)),
                constraints=tuple(map(str, constraints)),
            )
        case _:
            raise WorkflowStopped("the record of the workflow is of another version")
