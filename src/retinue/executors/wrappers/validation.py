"""Holds an agent's answer to the JSON, and to the schema, that it promises (P3), whatever performs its tasks.

An answer that does not fit goes back with what is wrong with it, twice at most: into the same session where
the CLI can go on with it, else with the whole task. All tries are one run: one deadline, one budget.
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
    Resumed,
    RunContext,
    Task,
    any_value,
    as_text,
    clip,
    embedded_values,
    stated_values,
)
from retinue.executors.wrappers.output_schema import OutputSchema
from retinue.executors.wrappers.session import is_session_lost

MOST_TRIES = 3
KEPT_OF_A_TRY = 800
"""Characters of a refused answer that whoever has forgotten it is shown."""
JSON_ONLY_PROMPT = "Answer with one JSON value and nothing else."
RAW = "no answer was valid; the last one is in the run's result and at the end of its log, as it came"

MakeExecutor = Callable[[Agent], Executor]
"""Makes what performs an agent's tasks; asked again for each try, which has less left to spend."""


class AnswerRefused(Exception):
    """Holds in one line what is wrong with an answer."""


class WithValidation:
    """An executor whose answers are JSON, or an error that says why not."""

    def __init__(self, perform: MakeExecutor, agent: Agent) -> None:
        """Raises `InvalidInput` for a schema that is none."""
        self._perform = perform
        self._agent = agent
        self._schema = None if agent.output_schema is None else OutputSchema(agent.output_schema)

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        began = time.monotonic()
        outcome = await self._perform(self._agent).run(task, ctx)
        tries = 1
        while outcome.error is None:
            try:
                return replace(outcome, value=self._value(outcome))
            except AnswerRefused as refused:
                problem = str(refused)
            await ctx.emit(OutputLine("event", f"answer {tries} is not valid: {problem}"))
            left = _left(self._agent.budget, outcome)
            if tries == MOST_TRIES or left is None:
                return await _given_up(outcome, problem, tries, ctx)
            seconds = None if ctx.seconds is None else max(0.0, ctx.seconds - (time.monotonic() - began))
            executor = self._perform(replace(self._agent, budget=left))
            again = await _again(executor, task, outcome, problem, replace(ctx, seconds=seconds))
            outcome = _together(outcome, again)
            tries += 1
        return outcome

    def _value(self, outcome: Outcome) -> Json:
        """The last value that fits: whatever stands before it led up to it."""
        if outcome.cut:
            raise AnswerRefused(f"it is longer than {len(outcome.output)} characters")
        problem: str | None = None
        for value in reversed(self._values(outcome)):
            found = None if self._schema is None else self._schema.problem(value)
            if found is None:
                return value
            problem = problem or found
        raise AnswerRefused(problem)

    def _values(self, outcome: Outcome) -> Sequence[Json]:
        """As the CLI checked it, or what its text holds."""
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


async def _again(executor: Executor, task: Task, before: Outcome, problem: str, ctx: RunContext) -> Outcome:
    wanted = f"That is no valid answer: {problem}. Answer again, with the corrected JSON and nothing else."
    lost: Outcome | None = None
    if session := as_text(before.facts.get("session_id")):
        spent = ctx.resume or Resumed(session)
        resume = Resumed(
            session,
            spent.cost_micros + before.usage.get("cost_micros", 0),
            spent.tokens + before.usage.get("tokens", 0),
        )
        outcome = await executor.run(replace(task, prompt=wanted), replace(ctx, resume=resume))
        if not is_session_lost(outcome):
            return outcome
        lost = outcome
    said = clip(before.output, KEPT_OF_A_TRY)
    whole = f"{task.prompt}\n\nAn earlier answer to this was:\n{said}\n\n{wanted}"
    outcome = await executor.run(replace(task, prompt=whole), replace(ctx, resume=None))
    return outcome if lost is None else _together(lost, outcome)


def _together(first: Outcome, second: Outcome) -> Outcome:
    """The second, with what the first took and what it met."""
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


def _left(budget: Budget, spent: Outcome) -> Budget | None:
    """What another try may spend; None if nothing is left of something (P2)."""
    left = {
        kind: limit - spent.usage.get(kind, 0)
        for kind, limit in budget.as_dict().items()
        if kind in ("steps", "tokens", "cost_micros")
    }
    return replace(budget, **left) if all(amount > 0 for amount in left.values()) else None


async def _given_up(outcome: Outcome, problem: str, tries: int, ctx: RunContext) -> Outcome:
    """With the raw text: CLIs' logs hold only the beginning of what they say."""
    for line in outcome.output.splitlines():
        await ctx.emit(OutputLine("event", line))
    enough = "" if tries == MOST_TRIES else ", and nothing is left to spend on another"
    error = OutputInvalid(
        f"no answer was valid in {tries} {'try' if tries == 1 else 'tries'}{enough}: {problem}",
        hint=f"get_subagent_logs(runId={ctx.run_id!r}) ends with the last answer as it came",
        tries=tries,
        problem=problem,
        raw={"runId": ctx.run_id, "characters": len(outcome.output)},
    )
    return replace(outcome, value=None, error=error, notes=(*outcome.notes, RAW))
