"""The engine of one machine: a workflow is performed as a run of its own, on checkpoints in the store.

When it must ask, it is let go of: nothing of it stays in memory, and whoever brings the answer goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from retinue.core import (
    Assignment,
    Budget,
    BudgetKind,
    Conflict,
    Emit,
    Halted,
    Json,
    Message,
    MessageId,
    MessageStatus,
    Outcome,
    OutputLine,
    Redactor,
    RetinueError,
    Run,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Saturated,
    Task,
    Unavailable,
    Workflow,
    estimate_tokens,
)
from retinue.definitions import MalformedDefinition, read_team, read_workflow
from retinue.runtime import Changes, PreparedRun, RunParked, Supervisor
from retinue.store import RESULT_STEP, Store, WorkflowRecord
from retinue.workflows.patterns import run_workflow
from retinue.workflows.phase import is_stop
from retinue.workflows.steps import AgentCall, AgentResult, AgentStatus, CheckResult

# MERGED embedded_steps: The `steps` port on the store: each call is a child run or a message, and its outcome a checkpoint.
#
# A run of an agent is recorded together with the step it performs, and the record of its end is the step's
# outcome. So a server may die at any instant: a step has ended, or it has not, or it was under way. Only what
# was under way and may have done half of its work is a matter of opinion, and that opinion is the user's.

T = TypeVar("T")

STORE_RETRY_S = 0.5
SATURATED_S = 0.5
"""At the most, until a full queue is tried again."""
_ENDINGS: Mapping[RunStatus, AgentStatus] = {
    RunStatus.SUCCESS: "success",
    RunStatus.ERROR: "error",
    RunStatus.TIMEOUT: "timeout",
    RunStatus.CANCELED: "canceled",
}


AlsoRecord = Callable[[Run], object]
"""Writes something in the transaction that records a run."""


class Starter(Protocol):
    """Starts child runs of a workflow's run."""

    async def agent(
        self, name: str, prompt: str, parent: RunId, timeout_s: float | None, also: AlsoRecord
    ) -> Run:
        """Start an agent. `also` writes in the transaction that records its run."""
        ...

    async def check(self, name: str, parent: RunId, also: AlsoRecord) -> Run | None:
        """Start one of the project's check commands; None if the project has no command of that name."""
        ...


class AwaitingAnswer(Exception):
    """The workflow cannot go on before the user has answered."""


class EmbeddedSteps:
    """The steps of one run of a workflow."""

    def __init__(
        self, run_id: RunId, store: Store, changes: Changes, starter: Starter, redactor: Redactor, emit: Emit
    ) -> None:
        self._run_id = run_id
        self._store = store
        self._changes = changes
        self._starter = starter
        self._redactor = redactor
        self._emit = emit

    async def agent(self, key: str, call: AgentCall) -> AgentResult:
        prompt = self._redactor.redact(call.prompt)  # what crosses from one phase to the next (P6)

        async def start(also: AlsoRecord) -> Run:
            return await self._starter.agent(call.agent, prompt, self._run_id, call.timeout_s, also)

        def outcome(run: Run) -> AgentResult:
            return _agent_result(run, prompt)

        kept = await self._performed(key, call.agent, call.idempotent, start, outcome)
        return restored(AgentResult, kept)

    async def check(self, key: str, name: str) -> CheckResult:
        """Commands only look at the work, so they may be run again."""
        kept = await self._performed(
            key, name, True, lambda also: self._starter.check(name, self._run_id, also), _check_result
        )
        return restored(CheckResult, kept)

    async def ask(self, key: str, questions: Sequence[str]) -> Sequence[str]:
        kept = self._kept(key)
        if kept is not None:
            return kept
        asked: list[str] | None = self._kept(f"{key}:asked")
        if asked is None:
            asked = await self._store.persist(self._ask, key, questions)
        messages = [self._store.messages.get(MessageId(each)) for each in asked]
        if any(message.status is MessageStatus.PENDING for message in messages):
            raise AwaitingAnswer
        return await self._store.persist(self._take_answers, key, messages)

    def _ask(self, key: str, questions: Sequence[str]) -> list[str]:
        clean = [self._redactor.redact(question) for question in questions]
        asked: list[str] = [self._store.messages.ask(self._run_id, question).id for question in clean]
        self._store.checkpoints.finish(self._run_id, f"{key}:asked", asked)
        return asked

    def _take_answers(self, key: str, messages: Sequence[Message]) -> Sequence[str]:
        answers = [str(message.answer) for message in messages]
        self._store.checkpoints.finish(self._run_id, key, answers)
        for message in messages:
            with suppress(Conflict):  # while another question is open, answers wait to be acknowledged
                self._store.messages.acknowledge(message.id)
        return answers

    async def gather(self, jobs: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> Sequence[T]:
        """A question in one job does not keep the others from finishing; then it is asked for all of them."""
        waiting = enumerate(jobs)
        results: dict[int, T] = {}
        asked: list[AwaitingAnswer] = []

        async def work() -> None:
            for place, job in waiting:
                try:
                    results[place] = await job()
                except AwaitingAnswer as question:
                    asked.append(question)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(work())
        except* RetinueError as raised:
            raise _first(raised) from None
        if asked:
            raise asked[0]
        return [results[place] for place in sorted(results)]

    async def event(self, key: str, kind: str, data: Mapping[str, Json]) -> None:
        """Its data comes from answers, which were redacted when their runs ended."""
        if self._store.checkpoints.get(self._run_id, key) is not None:
            return

        def record() -> None:
            self._store.events.add(self._run_id, kind, data)
            self._store.checkpoints.finish(self._run_id, key, data)

        await self._store.persist(record)
        await self._tell(" ".join(f"{name}={value}" for name, value in data.items()))

    def _kept(self, key: str) -> Any:
        checkpoint = self._store.checkpoints.get(self._run_id, key)
        return None if checkpoint is None else checkpoint.output

    async def _performed(
        self,
        key: str,
        who: str,
        idempotent: bool,
        start: Callable[[AlsoRecord], Awaitable[Run | None]],
        outcome: Callable[[Run], AgentResult] | Callable[[Run], CheckResult],
    ) -> dict[str, Any]:
        """What the step gave: kept, or of a run that ended while nobody looked, or of a new run."""
        checkpoint = self._store.checkpoints.get(self._run_id, key)
        if checkpoint is not None and checkpoint.ended_at is not None:
            return cast("dict[str, Any]", checkpoint.output)
        child = None if checkpoint is None else checkpoint.child
        while True:
            child = child or await self._begin(key, who, start)
            if child is None:
                return await self._finish(key, CheckResult(passed=None))
            run = await self._ended(child)
            if run.status is not RunStatus.INTERRUPTED:
                return await self._finish(key, outcome(run))
            await self._may_run_again(key, who, idempotent, run)
            child = None

    async def _may_run_again(self, key: str, who: str, idempotent: bool, before: Run) -> None:
        """After a server died in the middle of a step (P5, P7)."""
        if idempotent or before.timing.started_at is None:
            await self.event(f"{key}:again:{before.id}", "decision", _again(key, before, "run it again"))
            return
        await self.event(f"{key}:again:{before.id}", "decision", _again(key, before, "ask the user"))
        question = (
            f"{key.split(':')[0]}: the server stopped while {who} was at work, and what it did may be half "
            "done. Answer `stop` to end the workflow; anything else runs the step again."
        )
        answer = (await self.ask(f"{key}:again:{before.id}:ask", [question]))[0]
        if is_stop(answer):
            raise Halted(f"{key.split(':')[0]} was interrupted, and the user wants no more of it")

    async def _begin(
        self, key: str, who: str, start: Callable[[AlsoRecord], Awaitable[Run | None]]
    ) -> RunId | None:
        """Start the step's run. The run and its place in the workflow are recorded in one transaction."""

        def record(run: Run) -> None:
            self._store.checkpoints.begin(self._run_id, key, run.id)
            self._store.events.add(self._run_id, "step", {"step": key, "by": who, "run": run.id})

        while True:
            try:
                run = await start(record)
            except Saturated:
                await self._next_change()
                continue
            except Unavailable:
                await asyncio.sleep(STORE_RETRY_S)
                continue
            if run is None:
                return None
            await self._tell(f"step={key} by={who} run={run.id}")
            return run.id

    async def _ended(self, child: RunId) -> Run:
        """Wait for a run of this process; what it asks meanwhile is told to whoever watches the workflow."""
        with self._changes.watch({child}, poll_s=None) as watch:
            waited = False
            while not (status := self._store.queue.scheduling_state(child).status).ended:
                if status is RunStatus.WAITING and not waited:
                    self._store.post(self._store.events.add, self._run_id, "child_asks", {"run": child})
                waited = status is RunStatus.WAITING
                await watch.next()
        return self._store.runs.get(child)

    async def _finish(self, key: str, result: AgentResult | CheckResult) -> dict[str, Any]:
        kept = asdict(result)
        await self._store.persist(self._store.checkpoints.finish, self._run_id, key, kept)
        return kept

    async def _next_change(self) -> None:
        with self._changes.watch() as watch, suppress(TimeoutError):
            async with asyncio.timeout(SATURATED_S):
                await watch.next()

    async def _tell(self, line: str) -> None:
        await self._emit(OutputLine("stdout", line))


def restored(kind: type[T], kept: Mapping[str, Any]) -> T:
    """A result from its checkpoint, which another version may have written.

    Unknown fields are dropped, and fields that were added since then take their defaults.
    """
    known = {each.name for each in fields(cast("Any", kind))}
    return kind(**{name: value for name, value in kept.items() if name in known})


def _again(key: str, before: Run, then: str) -> dict[str, Json]:
    return {"step": key, "decision": "interrupted", "run": before.id, "then": then}


def _agent_result(run: Run, prompt: str) -> AgentResult:
    succeeded = run.status is RunStatus.SUCCESS
    result, error = cast("tuple[Any, Any]", (run.result, run.error))
    output = str(result["output"]) if succeeded else run.summary or ""
    counted = run.usage.get(BudgetKind.TOKENS)
    return AgentResult(
        status=_ENDINGS[run.status],
        output=output,
        reason="" if succeeded else str(error["message"]),
        tokens=counted or estimate_tokens(prompt) + estimate_tokens(output),
        metered=bool(counted),
        run=run.id,
    )


def _check_result(run: Run) -> CheckResult:
    succeeded = run.status is RunStatus.SUCCESS
    result, error = cast("tuple[Any, Any]", (run.result, run.error))
    output = str(result["output"]) if succeeded else run.summary or str(error["message"])
    return CheckResult(passed=succeeded, output=output, command=run.spec.task)


def _first(group: BaseExceptionGroup[RetinueError]) -> RetinueError:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


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
            for run_id in self._store.runs.list_adoptable()
            if self._store.workflows.get(run_id).cwd == str(self._cwd) and await self.resume(run_id)
        ]

    def _work(self, spec: RunSpec) -> PreparedRun:
        return PreparedRun(spec, self._executor, self._cwd)


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
                    raise RunParked from None
                continue  # the answer came while others were still at work
            except RetinueError as error:
                await self._end_children(run_id)
                result = {"workflow": workflow.name, "decision": "STOP", "reason": error.message}
                return await self._outcome(run_id, result, error, ctx.emit)
            error = Halted(_told(result)) if result["decision"] == "STOP" else None
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
        raise Halted(f"its text cannot be read any more: {error.problem}", hint="run it again") from None


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
            raise Halted("the record of the workflow is of another version")
