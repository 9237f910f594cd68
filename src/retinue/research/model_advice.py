"""Lets a model explain the findings of a report, in the one place that a report has for it.

The model sees numbered findings and cites them in each sentence. A sentence that names anything else is
dropped (P3). The model changes nothing else: in trials, letting it order the findings made most reports
worse. A note says once what it did, or why it did nothing (P8).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from retinue.core import (
    UNMETERED,
    BudgetKind,
    Canceled,
    DeadlineExceeded,
    Endpoint,
    Json,
    Model,
    ModelExplanation,
    ModelFacts,
    ModelFailed,
    Outcome,
    OutputLine,
    Prompt,
    Reply,
    RetinueError,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Spending,
    Task,
    Turn,
    clip,
    estimate_tokens,
)
from retinue.runtime import PreparedRun, Supervisor

MAX_CANDIDATES = 20
"""How many findings the model sees."""
MAX_REPLY_TOKENS = 500
MAX_PROMPT_TOKENS, CONTEXT_SHARE = 8_000, 0.3
"""The limit of a prompt, in tokens and as a share of the loaded context."""
MAX_SENTENCES, MAX_SENTENCE_CHARS = 4, 280
MAX_CANDIDATE_CHARS = 300

_SYSTEM = """\
You help a developer find their way in a codebase. You are given a question and a numbered list of findings
of a search. Reply with JSON alone. `explanation`: one to four short sentences that answer the question from
these findings alone, each with the numbers it rests on in `cites`. Name nothing that the list does not
show. If no finding answers the question, the list is empty."""
REPLY_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "explanation": {
            "type": "array",
            "maxItems": MAX_SENTENCES,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "maxLength": MAX_SENTENCE_CHARS},
                    "cites": {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
                },
                "required": ["text", "cites"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["explanation"],
    "additionalProperties": False,
}

_NAME = re.compile(
    r"`[^`]+`|\w{2,}(?:[./:\\]+\w+)+|\w*[a-z]_\w+|_\w+|\w+(?=\()|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*"
)
"""Matches text that can only be a name: a path, a place, an identifier, anything in backticks."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a model says about the findings."""

    explanation: tuple[str, ...]
    """Sentences that name only what the model was shown."""
    dropped: int
    """How many sentences named something else or cited nothing."""
    model: str
    """The model that answered."""


async def ask_for_advice(
    model: Model, question: str, candidates: Sequence[str], spending: Spending = UNMETERED
) -> Advice:
    """Ask the model to explain findings. Raises `ModelFailed` if its reply is unusable."""
    shown = _select_candidates(await model.facts(), question, candidates)
    reply = await _ask(model, _build_prompt(question, shown), spending)
    answer = _parse_reply(reply.text)
    if answer is None:
        raise ModelFailed(f"{reply.model} did not answer with the JSON it was asked for")
    explained = _as_list(answer.get("explanation"))[:MAX_SENTENCES]
    sentences = [_check_sentence(one, question, shown) for one in explained]
    explanation = tuple(dict.fromkeys(sentence for sentence in sentences if sentence))
    if not explanation:
        raise ModelFailed(f"{reply.model} said nothing usable about the {len(shown)} findings it was shown")
    return Advice(explanation, sum(1 for sentence in sentences if not sentence), reply.model)


async def _ask(model: Model, prompt: Prompt, spending: Spending) -> Reply:
    """Reserve the tokens of the prompt and of the longest reply, then ask (P2)."""
    size = sum(estimate_tokens(turn.text) for turn in prompt.turns)
    async with (
        spending.reserving(BudgetKind.STEPS, 1) as step,
        spending.reserving(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
    ):
        step.settle(1)
        reply = await model.reply(prompt)
        tokens.settle((reply.prompt_tokens or size) + (reply.reply_tokens or estimate_tokens(reply.text)))
    return reply


def _select_candidates(facts: ModelFacts, question: str, candidates: Sequence[str]) -> list[str]:
    """Return the first candidates, as many as fit the model's context."""
    room = min(MAX_PROMPT_TOKENS, round(facts.context * CONTEXT_SHARE))
    room -= estimate_tokens(_SYSTEM + question)
    shown: list[str] = []
    for candidate in candidates[:MAX_CANDIDATES]:
        line = clip(" ".join(candidate.split()), MAX_CANDIDATE_CHARS)
        room -= estimate_tokens(line) + 3
        if room < 0:
            break
        shown.append(line)
    if len(shown) < min(2, len(candidates)):
        raise ModelFailed(
            f"the question and what was found do not fit {facts.model}, loaded with {facts.context} tokens",
            hint="load the model with a larger context",
        )
    return shown


def _build_prompt(question: str, shown: Sequence[str]) -> Prompt:
    """Return the prompt with the question and the numbered candidates."""
    findings = "\n".join(f"{number}. {candidate}" for number, candidate in enumerate(shown, 1))
    return Prompt(
        turns=(Turn("system", _SYSTEM), Turn("user", f"Question: {question}\n\nFindings:\n{findings}")),
        schema=REPLY_SCHEMA,
        max_tokens=MAX_REPLY_TOKENS,
    )


def _parse_reply(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a reply. Small models put thoughts, fences and words around it."""
    # Imported here because most questions are answered without a model.
    from retinue.core import first_value
    from retinue.executors import without_thoughts

    found = first_value(without_thoughts(text))
    return cast("dict[str, Any]", found[0]) if found is not None and isinstance(found[0], dict) else None


def _as_list(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def _positions(answer: object, count: int) -> tuple[int, ...]:
    """Return the distinct positions of the candidates that a model's list of numbers names."""
    numbers = [number for number in _as_list(answer) if isinstance(number, int) and number is not True]
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))


def _check_sentence(answer: object, question: str, shown: Sequence[str]) -> str | None:
    """Return the text of a sentence if it cites what was shown and names nothing else."""
    sentence = cast(dict[str, object], answer) if isinstance(answer, dict) else {}
    text = " ".join(str(sentence.get("text", "")).split())
    if not any(char.isalpha() for char in text) or not _positions(sentence.get("cites"), len(shown)):
        return None
    known = "\n".join((question, *shown))
    if any(name.strip("`()") not in known for name in _NAME.findall(text)):
        return None
    return clip(text, MAX_SENTENCE_CHARS)


Advisor = Callable[[str, Sequence[str], float], Awaitable[Advice]]
"""Asks a model about findings. Takes the question, the findings and the seconds that the model has. Raises
`RetinueError` if there is no usable advice."""

TIME_SHARE = 0.5
"""The share of the remaining time that a model gets."""
MIN_CANDIDATES = 2
"""With fewer findings there is nothing to explain."""


async def explain_findings(
    advisor: Advisor, question: str, findings: Sequence[str], seconds: float
) -> tuple[ModelExplanation | None, str | None]:
    """Return the model's explanation, and a note on what it did or why it did nothing."""
    if len(findings) < MIN_CANDIDATES:
        return None, None
    try:
        advice = await advisor(question, findings, seconds * TIME_SHARE)
    except RetinueError as error:
        return None, f"Without the model: {clip(error.message, 160)}."
    dropped = f"; {advice.dropped} of its sentences left out" if advice.dropped else ""
    return (
        ModelExplanation(model=advice.model, sentences=advice.explanation),
        f"The explanation is by {advice.model}{dropped}. All else was found without a model.",
    )


@dataclass(frozen=True, slots=True)
class ModelAdvisor:
    """Asks a model in a separate run, which waits for a free slot at the model's endpoint."""

    supervisor: Supervisor
    parent: RunId
    cwd: Path
    model: Callable[[], Model]
    """Returns the model, or raises an error if it cannot be used."""

    async def __call__(self, question: str, candidates: Sequence[str], seconds: float) -> Advice:
        deadline = time.monotonic() + seconds
        model = self.model()
        try:
            async with asyncio.timeout(seconds):
                facts = await model.facts()
                left = max(0.0, deadline - time.monotonic())
                spec = RunSpec(
                    agent="explanation",
                    task=question,
                    executor="local",
                    caller="research",
                    parent=self.parent,
                    model=facts.model,
                    limits=RunLimits(queue_s=left, run_s=left),
                    endpoint=Endpoint(facts.endpoint, facts.slots),
                )
                performed = await self.supervisor.perform(
                    PreparedRun(spec, AdviceRun(model, candidates), self.cwd)
                )
        except TimeoutError:
            raise _timeout_error(seconds) from None
        if performed.outcome is not None:
            return performed.outcome.result
        if performed.run.status is RunStatus.TIMEOUT:
            raise _timeout_error(seconds)
        match performed.run.error:
            case {"message": str() as message} if performed.run.status is RunStatus.ERROR:
                raise ModelFailed(message)
            case _:
                raise Canceled("the request to the model was canceled")


def _timeout_error(seconds: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"it did not answer within {seconds:.1f} seconds")


@dataclass(frozen=True, slots=True)
class AdviceRun:
    """The executor of a run that asks a model; `result` of its outcome is the `Advice`."""

    model: Model
    candidates: Sequence[str]

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        advice = await ask_for_advice(self.model, task.prompt, self.candidates, ctx.spending)
        for sentence in advice.explanation:
            await ctx.emit(OutputLine("stdout", sentence))
        return Outcome(" ".join(advice.explanation), result=advice)
