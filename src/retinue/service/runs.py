"""Starts, lists, awaits, answers and cancels runs. Knows nothing of MCP or terminals."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retinue.core import (
    ACTIVE_STATUSES,
    HOST,
    PERSON,
    Agent,
    BudgetKind,
    Conflict,
    Ending,
    Executor,
    InvalidInput,
    Json,
    Message,
    MessageId,
    MessageStatus,
    Redactor,
    RetinueError,
    RootUnknown,
    Run,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    RunUnknown,
    ToolRequest,
    Unauthorized,
    Verdict,
    clip,
    counted,
)
from retinue.runtime import (
    Changes,
    Fallback,
    PermissionBroker,
    PreparedRun,
    QuestionBroker,
    Supervisor,
)
from retinue.service import run_views
from retinue.service.agents import AgentService
from retinue.service.changed_agents import with_changes
from retinue.service.quotas import spent_quotas
from retinue.service.waiting import NO_PRESENTER, QuestionPresenter, RunWaiter, WaitMode
from retinue.store import SUMMARY_EVENT, Store, tail_log

if TYPE_CHECKING:  # only named here, and slow to load
    from anyio import CapacityLimiter

CALL_EVENT = "call"
"""The kind of the event with what a workflow's call changes about a run: its agent, and where it starts."""
MAX_DOING_CHARACTERS = 120
MAX_PROMPT_CHARACTERS = 1_000_000
MAX_ANSWER_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunService:
    """The verbs of runs."""

    store: Store
    changes: Changes
    questions: QuestionBroker
    waiter: RunWaiter
    supervisor: Supervisor
    agents: AgentService
    cwd: Path
    """The working folder of runs."""
    child_env: Callable[[RunId], Mapping[str, str]]
    """Creates the environment variables through which a run's processes reach this server."""
    patience_s: float
    """Default number of seconds that a call waits before it returns the current state."""
    tokens: int
    """Maximum size of an answer."""
    broker: PermissionBroker
    workers: CapacityLimiter
    """Limits how many research roles work at once in this process."""
    redactor: Redactor
    """Redacts what is shown. Tasks and answers are stored unchanged. What a run says is stored redacted,
    because other processes show it, too, and do not know this process's secrets (P6)."""

    async def start(
        self,
        name: str,
        prompt: str,
        context: str | None = None,
        *,
        parent: RunId | None = None,
        person: bool = False,
        changes: Mapping[str, Json] | None = None,
    ) -> Run:
        """Start a run for the host, for a parent run that has proved its identity, or for a person.

        `changes` is how the agent differs from its definition: another `model` or `timeout_s`.
        """
        caller = PERSON if person else self.caller(parent)
        agent = with_changes(self._runnable(name, caller), changes or {})
        if changes and "model" in changes and not self.agents.supports(agent, "model"):
            raise InvalidInput(f"agent {name} runs on {agent.executor}, which has no model to choose")
        executor = self.agents.executor(agent)
        return await self.start_agent(
            agent, executor, prompt, context, parent=parent, caller=caller, changes=changes
        )

    async def start_agent(
        self,
        agent: Agent,
        executor: Executor,
        prompt: str,
        context: str | None = None,
        *,
        parent: RunId | None = None,
        caller: str = HOST,
        also: Callable[[Run], object] | None = None,
        start: str | None = None,
        changes: Mapping[str, Json] | None = None,
    ) -> Run:
        """Start a run of an agent that was checked. `also` writes in the transaction that records it.

        `start` is the branch of an earlier run whose work this one continues. `changes` is how the agent
        differs from its definition.
        """
        if not self.cwd.is_dir():
            raise RootUnknown(
                "the working folder does not exist any more", hint="check the roots: list_roots"
            )
        work = self._prepare(agent, executor, _build_task(prompt, context), parent, caller, start)
        if parent is None and changes and "timeout_s" in changes:  # whoever named it waits no longer
            limits = replace(work.spec.limits, queue_s=agent.timeout_s)
            work = replace(work, spec=replace(work.spec, limits=limits))
        if work.fallback is None:
            self.supervisor.quotas.refuse_long_wait(work.account)

        def record(run: Run) -> None:
            if start is not None or changes:
                self.store.events.add(run.id, CALL_EVENT, {"start": start, **(changes or {})})
            if also is not None:
                also(run)

        return await self.supervisor.start(work, record)

    def _prepare(
        self,
        agent: Agent,
        executor: Executor,
        task: str,
        parent: RunId | None,
        caller: str,
        start: str | None = None,
    ) -> PreparedRun:
        """Prepare a run of an agent that was checked."""
        account = self.agents.account(agent)
        spec = RunSpec(
            agent=agent.name,
            task=task,
            executor=agent.executor,
            caller=caller,
            parent=parent,
            model=agent.model,
            tools=agent.tools or (),
            limits=RunLimits(run_s=agent.timeout_s, budget=replace(agent.budget, spawns=agent.spawns)),
            endpoint=self.agents.endpoint(agent),
            command=None if agent.program is None else self.redactor.redact(shlex.join(agent.command)),
            account=account if agent.fallback == "never" else None,  # else the run starts, and falls back
            cwd=str(self.cwd),
        )

        async def permit(run_id: RunId, request: ToolRequest) -> Verdict:
            rules = self.agents.effective_permissions(agent)
            return await self.broker.decide(run_id, agent.name, rules, request)

        def other(name: str) -> PreparedRun:
            chosen = self._runnable(name, caller)
            return self._prepare(chosen, self.agents.executor(chosen), task, parent, caller, start)

        fallback: Fallback | None = None
        if agent.fallback == "ask":
            fallback = Fallback("ask", (), other)
        elif agent.fallback != "never":
            fallback = Fallback("chain", agent.fallback, other)
        delegate = partial(Delegation, self) if agent.spawns else None
        return PreparedRun(
            spec, executor, self.cwd, self.child_env, permit, account, fallback, start, delegate
        )

    def _runnable(self, name: str, caller: str) -> Agent:
        return self.agents.runnable(name, None if caller == PERSON else caller)

    async def resume_waiting(self, only: RunId | None = None) -> bool:
        """Adopt the runs of this folder that wait for their accounts without a process, or `only` one.

        Returns whether a run goes on here.
        """
        adopted = False
        for run_id in self.store.runs.list_adoptable(resumable=False):
            run = self.store.runs.get(run_id)
            if run.spec.cwd != str(self.cwd) or only not in (None, run_id):
                continue
            try:
                spec, call = run.spec, self.store.events.last_of_kind(run_id, CALL_EVENT)
                changes: Mapping[str, Any] = {} if call is None else call.data
                agent = with_changes(self._runnable(spec.agent, spec.caller), changes)
                executor = self.agents.executor(agent)
                work = self._prepare(
                    agent, executor, spec.task, spec.parent, spec.caller, changes.get("start")
                )
            except RetinueError as error:  # its agent cannot run any more
                message = self.redactor.redact_value(error.as_json())
                ending = Ending(status=RunStatus.ERROR, error=message)
                await self.store.write(self.store.runs.finish, run_id, ending)
            else:
                adopted |= await self.supervisor.resume(run_id, work)
        return adopted

    def abandoned_in(self, run_id: RunId) -> str | None:
        """The folder of a queued run that no process performs; None if a process does, or it has ended."""
        run = self.store.runs.get(run_id)
        return run.spec.cwd if run.status is RunStatus.QUEUED and not run.owner else None

    def held_back(self, run_id: RunId) -> str | None:
        """What the run, or a run below it, waits for: an account or a free slot. None if it does not."""
        request = self.store.runs.get(run_id).request
        queued = self.store.runs.list(statuses=(RunStatus.QUEUED,), request=request)
        below = [run for run in queued if self.is_within(run.id, run_id)]
        if not below:
            return None
        run = next(filter(run_views.waits_for, below), below[0])  # an account says more than a slot
        slot = "a free slot, which other runs hold (`retinue runs --active`)"
        waits = run_views.waits_for(run).get("waits_for", slot)
        return self.redactor.redact(f"{run.spec.agent} waits for {waits}")

    def caller(self, parent: RunId | None) -> str:
        """The name of the caller: the agent of the parent run, or the configured name of the host."""
        return self.agents.host if parent is None else self.store.runs.get(parent).spec.agent

    def spawn_result(self, run_id: RunId) -> dict[str, Any]:
        """A run in the format of `spawn_agent`: the answer, and the steps and tokens it took."""
        usage = self.supervisor.usage_so_far(run_id) or self.store.runs.get(run_id).usage
        return run_views.spawn_view(self.outcome(run_id), usage)

    async def finish(
        self,
        run_id: RunId,
        wait_s: float | None = None,
        presenter: QuestionPresenter = NO_PRESENTER,
        *,
        past_questions: bool = False,
    ) -> dict[str, Any]:
        """Wait for a run and return its result, or its current state if it asks or does not end in time.

        With `past_questions`, a question does not end the wait, because the caller cannot answer it.
        """
        seconds = self.effective_wait(wait_s)
        await self.waiter.until([run_id], "all", seconds, presenter, past_questions=past_questions)
        await asyncio.to_thread(self.store.meta_files.write_changed, run_id)
        return self.outcome(run_id)

    def outcome(self, run_id: RunId, tokens: int | None = None) -> dict[str, Any]:
        """The result of a run, or its questions or state, cut to the tokens."""
        run, messages = self.with_messages(run_id)
        room = self.tokens if tokens is None else tokens
        if run.status.ended and run.spec.executor == "workflow":
            return self.workflow_outcome(run, room) | {"agent": run.spec.agent}
        return self.redactor.redact_value(run_views.outcome_view(run, messages, room))

    def workflow_outcome(self, run: Run, tokens: int) -> dict[str, Any]:
        """The result of a workflow, or its questions or state, cut to the tokens."""
        from retinue.service import workflow_views  # most servers run no workflow, and start sooner

        children = self.store.runs.list(parent=run.id, limit=-1)
        result, questions = self.store.checkpoints.result(run.id), self.waiter.open_questions(run)
        executors = workflow_views.executors_of(self.agents, children)
        view = workflow_views.workflow_outcome(run, result, questions, tokens, children, executors)
        if not run.status.ended and (waits := self.held_back(run.id)):
            view["waits_for"] = waits
        return self.redactor.redact_value(view)

    def find_id(self, run_id: str) -> RunId:
        """The id of a run, from the id or a part of it."""
        return self.store.runs.find_id(run_id)

    def with_messages(self, run_id: str) -> tuple[Run, Sequence[Message]]:
        """The run, its messages, and the open questions of the runs below it."""
        run = self.store.runs.get(self.find_id(run_id))
        below = [each for each in self.waiter.open_questions(run) if each.run_id != run.id]
        return run, [*self.store.messages.of_run(run.id), *below]

    def open_questions(self, run_id: str) -> Sequence[Message]:
        """The open questions of a run and of the runs below it, the oldest first."""
        return self.waiter.open_questions(self.store.runs.get(self.find_id(run_id)))

    def status(self, run_id: str) -> dict[str, Any]:
        run, messages = self.with_messages(run_id)
        if run.spec.executor == "workflow" and run.status.ended:
            reported = self.store.events.last_of_kind(run.id, SUMMARY_EVENT) is not None
            run = run_views.workflow_run(run, has_own_summary=reported)
        return self.redactor.redact_value(run_views.full_view(run, messages, self.tokens))

    def list(
        self,
        *,
        active: bool = False,
        limit: int = 20,
        within: RunId | None = None,
        agent: str | None = None,
        statuses: Collection[RunStatus] | None = None,
        since: float | None = None,
        children: bool = False,
    ) -> dict[str, Any]:
        """The newest runs first, one for each request unless `children` are wanted, too.

        With `within`, only the descendants of that run. `since` is in seconds since 1970.
        """
        if not 1 <= limit <= 500:
            raise InvalidInput(f"cannot list {limit} runs", hint="limit must be 1 to 500")
        wanted = ACTIVE_STATUSES if active and statuses is None else statuses
        if within is None:
            found = self.store.runs.list(
                statuses=wanted, agent=agent, since=since, requests_only=not children, limit=limit
            )
        else:
            tree = self.store.runs.list(
                statuses=wanted,
                agent=agent,
                since=since,
                request=self.store.runs.get(within).request,
                limit=-1,
            )
            found = [run for run in tree if self.is_descendant(run.id, within)][:limit]
        below = self.store.runs.count_children([run.id for run in found if run.spec.parent is None])
        views = [
            run_views.brief_view(
                run, self.redactor.redact, self.waiter.open_questions(run), below.get(run.id, 0)
            )
            for run in found
        ]
        spent = spent_quotas(self.store, self.redactor) if within is None else []
        return self.redactor.redact_value({"runs": views} | ({"quotas": spent} if spent else {}))

    def is_descendant(self, run_id: str, ancestor: RunId) -> bool:
        """Whether `ancestor` started this run, directly or through other runs."""
        return run_id != ancestor and self.is_within(RunId.parse(run_id), ancestor)

    def doing(self, run_ids: Sequence[str]) -> str:
        """What these runs do now, in one line: the last line that each wrote, or a run below it."""
        parts: list[str] = []
        for run_id in run_ids:
            run = self.store.runs.get(self.find_id(run_id))
            if run.status.ended:
                continue
            working = self.store.runs.list(statuses=ACTIVE_STATUSES, request=run.request, limit=-1)
            newest = next((each for each in working if self.is_within(each.id, run.id)), run)
            lines = tail_log(self.store.folder.log(newest.id), 1).lines
            said = self.redactor.redact(lines[-1].text) if lines else newest.status.value
            parts.append(f"{newest.spec.agent}: {run_views.clip_line(said, MAX_DOING_CHARACTERS)}")
        return "; ".join(parts)

    def watch(self, run_id: str) -> dict[str, Any]:
        """The state of a run for somebody who looks at it: what it does, or how it ended."""
        run, messages = self.with_messages(run_id)
        view = run_views.brief_view(run, self.redactor.redact, messages)
        view["tokens"] = run.usage.get(BudgetKind.TOKENS)
        if run.status.ended:
            outcome = self.outcome(run.id)
            view |= {key: outcome[key] for key in ("result", "error", "summary", "cut") if key in outcome}
        elif (doing := self.doing([run.id])) != f"{run.spec.agent}: {run.status.value}":
            view["doing"] = doing
        return self.redactor.redact_value(view)

    def asker(self, message: Message) -> str:
        """The name of the agent that asks."""
        return self.store.runs.get(message.run_id).spec.agent

    def progress(self, run_id: RunId) -> list[dict[str, Any]]:
        """The state of the run's children, the oldest first. If it has none, the state of the run itself."""
        children = self.store.runs.list(parent=run_id)[::-1] or [self.store.runs.get(run_id)]
        return [run_views.progress_view(run) for run in children]

    async def wait(
        self,
        run_ids: Sequence[str],
        mode: WaitMode = "any",
        wait_s: float | None = None,
        presenter: QuestionPresenter = NO_PRESENTER,
        known: Container[MessageId] = (),
        *,
        past_questions: bool = False,
    ) -> dict[str, Any]:
        """Return when one run (or all of them) has ended or asks a question, or when the time is over.

        The caller has been told the questions in `known`: they are in the answer, but do not end the wait.
        """
        if not run_ids:
            raise InvalidInput("no runs to wait for", hint="pass one or more run ids")
        ids = [self.find_id(run_id) for run_id in dict.fromkeys(run_ids)]
        for run_id in ids:
            self.store.runs.get(run_id)
        seconds = self.effective_wait(wait_s)
        await self.waiter.until(ids, mode, seconds, presenter, known=known, past_questions=past_questions)
        for run_id in ids:
            await asyncio.to_thread(self.store.meta_files.write_changed, run_id)
        share = max(200, self.tokens // len(ids))
        views = [self.outcome(run_id, share) for run_id in ids]
        active = [view["run_id"] for view in views if not RunStatus(view["status"]).ended]
        return {"runs": views, "still_active": active}

    async def cancel(self, run_id: str) -> dict[str, Any]:
        """Request that the run and its descendants end. For an ended run, the answer says so."""
        checked = self.find_id(run_id)
        before = self.store.runs.get(checked)
        if not before.status.ended:
            await self.store.write(self.store.runs.request_cancel, checked)
        after = self.store.runs.get(checked)
        view = {"run_id": after.id, "status": after.status.value, "cancel_requested": not before.status.ended}
        if before.status.ended:
            view["note"] = f"the run had already ended: {before.status.value}"
        return view

    async def cancel_and_wait(self, run_id: str, wait_s: float = 5.0) -> dict[str, Any]:
        """Cancel a run and its descendants, and wait until all of them have ended, at most `wait_s`."""
        view = await self.cancel(run_id)
        request = self.store.runs.get(view["run_id"]).request
        active = self.store.runs.list(statuses=ACTIVE_STATUSES, request=request, limit=-1)
        ending = [run.id for run in active if self.is_within(run.id, view["run_id"])]
        await self.waiter.until(ending, "all", wait_s, past_questions=True)
        if not self.store.runs.get(self.find_id(run_id)).status.ended:
            view["next"] = "the run is still ending; wait_for_runs waits for it"
        return view | {"status": self.store.runs.get(self.find_id(run_id)).status.value}

    async def reply(self, run_id: str, message_id: str, answer: str) -> dict[str, Any]:
        """Answer a question of a run, or of a run below it."""
        checked = self.find_id(run_id)
        message = self.store.messages.get(self._message_id(checked, message_id))
        if not self.is_within(message.run_id, checked):
            raise RunUnknown(f"run {checked} did not ask this question", message_id=message.id)
        check_answer(message.question, answer)
        try:
            replied = await self.store.write(self.store.messages.reply, message.id, answer)
        except Conflict:
            raise _already_settled(self.store.messages.get(message.id)) from None
        return {"run_id": replied.run_id, "messageId": replied.id, "messageStatus": replied.status.value}

    def _message_id(self, run_id: RunId, text: str) -> MessageId:
        """The id of a message, from the id or a part of it if only one open question of the run has that."""
        open_ids = [each.id for each in self.open_questions(run_id)]
        parts = [each for each in open_ids if each.startswith(text) or each.endswith(text)]
        return parts[0] if MessageId.is_part(text) and len(parts) == 1 else MessageId.parse(text)

    async def is_taken_up(self, run_id: RunId, wait_s: float = 1.5) -> bool:
        """Whether a process goes on with an answered run. Waits for one to resume a parked workflow."""
        if not self.store.runs.get(run_id).spec.resumable:
            return True
        taken_up = await self.changes.until(
            lambda: self.store.runs.get(run_id).status is not RunStatus.QUEUED or None, {run_id}, wait_s
        )
        return taken_up is not None

    async def ask_parent(self, run_id: RunId, question: str, wait_s: float | None = None) -> dict[str, Any]:
        """Ask a run's parent. The result contains the answer if it arrives in time."""
        if not question.strip():
            raise InvalidInput("the question is empty", hint="pass the text of the question")
        clean = self.redactor.redact(question)
        return run_views.question_state(await self.questions.ask(run_id, clean, self.effective_wait(wait_s)))

    async def check_message(
        self, run_id: RunId, message_id: str, wait_s: float | None = None
    ) -> dict[str, Any]:
        """The state of a question that the run has asked, and its answer if it has arrived."""
        checked = MessageId.parse(message_id)
        if self.store.messages.get(checked).run_id != run_id:
            raise RunUnknown(f"no such message: {checked}", hint="a run can check only its own questions")
        seconds = 0.0 if wait_s is None else self.effective_wait(wait_s)
        return run_views.question_state(await self.questions.wait_for_answer(checked, seconds))

    async def request_permission(
        self, run_id: RunId, tool: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Whether a run may make a call, in the format of Claude Code's permission prompts."""
        name = self.store.runs.get(run_id).spec.agent
        rules = self.agents.permissions(name)
        folder = "" if self.agents.runs_in_worktree(name) else str(self.cwd)
        verdict = await self.broker.decide(run_id, name, rules, ToolRequest.of(tool, arguments, folder))
        return verdict.claude_answer(arguments)

    async def append_memory(self, run_id: RunId, note: str) -> dict[str, Any]:
        """Add a run's note to the memory of its agent."""
        run = self.active_run(run_id)
        if run.spec.is_trial:
            raise Unauthorized("a trial keeps no notes", hint="go on without them")
        return await asyncio.to_thread(self.agents.append_memory, run.spec.agent, note)

    def active_run(self, run_id: RunId) -> Run:
        """The run, if it has not ended."""
        run = self.store.runs.get(run_id)
        if run.status.ended:
            raise Conflict(f"run {run.id} has ended: {run.status.value}", status=run.status.value)
        return run

    def has_ended(self, run_id: str) -> bool:
        return self.store.runs.get(self.find_id(run_id)).status.ended

    def question(self, message_id: str) -> Message | None:
        """The question with this id; None if there is none."""
        with suppress(InvalidInput, RunUnknown):
            return self.store.messages.get(MessageId.parse(message_id))
        return None

    def only_question(self, run_id: str) -> str:
        """The id of the open question of a run and the runs below it; `InvalidInput` unless there is one."""
        pending = self.open_questions(run_id)
        if len(pending) != 1:
            what = "asks nothing" if not pending else f"asks {counted(len(pending), 'question')}"
            hint = "choose one with --message: " + ", ".join(message.id for message in pending)
            raise InvalidInput(f"run {run_id} {what}", hint=hint if pending else "check its status")
        return pending[0].id

    async def next_change(self, timeout_s: float) -> None:
        """Wait until any run changes, in any process, or the timeout passes."""
        with self.changes.watch() as watch, suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await watch.next()

    def effective_wait(self, wait_s: float | None) -> float:
        """The seconds that a call waits: the given number, if it is valid, or the default."""
        if wait_s is not None and not 0 <= wait_s <= 3600:
            raise InvalidInput(f"cannot wait {wait_s} seconds", hint="wait_s must be 0 to 3600")
        return self.patience_s if wait_s is None else wait_s

    def find_on_task(self, run_id: RunId, name: str, prompt: str, context: str | None) -> RunId | None:
        """The run, or the nearest one above it, that is a run of this agent on exactly this task."""
        task = _build_task(prompt, context)
        for run in self._line_of(run_id):
            if (run.spec.agent, run.spec.task) == (name, task):
                return run.id
        return None

    def find_active(self, prompt: str, context: str | None, agent: str | None) -> RunId | None:
        """The request that works on exactly this task; None if there is none, or more than one."""
        task = prompt if not context else _build_task(prompt, context)
        active = self.store.runs.list(statuses=ACTIVE_STATUSES, agent=agent, requests_only=True, limit=-1)
        found = [run.id for run in active if run.spec.task == task]
        return found[0] if len(found) == 1 else None

    def is_within(self, run_id: RunId, ancestor: str) -> bool:
        """Whether this is the run `ancestor`, or one that it started, directly or through other runs."""
        return any(run.id == ancestor for run in self._line_of(run_id))

    def _line_of(self, run_id: RunId) -> Iterator[Run]:
        """The run, its parent, and so on."""
        above: RunId | None = run_id
        while above is not None:
            run = self.store.runs.get(above)
            yield run
            above = run.spec.parent


@dataclass(frozen=True, slots=True)
class Delegation:
    """Starts agents on behalf of a run whose agent has `spawns`, and waits for them: its children."""

    runs: RunService
    run_id: RunId

    def agents(self) -> Sequence[Mapping[str, Any]]:
        """The agents that the run may start."""
        listed = self.runs.agents.list_callable(self.runs.caller(self.run_id))
        return [each for each in listed["agents"] if "unavailable" not in each]

    async def start(self, agent: str, task: str) -> RunId:
        """Start a run of an agent. Raises if the agent cannot run, or the run may not start more."""
        await self.runs.agents.survey(agent)
        return (await self.runs.start(agent, task, parent=self.run_id)).id

    async def wait(self, run_ids: Sequence[str], wait_s: float | None) -> dict[str, Any]:
        """Wait until all these children have ended, or the time is over. Their questions go to a person."""
        for run_id in run_ids:
            if not self.runs.is_descendant(run_id, self.run_id):
                raise RunUnknown(f"run {run_id} was not started by this run", run_id=run_id)
        return await self.runs.wait(run_ids, "all", wait_s, past_questions=True)


def check_answer(question: str, answer: str) -> None:
    """Raise `InvalidInput` for an answer that is empty or too long."""
    if not answer.strip():
        raise InvalidInput(
            "the answer is empty", hint=f"answer in words, or cancel the run; it asked: {clip(question, 200)}"
        )
    if len(answer) > MAX_ANSWER_CHARACTERS:
        raise InvalidInput(
            f"an answer of {len(answer)} characters is too long",
            hint=f"at most {MAX_ANSWER_CHARACTERS}: put the rest into a file and name the file",
        )


def _already_settled(message: Message) -> Conflict:
    """The error for an answer to a question that is closed or has been answered."""
    if message.status is MessageStatus.CLOSED:
        text = "the run has ended and needs no answer"
    else:
        text = f"the question has already been answered: {clip(message.answer or '', 200)}"
    return Conflict(text, hint="your answer was not sent", message_id=message.id, status=message.status.value)


def _build_task(prompt: str, context: str | None) -> str:
    task = prompt if not context else f"{prompt}\n\nContext:\n{context}"
    if not prompt.strip():
        raise InvalidInput("the prompt is empty", hint="describe the agent's task")
    if len(task) > MAX_PROMPT_CHARACTERS:
        raise InvalidInput(f"a task of {len(task)} characters is too long", hint="put it into a file")
    return task
