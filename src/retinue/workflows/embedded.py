"""Runs workflows in this process. A workflow is a run, and each of its steps is a child run or a message.

The server may die at any time: `run_workflow` starts again from the beginning, and finished steps return
their checkpoints (`embedded_steps.py`). A workflow that waits for an answer is parked. Nothing of it stays
in memory, and any process that receives the answer resumes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from retinue.core import (
    Assignment,
    Budget,
    Chain,
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
from retinue.runtime import Changes, PreparedRun, RunParked, Supervisor
from retinue.store import RESULT_STEP, Store, WorkflowRecord
from retinue.workflows.acceptance import judged_by_agent
from retinue.workflows.embedded_steps import (
    VALIDATOR,
    AwaitingAnswer,
    ChildStarter,
    EmbeddedSteps,
    branch_in,
    result_facts,
)
from retinue.workflows.patterns import run_workflow

NO_CHECKS_ISSUE = (
    f"the project has no check commands, so the agent {VALIDATOR} judged the work; name one with "
    "`retinue workflow checks --set tests='pytest -q'`"
)


MAX_LINE_CHARACTERS = 1_000


class EmbeddedEngine:
    """Starts workflows, and resumes those that no process performs."""

    def __init__(
        self,
        store: Store,
        changes: Changes,
        supervisor: Supervisor,
        starter: ChildStarter,
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
            self._prepare(spec), lambda run: self._store.workflows.record(run.id, record)
        )

    async def resume(self, run_id: RunId) -> bool:
        """Resume a parked run. False if a process performs it, or if it waits for an answer or has ended."""
        if self._store.workflows.get(run_id).cwd != str(self._cwd):
            raise Conflict(
                f"workflow {run_id} belongs to another folder",
                hint="start Retinue with the root that the workflow was started with",
            )
        return await self._supervisor.resume(run_id, self._prepare(self._store.runs.get(run_id).spec))

    async def resume_all(self) -> list[RunId]:
        """Resume every parked workflow of this folder that can continue."""
        return [
            run_id
            for run_id in self._store.runs.list_adoptable()
            if self._store.workflows.get(run_id).cwd == str(self._cwd) and await self.resume(run_id)
        ]

    def _prepare(self, spec: RunSpec) -> PreparedRun:
        return PreparedRun(spec, self._executor, self._cwd)


class WorkflowExecutor:
    """The executor of workflow runs: performs the workflow that was recorded with the run."""

    def __init__(self, store: Store, changes: Changes, starter: ChildStarter, redactor: Redactor) -> None:
        self._store = store
        self._changes = changes
        self._starter = starter
        self._redactor = redactor

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        run_id = RunId.parse(ctx.run_id)
        record = self._store.workflows.get(run_id)
        workflow = _restore_workflow(record, task.agent)
        assignment = _restore_assignment(record)
        steps = EmbeddedSteps(run_id, self._store, self._changes, self._starter, self._redactor, ctx.emit)
        while True:
            try:
                has_checks = await steps.confirm_checks(workflow)
                body = workflow.body if has_checks else judged_by_agent(workflow.body, VALIDATOR)
                performed = replace(workflow, body=cast("Chain", body))
                result = await run_workflow(steps, performed, assignment)
            except AwaitingAnswer:
                if await self._store.persist(self._store.runs.park, run_id):
                    raise RunParked from None
                continue  # the answer arrived while parallel steps were still running
            except RetinueError as error:
                await self._end_children(run_id)
                result = {"workflow": workflow.name, "decision": "STOP", "reason": error.message}
                return await self._outcome(run_id, result, error, ctx.emit)
            if not has_checks:
                result["issues"].insert(0, NO_CHECKS_ISSUE)
            if branch := result.pop("branch", None):
                result["patch"] = self._patch(run_id, branch)
            stopped = result["decision"] == "STOP"
            error = WorkflowStopped(f"{result['last_step']}: {result['reason']}") if stopped else None
            return await self._outcome(run_id, result, error, ctx.emit)

    def _patch(self, run_id: RunId, branch: str) -> dict[str, Any]:
        """The work of a workflow: its branch, and what the run that made it reported of it."""
        reported = map(result_facts, self._store.runs.list(parent=run_id, limit=-1))
        bare: Mapping[str, Any] = {"branch": branch, "apply": f"git merge --squash {branch}"}
        facts = next((each for each in reported if branch_in(each) == branch), bare)
        names = ("branch", "files_changed", "diff", "diff_cut", "apply", "uncommitted")
        shown = {name: facts[name] for name in names if name in facts}
        if "branch" not in facts and "diff_cut" not in facts:  # the folder is in no repository
            shown["apply"] = f"retinue patch {run_id} | git apply"  # of this run, which the user knows
        return shown

    async def _outcome(
        self, run_id: RunId, result: dict[str, Any], error: RetinueError | None, emit: Emit
    ) -> Outcome:
        """Store the complete result and log it, so that callers can read what a short answer leaves out."""
        clean = self._redactor.redact_value(result)
        if self._store.checkpoints.result(run_id) is None:
            await self._store.persist(self._store.checkpoints.finish, run_id, RESULT_STEP, clean)
        for line in _log_lines("result", clean):
            await emit(OutputLine("stdout", line))
        return Outcome(json.dumps(clean, ensure_ascii=False), error=error)

    async def _end_children(self, run_id: RunId) -> None:
        """Cancel the active child runs and wait until they have ended."""
        active = {
            child.id for child in self._store.runs.list(parent=run_id, limit=-1) if not child.status.ended
        }
        for child in active:
            await self._store.persist(self._store.runs.request_cancel, child)
        await self._changes.until(
            lambda: all(self._store.runs.get(child).status.ended for child in active) or None, active
        )


def _log_lines(name: str, value: Any) -> Iterator[str]:
    """Split a JSON value into short lines, so that the log can be read page by page."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_LINE_CHARACTERS or not isinstance(value, dict | list):
        yield f"{name}: {text}"
        return
    parts = (
        cast("dict[str, Any]", value).items()
        if isinstance(value, dict)
        else enumerate(cast("list[Any]", value))
    )
    for key, part in parts:
        yield from _log_lines(f"{name}.{key}", part)


def _restore_workflow(record: WorkflowRecord, name: str) -> Workflow:
    """Parse the workflow as it was recorded. A newer version of Retinue may not support its text."""
    try:
        return (read_team if record.kind == "team" else read_workflow)(record.text, name, record.source)
    except MalformedDefinition as error:
        raise WorkflowStopped(
            f"this version of Retinue cannot read the recorded workflow: {error.problem}",
            hint="start the workflow again",
        ) from None


def _restore_assignment(record: WorkflowRecord) -> Assignment:
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
            raise WorkflowStopped("the workflow was recorded by another version of Retinue")
