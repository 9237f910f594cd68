"""Validates that an agent's answer is JSON and fits its output schema (P3).

An answer that does not fit goes back to the agent with the reason, at most twice: in the same session if the
CLI can resume it, otherwise with the whole task. All attempts are one run with one deadline and one budget.
Works with any executor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from retinue.core import (
    Agent,
    Budget,
    Executor,
    Json,
    NotJson,
    Outcome,
    OutputInvalid,
    OutputLine,
    RunContext,
    Task,
    any_value,
    as_text,
    clip,
    embedded_values,
    stated_values,
)
from retinue.executors.wrappers.output_schema import OutputSchema
from retinue.executors.wrappers.session import add_to_session, is_session_lost

MAX_ATTEMPTS = 3
QUOTED_CHARS = 800
"""Characters of a refused answer that are quoted when its session cannot be resumed."""
JSON_ONLY_PROMPT = "Answer with one JSON value and nothing else."
RAW_ANSWER_NOTE = (
    "no answer was valid; the last one is in the run's result and at the end of its log, unchanged"
)

MakeExecutor = Callable[[Agent], Executor]
"""Makes the executor of an agent. Called once per attempt, because each attempt has less budget."""


def validate_answers(make_executor: MakeExecutor, agent: Agent) -> Executor:
    """Return the agent's executor, with validation if the agent promises JSON."""
    return WithValidation(make_executor, agent) if agent.answers_json else make_executor(agent)


class AnswerRefused(Exception):
    """Says in one line what is wrong with an answer."""


class WithValidation:
    """Wraps an executor: an answer is valid JSON, or the outcome has an error that says why not."""

    def __init__(self, make_executor: MakeExecutor, agent: Agent) -> None:
        """Raise `InvalidInput` if the agent's schema is not a valid schema."""
        self._make_executor = make_executor
        self._agent = agent
        self._schema = None if agent.output_schema is None else OutputSchema(agent.output_schema)

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        began = time.monotonic()
        outcome = await self._make_executor(self._agent).run(task, ctx)
        attempts = 1
        while outcome.error is None:
            try:
                return replace(outcome, value=self._valid_value(outcome))
            except AnswerRefused as refused:
                problem = str(refused)
            await ctx.emit(OutputLine("event", f"answer {attempts} is not valid: {problem}"))
            budget = _remaining_budget(self._agent.budget, outcome)
            if attempts == MAX_ATTEMPTS or budget is None:
                return await _give_up(outcome, problem, attempts, ctx)
            seconds = None if ctx.seconds is None else max(0.0, ctx.seconds - (time.monotonic() - began))
            executor = self._make_executor(replace(self._agent, budget=budget))
            retried = await _retry(executor, task, outcome, problem, replace(ctx, seconds=seconds))
            outcome = _combine(outcome, retried)
            attempts += 1
        return outcome

    def _valid_value(self, outcome: Outcome) -> Json:
        """Return the last value in the answer that fits. Raises `AnswerRefused` if none does."""
        if outcome.cut:
            raise AnswerRefused(f"it is longer than {len(outcome.output)} characters")
        problem: str | None = None
        for value in reversed(self._find_values(outcome)):
            found = None if self._schema is None else self._schema.problem(value)
            if found is None:
                return value
            problem = problem or found
        raise AnswerRefused(problem)

    def _find_values(self, outcome: Outcome) -> Sequence[Json]:
        """Return the value that the CLI validated itself, or the values in its text."""
        if outcome.value is not None:
            return [outcome.value]
        try:
            if self._schema is None:
                return [any_value(outcome.output)]
            return stated_values(outcome.output)
        except NotJson as error:
            if found := embedded_values(outcome.output) if self._schema is not None else []:
                return found
            raise AnswerRefused(f"it is not JSON: {error}") from None


async def _retry(executor: Executor, task: Task, before: Outcome, problem: str, ctx: RunContext) -> Outcome:
    """Ask for a corrected answer, in the same session if possible."""
    request = (
        f"That is not a valid answer: {problem}. Answer again, with the corrected JSON and nothing else."
    )
    lost: Outcome | None = None
    if session_id := as_text(before.facts.get("session_id")):
        resume = add_to_session(session_id, ctx.resume, before)
        outcome = await executor.run(
            replace(task, prompt=request, background=""), replace(ctx, resume=resume, skills=None)
        )
        if not is_session_lost(outcome):
            return outcome
        lost = outcome
    quoted = clip(before.output, QUOTED_CHARS)
    prompt = f"{task.prompt}\n\nAn earlier answer to this was:\n{quoted}\n\n{request}"
    outcome = await executor.run(replace(task, prompt=prompt), replace(ctx, resume=None))
    return outcome if lost is None else _combine(lost, outcome)


def _combine(first: Outcome, second: Outcome) -> Outcome:
    """Return the second outcome, with the usage, facts, survivors and notes of both."""
    usage = {
        name: first.usage.get(name, 0) + second.usage.get(name, 0) for name in {**first.usage, **second.usage}
    }
    facts = {**first.facts, **second.facts}
    match first.facts.get("denials"), second.facts.get("denials"):
        case [list() as earlier, list() as later]:
            facts["denials"] = [*earlier, *(each for each in later if each not in earlier)]
        case _:
            pass
    return replace(
        second,
        usage=usage,
        facts=facts,
        survivors=(*first.survivors, *second.survivors),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def _remaining_budget(budget: Budget, spent: Outcome) -> Budget | None:
    """Return the budget of another attempt, or None if one of its limits is used up (P2)."""
    left = {
        kind: limit - spent.usage.get(kind, 0)
        for kind, limit in budget.as_dict().items()
        if kind in ("steps", "tokens", "cost_micros")
    }
    return replace(budget, **left) if all(amount > 0 for amount in left.values()) else None


async def _give_up(outcome: Outcome, problem: str, attempts: int, ctx: RunContext) -> Outcome:
    """Fail with the last problem. Logs the whole answer, because CLIs log only its beginning."""
    for line in outcome.output.splitlines():
        await ctx.emit(OutputLine("event", line))
    tries = f"{attempts} {'try' if attempts == 1 else 'tries'}"
    spent = "" if attempts == MAX_ATTEMPTS else ", and the budget is too small for another"
    error = OutputInvalid(
        f"no answer was valid in {tries}{spent}: {problem}",
        hint=f"get_subagent_logs(runId={ctx.run_id!r}) ends with the last answer, unchanged",
        tries=attempts,
        problem=problem,
        raw={"run_id": ctx.run_id, "characters": len(outcome.output)},
    )
    return replace(outcome, value=None, error=error, notes=(*outcome.notes, RAW_ANSWER_NOTE))
