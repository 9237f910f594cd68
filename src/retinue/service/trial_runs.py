"""Does past tasks again with a draft and without it, each in a worktree of its own.

Commands or a schema judge the work, never a model. Nobody answers questions, and nothing beyond an agent's
rules is allowed. Knows nothing of what the figures mean.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from retinue.core import (
    NO_ANSWER,
    TRIAL_CALLER,
    Agent,
    BudgetKind,
    InvalidInput,
    Message,
    Run,
    RunStatus,
    as_object,
    as_text,
    clip,
    counted,
)
from retinue.learning import Attempt, DraftKind, InUse, StoredDraft, TaskTrial, memory_text, skill_text
from retinue.service.past_runs import ReplayableRun, work_failed
from retinue.service.runs import RunService


class _NotJudged(Exception):
    """An attempt ended without saying anything about the work."""


class TrialRuns:
    """Does past tasks again for one trial of a draft."""

    def __init__(
        self,
        runs: RunService,
        in_use: InUse,
        draft: StoredDraft,
        repeats: int,
        max_tokens: int | None,
        tell: Callable[[str], None],
    ) -> None:
        self._runs = runs
        self._in_use = in_use
        self._draft = draft
        self._repeats = repeats
        self._tokens_left = max_tokens
        self._tell = tell
        self.skipped: list[str] = []

    async def run(self, chosen: Sequence[ReplayableRun]) -> AsyncGenerator[TaskTrial]:
        """Yield the trial of each task. The two ways take turns, so that neither has a warmer model."""
        for number, past in enumerate(chosen, 1):
            if self._tokens_left is not None and self._tokens_left <= 0:
                left = counted(len(chosen) - number + 1, "task")
                self.skipped.append(f"the budget of tokens was spent with {left} to go")
                return
            self._tell(f"task {number} of {len(chosen)}: {clip(' '.join(past.run.spec.task.split()), 80)}")
            sides: dict[bool, list[Attempt]] = {False: [], True: []}
            try:
                for turn in range(2 * self._repeats):
                    with_draft = (turn + number) % 2 == 0
                    attempt = await self._attempt(past, with_draft)
                    sides[with_draft].append(attempt)
                    way, ending = (
                        ("with" if with_draft else "without"),
                        "passed" if attempt.passed else "failed",
                    )
                    self._tell(f"  {way} the draft: {ending}, {attempt.tokens} tokens")
            except _NotJudged as reason:
                self.skipped.append(f"run {past.run.id} could not be done again: {reason}")
                self._tell(f"  left out: {reason}")
                continue
            task = clip(" ".join(past.run.spec.task.split()), 100)
            yield TaskTrial(past.run.id, task, tuple(sides[False]), tuple(sides[True]))

    async def _attempt(self, past: ReplayableRun, with_draft: bool) -> Attempt:
        agent, task = self._side(past, with_draft)
        runs = self._runs
        run = await runs.start_agent(
            agent, runs.agents.executor(agent), task, caller=TRIAL_CALLER, start=past.start
        )
        try:
            await runs.waiter.until([run.id], "all", math.inf, _NobodyAnswers(runs))
        except BaseException:
            await runs.cancel_and_wait(run.id)
            raise
        return self._judge(runs.store.runs.get(run.id))

    def _judge(self, run: Run) -> Attempt:
        """How an attempt ended. Raises `_NotJudged` if it failed for a reason that is not its work."""
        if run.status is not RunStatus.SUCCESS and not work_failed(run):
            raise _NotJudged(as_text(as_object(run.error).get("message")) or run.status.value)
        tokens = run.usage.get(BudgetKind.TOKENS) or 0
        if self._tokens_left is not None:
            self._tokens_left -= int(tokens)
        began, ended = run.timing.started_at, run.timing.ended_at
        seconds = max(0.0, (ended or 0.0) - began) if began is not None else 0.0
        steps = int(run.usage.get(BudgetKind.STEPS) or 0)
        return Attempt(run.status is RunStatus.SUCCESS, steps, int(tokens), seconds)

    def _side(self, past: ReplayableRun, with_draft: bool) -> tuple[Agent, str]:
        """The agent and the task of an attempt. Skills that come by themselves are off on both sides."""
        in_use, draft = self._in_use, self._draft
        agent, task = past.agent, past.run.spec.task
        edited = as_text(draft.content.get("skill")) if draft.kind is DraftKind.EDIT else ""
        agent = replace(agent, skills=tuple(name for name in agent.skills or () if name != edited))
        match draft.kind:
            case DraftKind.SKILL:
                told = skill_text(draft.name, draft.body) if with_draft else ""
            case DraftKind.EDIT:
                told = skill_text(edited, in_use.skill_body(edited, draft.edits if with_draft else {}))
            case DraftKind.MEMORY:
                told = memory_text(as_text(draft.content.get("memory"))) if with_draft else ""
            case _:  # a draft of an agent: its instructions and tools, judged like the agent it stands in for
                told = ""
                if with_draft:
                    agent = self._with_drafted_agent(agent)
        return agent, f"{task}\n\n{told}" if told else task

    def _with_drafted_agent(self, agent: Agent) -> Agent:
        runs = self._runs
        drafted = runs.agents.catalog.read(self._in_use.project / self._draft.path).agent
        if drafted is None:
            raise InvalidInput(f"{self._draft.path} is not a valid agent", hint="correct it, or reject it")
        return replace(agent, prompt=drafted.prompt, tools=drafted.tools)


class _NobodyAnswers:
    """Answers the questions of attempts: nobody is there, and nothing beyond the rules is allowed."""

    def __init__(self, runs: RunService) -> None:
        self._runs = runs

    def accepts(self, message: Message) -> bool:
        return True

    async def ask(self, messages: Sequence[Message], timeout_s: float) -> bool:
        for message in messages:
            answer = NO_ANSWER if message.permission is None else "deny: this is a trial, and nobody is asked"
            await self._runs.reply(message.run_id, message.id, answer)
        return True
