"""Lets a model order and explain what a role found.

The model answers with the numbers of the places that it was shown, so it cannot add a place. A sentence that
names anything else is dropped (P3). If the search is sure of its first place, that place stays first. If the
model gives no usable advice, the result stays unchanged and says why (P8).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    ModelFacts,
    ModelFailed,
    Outcome,
    OutputLine,
    Prompt,
    Reply,
    RetinueError,
    RoleResult,
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
    join_notes,
)
from retinue.research.locator import LocatorResult, locator_result
from retinue.research.role_context import RoleContext
from retinue.runtime import PreparedRun, Supervisor

MAX_CANDIDATES = 20
"""How many candidates the model sees. In trials, these included nine out of ten right files."""
MAX_REPLY_TOKENS = 500
MAX_PROMPT_TOKENS, CONTEXT_SHARE = 8_000, 0.3
"""The limit of a prompt, in tokens and as a share of the loaded context."""
MAX_SENTENCES, MAX_SENTENCE_CHARS = 4, 280
MAX_CANDIDATE_CHARS = 300

_SYSTEM = """\
You help a developer find their way in a codebase. You are given a question and a numbered list of places
that a search found. Reply with JSON alone. `order`: the numbers of the places that answer the question,
the best first, at most five. `explanation`: one to four short sentences that answer the question from
these places alone, each with the numbers it rests on in `cites`. Name nothing that the list does not
show. If no place answers the question, both lists are empty."""
REPLY_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "order": {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
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
    "required": ["order", "explanation"],
    "additionalProperties": False,
}

_NAME = re.compile(
    r"`[^`]+`|\w{2,}(?:[./:\\]+\w+)+|\w*[a-z]_\w+|_\w+|\w+(?=\()|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*"
)
"""Matches text that can only be a name: a path, a place, an identifier, anything in backticks."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A model's advice about the candidates, which are the places or findings of a role."""

    preferred: tuple[int, ...]
    """Positions of the candidates that the model puts first, best first. The others keep their order."""
    explanation: tuple[str, ...]
    """Sentences that name only what the model was shown."""
    dropped: int
    """How many sentences named something else or cited nothing."""
    model: str
    """The model that answered."""

    def order(self, count: int) -> list[int]:
        """Return the positions of `count` candidates in the model's order."""
        return [*self.preferred, *(position for position in range(count) if position not in self.preferred)]


async def ask_for_advice(
    model: Model, question: str, candidates: Sequence[str], spending: Spending = UNMETERED
) -> Advice:
    """Ask the model about candidates. Raises `ModelFailed` if its reply is unusable."""
    shown = _select_candidates(await model.facts(), question, candidates)
    reply = await _ask(model, _build_prompt(question, shown), spending)
    answer = _parse_reply(reply.text)
    if answer is None:
        raise ModelFailed(f"{reply.model} did not answer with the JSON it was asked for")
    preferred = _positions(answer.get("order"), len(shown))
    explained = _as_list(answer.get("explanation"))[:MAX_SENTENCES]
    sentences = [_check_sentence(one, question, shown) for one in explained]
    explanation = tuple(dict.fromkeys(sentence for sentence in sentences if sentence))
    if not preferred and not explanation:
        raise ModelFailed(f"{reply.model} chose none of the {len(shown)} places it was shown")
    return Advice(preferred, explanation, sum(1 for sentence in sentences if not sentence), reply.model)


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
    places = "\n".join(f"{number}. {candidate}" for number, candidate in enumerate(shown, 1))
    return Prompt(
        turns=(Turn("system", _SYSTEM), Turn("user", f"Question: {question}\n\nPlaces:\n{places}")),
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


Advisor = Callable[[str, str, Sequence[str], float], Awaitable[Advice]]
"""Asks a model about the candidates of a role. Takes the role, the question, the candidates and the seconds
that the model has. Raises `RetinueError` if there is no usable advice."""

ADVISED_ROLES = ("locator", "analyzer", "patterns")
TIME_SHARE = 0.5
"""The share of the remaining time that a model gets; the roles that follow need the rest."""
MIN_CANDIDATES = 2
"""With fewer candidates there is nothing to order."""


async def advise_locator(
    advisor: Advisor, context: RoleContext, result: LocatorResult, seconds: float
) -> LocatorResult:
    """Return the locator's result with its places in the model's order, explained by the model."""
    candidates = [
        f"{context.reference(place.entry, place.line or None)} ({place.kind}): {'; '.join(place.why)}"
        for place in result.places
    ]
    advice = await _get_advice(advisor, "locator", context, candidates, seconds)
    if not isinstance(advice, Advice):
        return replace(result, notes=_notes_without_advice(result, advice))
    order = advice.order(len(result.places))
    if result.confidence == "high":
        order = [0, *(position for position in order if position)]
    places = [result.places[position] for position in order]
    notes = join_notes(result.notes, _credit_note(advice, "Ordered and explained"))
    firsts = [context.reference(place.entry, place.line or None) for place in places]
    references = tuple(dict.fromkeys((*firsts, *result.references)))
    ordered = locator_result(context, places, references, result.confidence, notes)
    return replace(ordered, summary=_explained_summary(advice, ordered.summary))


async def advise_role(
    advisor: Advisor, role: str, context: RoleContext, result: RoleResult, seconds: float
) -> RoleResult:
    """Return another role's result, explained by the model. Examples are also put into the model's order."""
    advice = await _get_advice(advisor, role, context, result.key_findings, seconds)
    if not isinstance(advice, Advice):
        return replace(result, notes=_notes_without_advice(result, advice))
    order = advice.order(len(result.key_findings)) if role == "patterns" else range(len(result.key_findings))
    return replace(
        result,
        summary=_explained_summary(advice, result.summary),
        key_findings=(*advice.explanation[1:], *(result.key_findings[position] for position in order)),
        notes=join_notes(result.notes, _credit_note(advice, "Explained")),
    )


async def _get_advice(
    advisor: Advisor, role: str, context: RoleContext, candidates: Sequence[str], seconds: float
) -> Advice | RetinueError | None:
    """Return the advice, the error if there is none, or None if there are too few candidates to ask about."""
    if len(candidates) < MIN_CANDIDATES:
        return None
    try:
        return await advisor(role, context.request.question, candidates, seconds * TIME_SHARE)
    except RetinueError as error:
        return error


def _notes_without_advice(result: RoleResult, error: RetinueError | None) -> str | None:
    if error is None:
        return result.notes
    return join_notes(result.notes, f"Without the model: {clip(error.message, 160)}.")


def _explained_summary(advice: Advice, summary: str) -> str:
    return join_notes(*advice.explanation[:1], summary) or ""


def _credit_note(advice: Advice, done: str) -> str:
    dropped = f"; {advice.dropped} of its sentences left out" if advice.dropped else ""
    return f"{done} by {advice.model}{dropped}."


@dataclass(frozen=True, slots=True)
class ModelAdvisor:
    """Asks a model in a separate run, which waits for a free slot at the model's endpoint."""

    supervisor: Supervisor
    parent: RunId
    cwd: Path
    model: Callable[[], Model]
    """Returns the model, or raises an error if it cannot be used."""

    async def __call__(self, role: str, question: str, candidates: Sequence[str], seconds: float) -> Advice:
        deadline = time.monotonic() + seconds
        model = self.model()
        try:
            async with asyncio.timeout(seconds):
                facts = await model.facts()
                left = max(0.0, deadline - time.monotonic())
                spec = RunSpec(
                    agent=role,
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
