"""Runs workflows on the real engine and store, with agents that tests script."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from retinue.core import (
    Assignment,
    Budget,
    DeadlineExceeded,
    Outcome,
    OutputLine,
    ProgramFailed,
    Run,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Task,
    Workflow,
)
from retinue.core.budget import UNLIMITED
from retinue.definitions import read_team, read_workflow
from retinue.redaction import SecretRedactor
from retinue.runtime import PreparedRun, Supervisor
from retinue.store import RESULT_STEP
from retinue.workflows import AgentCall, EmbeddedEngine
from retinue.workflows.embedded_steps import AlsoRecord
from tests.runtime.runtime_support import PATIENCE_S, Server, server

Reply = str | Mapping[str, Any] | Outcome
Script = Callable[[str, int], "Reply | Awaitable[Reply]"]
"""From the prompt and the number of the call to the agent's answer."""
LATE = Outcome("half of it", error=DeadlineExceeded("the deadline passed while it ran"))
REDACTOR = SecretRedactor()


def proceed(summary: str = "done", **findings: Any) -> dict[str, Any]:
    return {"decision": "PROCEED", "context_summary": summary, "findings": findings, "issues": []}


def wrote(summary: str = "written", *files: str) -> dict[str, Any]:
    return proceed(summary, files_changed=list(files), tests_written=[])


def stop(reason: str) -> dict[str, Any]:
    return {"decision": "STOP", "reason": reason, "context_summary": reason, "issues": [reason]}


def clarify(*questions: str) -> dict[str, Any]:
    return {"decision": "CLARIFY", "questions": list(questions), "context_summary": "unclear"}


def handoff_in(prompt: str) -> dict[str, Any]:
    found = re.search(r"```json\n(.*?)\n```", prompt, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


class Scripted:
    """An agent or a check that records its prompts and returns scripted answers."""

    def __init__(self, script: Script | Reply | Sequence[Reply]) -> None:
        self._script = script
        self.prompts: list[str] = []

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.prompts.append(task.prompt)
        number = len(self.prompts)
        script = self._script
        if callable(script):
            reply = script(task.prompt, number)
            if isinstance(reply, Awaitable):
                reply = await reply
        elif isinstance(script, list | tuple):
            reply = script[min(number, len(script)) - 1]
        else:
            reply = script
        if isinstance(reply, Outcome):
            await ctx.emit(OutputLine("stdout", reply.output))
            return reply
        return Outcome(reply if isinstance(reply, str) else json.dumps(reply))


def failing(output: str) -> Outcome:
    return Outcome(output, exit_code=1, error=ProgramFailed("it ended with exit code 1", exit_code=1))


class Bench:
    def __init__(
        self,
        at: Server,
        supervisor: Supervisor,
        agents: Mapping[str, Scripted],
        checks: Mapping[str, Scripted],
    ) -> None:
        self.store = at.store
        self.supervisor = supervisor
        self._at = at
        self._agents = agents
        self._checks = checks
        self.engine = EmbeddedEngine(at.store, at.changes, supervisor, self, REDACTOR, at.store.folder.path)

    # The ChildStarter of the engine.
    async def agent(self, call: AgentCall, prompt: str, parent: RunId, also: AlsoRecord) -> Run:
        return await self._child(call.agent, prompt, parent, self._agents[call.agent], also, call.timeout_s)

    async def check(self, name: str, parent: RunId, also: AlsoRecord, start: str | None) -> Run | None:
        if name not in self._checks:
            return None
        return await self._child(name, f"run {name}", parent, self._checks[name], also)

    def has_checks(self, names: Collection[str]) -> bool:
        return True

    def unconfirmed_checks(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        return {}

    def confirm_checks(self, commands: Mapping[str, Sequence[str]]) -> None:
        raise AssertionError("all checks are confirmed")

    async def _child(
        self,
        name: str,
        task: str,
        parent: RunId,
        executor: Scripted,
        also: AlsoRecord,
        timeout_s: float | None = None,
    ) -> Run:
        spec = RunSpec(
            agent=name, task=task, executor="scripted", parent=parent, limits=RunLimits(run_s=timeout_s)
        )
        return await self.supervisor.start(PreparedRun(spec, executor, self.store.folder.path), also)

    async def start(
        self, workflow: Workflow | str, feature: str = "add a thing", budget: Budget = UNLIMITED
    ) -> RunId:
        chosen = workflow if isinstance(workflow, Workflow) else read_workflow(workflow, "test", "given")
        return (await self.engine.submit(chosen, Assignment(feature=feature), "tester", budget)).id

    async def start_team(self, text: str, task: str) -> RunId:
        return await self.start(read_team(text, "team", "given"), task)

    async def until(self, check: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until the condition holds; checked after every change of a run."""
        with self._at.changes.watch() as watch:
            async with asyncio.timeout(patience_s):
                while not check():
                    await watch.next()

    async def settled(self, run_id: RunId) -> Run:
        """Wait until the run has ended, or is parked and waits for an answer."""

        def look() -> Run | None:
            run = self.store.runs.get(run_id)
            parked = run.status is RunStatus.WAITING and run.owner == ""
            return run if run.status.ended or parked else None

        found = await self._at.changes.until(look, {run_id}, PATIENCE_S)
        assert found is not None, f"still {self.store.runs.get(run_id).status}"
        return found

    async def result(self, run_id: RunId) -> dict[str, Any]:
        run = await self.settled(run_id)
        kept = self.store.checkpoints.get(run_id, RESULT_STEP)
        assert kept is not None, f"{run.status}: {run.error}"
        output: Any = kept.output
        return output

    def questions(self, run_id: RunId) -> list[str]:
        return [message.question for message in self.store.messages.pending(run_id)]

    async def answer(self, run_id: RunId, *answers: str) -> None:
        for message, answer in zip(self.store.messages.pending(run_id), answers, strict=True):
            await self.store.write(self.store.messages.reply, message.id, answer)
        await self.engine.resume_all()

    def decisions(self, run_id: RunId) -> list[dict[str, Any]]:
        events = self.store.events.of_run(run_id)
        return [dict(event.data) for event in events if event.kind in ("decision", "checks")]


@asynccontextmanager
async def bench(
    folder: Path,
    agents: Mapping[str, Scripted] | None = None,
    checks: Mapping[str, Scripted] | None = None,
    slots: int = 4,
    queued: int = 100,
) -> AsyncGenerator[Bench]:
    async with server(folder, slots, queued) as at, Supervisor(at.store, at.pool, REDACTOR) as supervisor:
        yield Bench(at, supervisor, agents or {}, checks or {})
