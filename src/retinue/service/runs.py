"""The verbs of runs: start, watch, read, answer, end. Knows nothing of MCP or terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retinue.core import (
    HOST,
    Agent,
    Conflict,
    Executor,
    InvalidInput,
    Message,
    MessageId,
    MessageStatus,
    Redactor,
    RootUnknown,
    Run,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    RunUnknown,
    ToolRequest,
    Verdict,
    clip,
    counted,
)
from retinue.runtime import Changes, PermissionBroker, PreparedRun, QuestionBroker, Supervisor
from retinue.service import run_views
from retinue.service.agents import AgentService
from retinue.service.run_views import log_page
from retinue.service.waiting import NOBODY, QuestionPresenter, Waiting, WaitMode
from retinue.store import Store

if TYPE_CHECKING:  # only named here, and slow to load
    from anyio import CapacityLimiter

REPORTED = ("running", "success", "error")
MAX_PROMPT_LETTERS = 1_000_000
MAX_ANSWER_LETTERS = 100_000
PERSON = "person"
"""The caller of what is started at a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunService:
    store: Store
    changes: Changes
    questions: QuestionBroker
    waiting: Waiting
    supervisor: Supervisor
    agents: AgentService
    cwd: Path
    """Where commands work."""
    child_env: Callable[[RunId], Mapping[str, str]]
    """Through what a run's processes reach us."""
    patience_s: float
    """Seconds that a call may wait before it answers with where things stand."""
    tokens: int
    """Tokens that one answer may have."""
    broker: PermissionBroker
    workers: CapacityLimiter
    """How many roles of research work at once in this process."""
    redactor: Redactor
    """Tasks and answers are kept as they are given; what is shown of them is not. What a run says is kept
    without secrets: other processes show it too, and do not know what this one has to hide (P6)."""

    async def start(
        self,
        name: str,
        prompt: str,
        context: str | None = None,
        *,
        parent: RunId | None = None,
        person: bool = False,
    ) -> Run:
        """Start a run for the host, for the run that the caller has proved to be, or for a person."""
        caller = PERSON if person else self.caller(parent)
        agent = self.agents.runnable(name, None if person else caller)
        executor = self.agents.executor(agent)
        return await self.begin(agent, executor, prompt, context, parent=parent, caller=caller)

    async def begin(
        self,
        agent: Agent,
        executor: Executor,
        prompt: str,
        context: str | None = None,
        *,
        parent: RunId | None = None,
        caller: str = HOST,
        also: Callable[[Run], object] | None = None,
    ) -> Run:
        """Start a run of an agent that may be run. `also` writes in the transaction that records it."""
        spec = RunSpec(
            agent=agent.name,
            task=_task(prompt, context),
            executor=agent.executor,
            caller=caller,
            parent=parent,
            model=agent.model,
            tools=agent.tools or (),
            limits=RunLimits(run_s=agent.timeout_s, budget=replace(agent.budget, spawns=agent.spawns)),
            endpoint=self.agents.endpoint(agent),
            command=agent.program,
        )
        if not self.cwd.is_dir():
            raise RootUnknown("the folder that commands work in is gone", hint="check the roots: list_roots")

        async def permit(run_id: RunId, asked: ToolRequest) -> Verdict:
            return await self.broker.decide(run_id, agent.name, agent.permissions, asked)

        return await self.supervisor.start(
            PreparedRun(spec, executor, self.cwd, self.child_env, permit), also
        )

    def caller(self, parent: RunId | None) -> str:
        """Who asks, as nobody can claim it: a run by its token, else the name this server was given."""
        return self.agents.host if parent is None else self.store.runs.get(parent).spec.agent

    def spawned(self, run_id: RunId) -> dict[str, Any]:
        """A run in the words of `spawn_agent`: its answer, and what it took."""
        return run_views.spawned(self.outcome(run_id), self.store.runs.get(run_id).usage)

    async def finish(
        self, run_id: RunId, wait_s: float | None = None, asker: QuestionPresenter = NOBODY
    ) -> dict[str, Any]:
        """The result of a run that was started, if it is ready in time, else where it stands."""
        await self.waiting.until([run_id], "all", self.patience(wait_s), asker)
        return self.outcome(run_id)

    def outcome(self, run_id: RunId) -> dict[str, Any]:
        return self.redactor.redact_value(run_views.outcome(*self.with_messages(run_id), self.tokens))

    def with_messages(self, run_id: str) -> tuple[Run, Sequence[Message]]:
        checked = RunId.parse(run_id)
        return self.store.runs.get(checked), self.store.messages.of_run(checked)

    def status(self, run_id: str) -> dict[str, Any]:
        return self.redactor.redact_value(run_views.full(*self.with_messages(run_id), self.tokens))

    def list(self, *, active: bool = False, limit: int = 20) -> dict[str, Any]:
        """The newest runs first."""
        if not 1 <= limit <= 500:
            raise InvalidInput(f"cannot list {limit} runs", hint="limit is 1 to 500")
        wanted = [status for status in RunStatus if not status.ended] if active else None
        found = self.store.runs.list(statuses=wanted, limit=limit)
        views = [run_views.brief(run, self.redactor.redact, self.waiting.asked(run)) for run in found]
        return self.redactor.redact_value({"runs": views})

    def progress(self, run_id: RunId) -> list[dict[str, Any]]:
        """The runs below one, the oldest first, with how many places each has named; itself if none is."""
        below = self.store.runs.list(parent=run_id)[::-1] or [self.store.runs.get(run_id)]
        return [run_views.at_work(run) for run in below]

    async def wait(
        self,
        run_ids: Sequence[str],
        mode: WaitMode = "any",
        wait_s: float | None = None,
        asker: QuestionPresenter = NOBODY,
    ) -> dict[str, Any]:
        """Return when one run (or each of them) has ended or asks, or when patience ends."""
        if not run_ids:
            raise InvalidInput("no runs to wait for", hint="give one or more run ids")
        ids = [RunId.parse(run_id) for run_id in dict.fromkeys(run_ids)]
        for run_id in ids:
            self.store.runs.get(run_id)
        await self.waiting.until(ids, mode, self.patience(wait_s), asker)
        share = max(200, self.tokens // len(ids))
        views = [
            self.redactor.redact_value(run_views.outcome(*self.with_messages(run_id), share))
            for run_id in ids
        ]
        waiting = [view["run_id"] for view in views if not RunStatus(view["status"]).ended]
        return {"runs": views, "still_active": waiting}

    async def cancel(self, run_id: str) -> dict[str, Any]:
        """Ask for the run and its descendants to end; one that has ended already is said to have."""
        checked = RunId.parse(run_id)
        before = self.store.runs.get(checked)
        if not before.status.ended:
            await self.store.write(self.store.runs.request_cancel, checked)
        after = self.store.runs.get(checked)
        view = {"run_id": after.id, "status": after.status.value, "cancel_requested": not before.status.ended}
        if before.status.ended:
            view["note"] = f"the run had ended before: {before.status.value}"
        return view

    async def cancel_and_wait(self, run_id: str, wait_s: float = 5.0) -> dict[str, Any]:
        """The same, and what became of it."""
        view = await self.cancel(run_id)
        await self.waiting.until([RunId.parse(run_id)], "all", wait_s)
        return view | {"status": self.store.runs.get(RunId.parse(run_id)).status.value}

    async def reply(self, run_id: str, message_id: str, answer: str) -> dict[str, Any]:
        checked = RunId.parse(run_id)
        message = self.store.messages.get(MessageId.parse(message_id))
        if message.run_id != checked:
            raise RunUnknown(f"run {checked} asked no such question", message_id=message.id)
        refuse_unfit_answer(message.question, answer)
        try:
            replied = await self.store.write(self.store.messages.reply, message.id, answer)
        except Conflict:
            raise _too_late(self.store.messages.get(message.id)) from None
        return {"runId": checked, "messageId": replied.id, "messageStatus": replied.status.value}

    async def ask_parent(self, own: RunId, question: str, wait_s: float | None = None) -> dict[str, Any]:
        """A run's question; its answer if it comes in time."""
        if not question.strip():
            raise InvalidInput("the question is empty", hint="ask something")
        clean = self.redactor.redact(question)
        return _answered(await self.questions.ask(own, clean, self.patience(wait_s)))

    async def check_message(self, own: RunId, message_id: str, wait_s: float | None = None) -> dict[str, Any]:
        checked = MessageId.parse(message_id)
        if self.store.messages.get(checked).run_id != own:
            raise RunUnknown(f"no such message: {checked}", hint="only your own questions can be looked at")
        return _answered(
            await self.questions.wait_for_answer(checked, 0.0 if wait_s is None else self.patience(wait_s))
        )

    async def request_permission(self, own: RunId, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Whether a run may make a call, in the words of Claude Code's permission prompts."""
        name = self.store.runs.get(own).spec.agent
        rules = self.agents.permissions(name)
        verdict = await self.broker.decide(own, name, rules, ToolRequest.of(tool, arguments))
        return verdict.claude_answer(arguments)

    async def append_memory(self, own: RunId, note: str) -> dict[str, Any]:
        """A run's note for the later runs of its agent."""
        run = self.store.runs.get(own)
        if run.status.ended:
            raise Conflict(f"run {run.id} has ended: {run.status.value}", status=run.status.value)
        return await asyncio.to_thread(self.agents.append_memory, run.spec.agent, note)

    async def report(self, run_id: str, status: str, summary: str | None = None) -> dict[str, Any]:
        """Note what somebody says of a run. Only what happened decides its status; a failure is believed."""
        if status not in REPORTED:
            raise InvalidInput(f"not a status to report: {status!r}", hint="one of: " + ", ".join(REPORTED))
        run = self.store.runs.get(RunId.parse(run_id))
        if run.status.ended:
            raise Conflict(f"run {run.id} has ended: {run.status.value}", status=run.status.value)
        if summary is not None:
            summary = self.redactor.redact(summary)

        def note() -> None:
            if summary is not None:
                self.store.runs.set_summary(run.id, summary)
            self.store.events.add(run.id, "report", {"status": status})

        await self.store.write(note)
        return {"runId": run.id, "status": run.status.value, "reported": status, "summary": summary}

    def logs(
        self,
        run_id: str,
        *,
        stream: str = "all",
        cursor: int | None = None,
        tokens: int | None = None,
    ) -> dict[str, Any]:
        """The end of a run's log, or what follows a cursor; as much as fits."""
        run = self.store.runs.get(RunId.parse(run_id))
        room = min(tokens or self.tokens, 20 * self.tokens)
        page = log_page(self.store.folder.log(run.id), stream, cursor, room)
        return {"runId": run.id, "status": run.status.value, **page}

    def has_ended(self, run_id: str) -> bool:
        return self.store.runs.get(RunId.parse(run_id)).status.ended

    def question(self, message_id: str) -> Message | None:
        """The question with that id, if there ever was one."""
        with suppress(InvalidInput, RunUnknown):
            return self.store.messages.get(MessageId.parse(message_id))
        return None

    def only_question(self, run_id: str) -> str:
        """The id of a run's one open question."""
        pending = self.store.messages.pending(self.store.runs.get(RunId.parse(run_id)).id)
        if len(pending) != 1:
            what = "asks nothing" if not pending else f"asks {counted(len(pending), 'question')}"
            hint = "name one with --message: " + ", ".join(message.id for message in pending)
            raise InvalidInput(f"run {run_id} {what}", hint=hint if pending else "look at its status")
        return pending[0].id

    async def next_change(self, at_most_s: float) -> None:
        """Until any run changes, in whichever process, or the time is over."""
        with self.changes.watch() as watch, suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await watch.next()

    def patience(self, wait_s: float | None) -> float:
        if wait_s is not None and not 0 <= wait_s <= 3600:
            raise InvalidInput(f"cannot wait {wait_s} seconds", hint="wait_s is 0 to 3600")
        return self.patience_s if wait_s is None else wait_s

    def is_of(self, run_id: RunId, name: str, prompt: str, context: str | None) -> bool:
        """Whether the run is the agent's on this very task."""
        spec = self.store.runs.get(run_id).spec
        return (spec.agent, spec.task) == (name, _task(prompt, context))


def refuse_unfit_answer(question: str, answer: str) -> None:
    """An empty answer: whoever asked would go on with nothing, as if that had been said. One too long."""
    if not answer.strip():
        raise InvalidInput(
            "the answer is empty", hint=f"answer in words, or cancel the run; it asked: {clip(question, 200)}"
        )
    if len(answer) > MAX_ANSWER_LETTERS:
        raise InvalidInput(
            f"an answer of {len(answer)} characters is too long",
            hint=f"{MAX_ANSWER_LETTERS} fit: put the rest into a file and name it",
        )


def _too_late(message: Message) -> Conflict:
    """Of a question that is not open any more: what became of it."""
    if message.status is MessageStatus.CLOSED:
        told = "the run has ended, and needs no answer any more"
    else:
        told = f"it was answered before: {clip(message.answer or '', 200)}"
    return Conflict(told, hint="your answer was not sent", message_id=message.id, status=message.status.value)


def _answered(message: Message) -> dict[str, Any]:
    view: dict[str, Any] = {"messageId": message.id, "messageStatus": message.status.value}
    if message.status is MessageStatus.ACKNOWLEDGED:
        return view | {"answer": message.answer}
    if message.status is MessageStatus.CLOSED:
        return view | {"note": "the run ended before the answer came"}
    return view | {
        "next": "check_message_status(messageId, wait_s) waits on; go on with what you know meanwhile"
    }


def _task(prompt: str, context: str | None) -> str:
    task = prompt if not context else f"{prompt}\n\nContext:\n{context}"
    if not prompt.strip():
        raise InvalidInput("the prompt is empty", hint="say what the agent is to do")
    if len(task) > MAX_PROMPT_LETTERS:
        raise InvalidInput(f"a task of {len(task)} characters is too long", hint="put it into a file")
    return task
