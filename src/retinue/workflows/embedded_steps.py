"""The steps of a workflow that runs in this process: child runs and messages, with checkpoints in the store.

The store records a child run together with the step it performs, and the result of the step as a checkpoint.
After a restart, finished steps return their checkpoints. A step that was interrupted runs again if it is
idempotent; otherwise the user decides.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any, Protocol, TypeVar, cast

from retinue.core import (
    BudgetKind,
    Conflict,
    Emit,
    Json,
    LongText,
    Message,
    MessageId,
    MessageStatus,
    OutputLine,
    PermissionAnswer,
    PermissionWanted,
    QueueFull,
    Redactor,
    RetinueError,
    Run,
    RunId,
    RunStatus,
    ToolRequest,
    Unavailable,
    Workflow,
    WorkflowStopped,
    as_text,
    estimate_tokens,
)
from retinue.runtime import Changes
from retinue.store import ALLOWED_CHECKS_STEP, Store
from retinue.workflows.phase import is_stop_answer
from retinue.workflows.steps import AgentCall, AgentResult, AgentStatus, CheckResult

T = TypeVar("T")
FOUND_CHECKS_STEP = ":checks:found"
HAS_CHECKS_STEP = ":checks:any"
VALIDATOR = "validator"
"""The agent that judges the work in a project without check commands."""
CHECKS_TOOL = "checks"
CHECKS_RULE = "the checks of this project"
"""What a permission question about checks names as its tool, and as what `always` allows."""
STORE_RETRY_S = 0.5
QUEUE_RETRY_S = 0.5
"""Maximum number of seconds before a full queue is tried again."""
_AGENT_STATUSES: Mapping[RunStatus, AgentStatus] = {
    RunStatus.SUCCESS: "success",
    RunStatus.ERROR: "error",
    RunStatus.TIMEOUT: "timeout",
    RunStatus.CANCELED: "canceled",
}
AlsoRecord = Callable[[Run], object]
"""Writes something in the transaction that records a run."""


class ChildStarter(Protocol):
    """Starts child runs of a workflow's run."""

    async def agent(self, call: AgentCall, prompt: str, parent: RunId, also: AlsoRecord) -> Run:
        """Start an agent with this prompt. `also` writes in the transaction that records its run."""
        ...

    async def check(self, name: str, parent: RunId, also: AlsoRecord, start: str | None) -> Run | None:
        """Start one of the project's check commands; None if the project has no command of that name."""
        ...

    def has_checks(self, names: Collection[str]) -> bool:
        """Whether the project has a command for one of these checks, confirmed or not."""
        ...

    def unconfirmed_checks(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The project's commands for these checks; empty if one of them is confirmed already."""
        ...

    def confirm_checks(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Confirm these commands for all runs in this project."""
        ...


class AwaitingAnswer(Exception):
    """Raised when the workflow cannot continue before the user has answered."""


class EmbeddedSteps:
    """The `Steps` port for one workflow run, backed by the store."""

    def __init__(
        self,
        run_id: RunId,
        store: Store,
        changes: Changes,
        starter: ChildStarter,
        redactor: Redactor,
        emit: Emit,
    ) -> None:
        self._run_id = run_id
        self._store = store
        self._changes = changes
        self._starter = starter
        self._redactor = redactor
        self._emit = emit

    async def agent(self, key: str, call: AgentCall) -> AgentResult:
        prompt = self._redactor.redact(call.prompt)  # a prompt contains results of earlier steps (P6)

        async def start(also: AlsoRecord) -> Run:
            return await self._starter.agent(call, prompt, self._run_id, also)

        def outcome(run: Run) -> AgentResult:
            return _agent_result(run, prompt)

        values = await self._run_once(key, call.agent, call.idempotent, start, outcome)
        return restore_result(AgentResult, values)

    async def check(self, key: str, name: str, start: str | None = None) -> CheckResult:
        """Run a check command. Commands only inspect the work, so they are idempotent."""

        async def begin(also: AlsoRecord) -> Run | None:
            return await self._starter.check(name, self._run_id, also, start)

        values = await self._run_once(key, name, True, begin, _check_result)
        return restore_result(CheckResult, values)

    async def confirm_checks(self, workflow: Workflow) -> bool:
        """Ask before the first step whether the project's checks may run, unless they are confirmed (P7).

        Return False if the project has a command for none of the workflow's checks.
        """
        checks = workflow.checks()
        if not checks or self._checkpoint_output(ALLOWED_CHECKS_STEP) is not None:
            return True
        if not await self._find_once(HAS_CHECKS_STEP, lambda: self._starter.has_checks(checks)):
            data = {"step": "checks", "decision": "the project has none", "then": f"{VALIDATOR} judges"}
            await self.event(":checks:none", "decision", data)
            return False
        # The commands that were asked about are those that run, also after a restart.
        commands: Mapping[str, Sequence[str]] = await self._find_once(
            FOUND_CHECKS_STEP,
            lambda: {name: list(argv) for name, argv in self._starter.unconfirmed_checks(checks).items()},
        )
        if not commands:
            return True
        shown = "\n".join(f"{name}: {shlex.join(argv)}" for name, argv in commands.items())
        wanted = PermissionWanted(ToolRequest(CHECKS_TOOL, self._redactor.redact(shown)), CHECKS_RULE, None)
        question = (
            f"The workflow {workflow.name} runs the project's checks, and nobody has confirmed them.\n"
            f"{shown}\nAnswer `allow` for this run, `always` to confirm them for this project, "
            "or `deny` with a reason. Anything else is a denial."
        )
        answer = PermissionAnswer.parse((await self.ask(":checks", [question], wanted))[0])
        if answer.consent == "no":
            raise WorkflowStopped(f"the project's checks were not allowed: {answer.reason}")
        if answer.consent == "always":
            await asyncio.to_thread(self._starter.confirm_checks, commands)
        await self._save(ALLOWED_CHECKS_STEP, dict(commands))
        return True

    async def _find_once(self, key: str, find: Callable[[], Any]) -> Any:
        """Return what `find` returns, from its checkpoint if it was called before."""
        found = self._checkpoint_output(key)
        if found is None:
            found = await asyncio.to_thread(find)
            await self._save(key, found)
        return found

    async def ask(
        self, key: str, questions: Sequence[str], wanted: PermissionWanted | None = None
    ) -> Sequence[str]:
        """Record the questions and return their answers, or raise `AwaitingAnswer` if one is missing."""
        answers = self._checkpoint_output(key)
        if answers is not None:
            return answers
        message_ids: list[str] | None = self._checkpoint_output(f"{key}:asked")
        if message_ids is None:
            message_ids = await self._store.persist(self._record_questions, key, questions, wanted)
        messages = [self._store.messages.get(MessageId(each)) for each in message_ids]
        if any(message.status is MessageStatus.PENDING for message in messages):
            raise AwaitingAnswer
        return await self._store.persist(self._take_answers, key, messages)

    def _record_questions(
        self, key: str, questions: Sequence[str], wanted: PermissionWanted | None
    ) -> list[str]:
        redacted = [self._redactor.redact(question) for question in questions]
        message_ids: list[str] = [
            self._store.messages.ask(self._run_id, text, wanted).id for text in redacted
        ]
        self._store.checkpoints.finish(self._run_id, f"{key}:asked", message_ids)
        return message_ids

    def _take_answers(self, key: str, messages: Sequence[Message]) -> Sequence[str]:
        answers = [str(message.answer) for message in messages]
        self._store.checkpoints.finish(self._run_id, key, answers)
        for message in messages:
            with suppress(Conflict):  # answers cannot be acknowledged while another question is open
                self._store.messages.acknowledge(message.id)
        return answers

    async def gather(self, jobs: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> Sequence[T]:
        """Run the jobs. If one must wait for an answer, raise `AwaitingAnswer` after the others finish."""
        waiting = enumerate(jobs)
        results: dict[int, T] = {}
        unanswered: list[AwaitingAnswer] = []

        async def work() -> None:
            for position, job in waiting:
                try:
                    results[position] = await job()
                except AwaitingAnswer as question:
                    unanswered.append(question)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(work())
        except* RetinueError as raised:
            raise _first_error(raised) from None
        if unanswered:
            raise unanswered[0]
        return [results[position] for position in sorted(results)]

    async def event(self, key: str, kind: str, data: Mapping[str, Json]) -> None:
        """Record an event and log it. Its data comes from answers that are already redacted."""
        if self._store.checkpoints.get(self._run_id, key) is not None:
            return

        def record() -> None:
            self._store.events.add(self._run_id, kind, data)
            self._store.checkpoints.finish(self._run_id, key, data)

        await self._store.persist(record)
        await self._log(describe_event(data))

    def _checkpoint_output(self, key: str) -> Any:
        checkpoint = self._store.checkpoints.get(self._run_id, key)
        return None if checkpoint is None else checkpoint.output

    async def _save(self, key: str, output: Any) -> None:
        await self._store.persist(self._store.checkpoints.finish, self._run_id, key, output)

    async def _run_once(
        self,
        key: str,
        name: str,
        idempotent: bool,
        start: Callable[[AlsoRecord], Awaitable[Run | None]],
        outcome: Callable[[Run], AgentResult] | Callable[[Run], CheckResult],
    ) -> dict[str, Any]:
        """Return the step's result from its checkpoint, from the run that performs it, or from a new run."""
        checkpoint = self._store.checkpoints.get(self._run_id, key)
        if checkpoint is not None and checkpoint.ended_at is not None:
            return cast("dict[str, Any]", checkpoint.output)
        child = None if checkpoint is None else checkpoint.child
        while True:
            child = child or await self._start_child(key, name, start)
            if child is None:
                return await self._finish(key, CheckResult(passed=None))
            run = await self._wait_for_child(child)
            if run.status is not RunStatus.INTERRUPTED:
                return await self._finish(key, outcome(run))
            await self._confirm_rerun(key, name, idempotent, run)
            child = None

    async def _confirm_rerun(self, key: str, name: str, idempotent: bool, before: Run) -> None:
        """Return if an interrupted step may run again, else raise `WorkflowStopped`. May ask (P5, P7)."""
        may_run_again = idempotent or before.timing.started_at is None
        then = "run it again" if may_run_again else "ask the user"
        data: Mapping[str, Json] = {"step": key, "decision": "interrupted", "run": before.id, "then": then}
        await self.event(f"{key}:again:{before.id}", "decision", data)
        if may_run_again:
            return
        question = (
            f"{key.split(':')[0]}: the server stopped while {name} was running; its work may be half done. "
            "Answer `stop` to end the workflow; any other answer runs the step again."
        )
        answer = (await self.ask(f"{key}:again:{before.id}:ask", [question]))[0]
        if is_stop_answer(answer):
            raise WorkflowStopped(f"{key.split(':')[0]} was interrupted, and the user stopped the workflow")

    async def _start_child(
        self, key: str, name: str, start: Callable[[AlsoRecord], Awaitable[Run | None]]
    ) -> RunId | None:
        """Start the step's run. The run and its step are recorded in one transaction."""

        def record(run: Run) -> None:
            self._store.checkpoints.begin(self._run_id, key, run.id)
            self._store.events.add(self._run_id, "step", {"step": key, "by": name, "run": run.id})

        while True:
            try:
                run = await start(record)
            except QueueFull:
                await self._next_change()
                continue
            except Unavailable:
                await asyncio.sleep(STORE_RETRY_S)
                continue
            if run is None:
                return None
            step, _, kind = key.partition(":")
            what = f"runs the check {name}" if kind.startswith("check:") else f"{name} works"
            await self._log(f"step {step}: {what}, run {run.id}")
            return run.id

    async def _wait_for_child(self, child: RunId) -> Run:
        with self._changes.watch({child}, poll_s=None) as watch:
            while not self._store.queue.scheduling_state(child).status.ended:
                await watch.next()
        return self._store.runs.get(child)

    async def _finish(self, key: str, result: AgentResult | CheckResult) -> dict[str, Any]:
        values = asdict(result)
        await self._save(key, values)
        return values

    async def _next_change(self) -> None:
        with self._changes.watch() as watch, suppress(TimeoutError):
            async with asyncio.timeout(QUEUE_RETRY_S):
                await watch.next()

    async def _log(self, line: str) -> None:
        await self._emit(OutputLine("stdout", line))


def restore_result(kind: type[T], values: Mapping[str, Any]) -> T:
    """Create a result from a checkpoint, which another version of Retinue may have written.

    Ignores unknown fields; missing fields get their defaults.
    """
    known = {each.name for each in fields(cast("Any", kind))}
    return kind(**{name: value for name, value in values.items() if name in known})


def _agent_result(run: Run, prompt: str) -> AgentResult:
    succeeded = run.status is RunStatus.SUCCESS
    result, error = cast("tuple[Any, Any]", (run.result, run.error))
    output = _whole_output(result) if succeeded else run.summary or ""
    counted = run.usage.get(BudgetKind.TOKENS)
    facts = result_facts(run)
    files: list[str] | None = facts.get("files_changed")
    return AgentResult(
        status=_AGENT_STATUSES[run.status],
        output=output,
        reason="" if succeeded else str(error["message"]),
        tokens=counted or estimate_tokens(prompt) + estimate_tokens(output),
        metered=bool(counted),
        run=run.id,
        branch=branch_in(facts),
        diff=as_text(facts.get("diff")),
        files=None if files is None else tuple(files),
    )


def _whole_output(result: Mapping[str, Any]) -> str:
    """The answer of a run. One that is too long to be stored has its beginning and its end."""
    if "beginning" not in result:
        return str(result["output"])
    long = LongText(result["beginning"], result["output"], result["characters"], result["lines"])
    return long.shorten(long.characters)


def branch_in(facts: Mapping[str, Any]) -> str | None:
    """The branch with a run's work, in the repository or in a snapshot of a folder without one."""
    return facts.get("branch") or facts.get("snapshot_branch")


def result_facts(run: Run) -> Mapping[str, Any]:
    """The facts that a run reported besides its answer."""
    return cast("Mapping[str, Any]", run.result) if isinstance(run.result, Mapping) else {}


def _check_result(run: Run) -> CheckResult:
    succeeded = run.status is RunStatus.SUCCESS
    result, error = cast("tuple[Any, Any]", (run.result, run.error))
    output = str(result["output"]) if succeeded else run.summary or str(error["message"])
    missing = False
    if not succeeded and error is not None and error["code"] == Unavailable.code:
        missing, output = True, str(error["message"])  # the log repeats it with its code
    return CheckResult(passed=succeeded, output=output, command=run.spec.task, could_not_start=missing)


def describe_event(data: Mapping[str, Json]) -> str:
    """Return a decision as a line of the log: `step validate: STOP; failed: tests; not checked: lint`."""
    told = {name: value for name, value in data.items() if value not in ([], None, "")}
    what = str(told.pop("decision", "")) + (f" ({told.pop('reason')})" if "reason" in told else "")
    step = f"step {told.pop('step')}: " if "step" in told else ""
    values = {
        name.replace("_", " "): ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in told.items()
    }
    return step + "; ".join(filter(None, (what, *(f"{name}: {value}" for name, value in values.items()))))


def _first_error(group: BaseExceptionGroup[RetinueError]) -> RetinueError:
    inner = group.exceptions[0]
    return _first_error(inner) if isinstance(inner, BaseExceptionGroup) else inner
