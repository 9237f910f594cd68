"""What a model says of a role's finds: an order, and an explanation that cites them.

It answers with the numbers of what it was shown, so it can add no place; and a sentence that names anything
it was not shown is left out (P3). Knows nothing of roles, runs or servers."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import anyio

from retinue.codebase import Place
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
    Turn,
    clip,
    estimate_tokens,
    join_notes,
)
from retinue.research.locator import told
from retinue.research.role_context import Inquiry
from retinue.research.role_runs import Performing
from retinue.runtime import Supervisor, Work

MOST_SHOWN = 20
"""Finds: in the trials the right file was among so many for nine questions of ten."""
REPLY_TOKENS = 500
MOST_TOKENS, SHARE = 8_000, 0.3
"""Of a prompt, and of the loaded context."""
SENTENCES, SENTENCE_CHARS = 4, 280
_LONGEST_FIND = 300

_SYSTEM = """\
You help a developer find their way in a codebase. You are given a question and a numbered list of places
that a search found. Reply with JSON alone. `order`: the numbers of the places that answer the question,
the best first, at most five. `explanation`: one to four short sentences that answer the question from
these places alone, each with the numbers it rests on in `cites`. Name nothing that the list does not
show. If no place answers the question, both lists are empty."""
SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "order": {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
        "explanation": {
            "type": "array",
            "maxItems": SENTENCES,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "maxLength": SENTENCE_CHARS},
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
"""What can only be the name of something: a path, a place, an identifier, whatever stands in backticks."""


@dataclass(frozen=True, slots=True)
class Advice:
    first: tuple[int, ...]
    """Positions of the finds that the model puts first, best first; the others keep their order."""
    explanation: tuple[str, ...]
    left_out: int
    """Sentences that named what was not shown, or cited nothing."""
    model: str
    """The one that answered."""

    def order(self, count: int) -> list[int]:
        """The positions of so many finds, in the model's order."""
        return [*self.first, *(position for position in range(count) if position not in self.first)]


async def advise(model: Model, question: str, finds: Sequence[str], spending: Spending = UNMETERED) -> Advice:
    """Raises `ModelFailed` if the reply cannot be used, and whatever the model or the budget raises."""
    shown = _shown(await model.facts(), question, finds)
    reply = await _reply(model, _prompt(question, shown), spending)
    said = _parsed(reply.text)
    if said is None:
        raise ModelFailed(f"{reply.model} did not answer with the JSON it was asked for")
    first = _numbers(said.get("order"), len(shown))
    sentences = [_sentence(one, question, shown) for one in _list(said.get("explanation"))[:SENTENCES]]
    explanation = tuple(dict.fromkeys(sentence for sentence in sentences if sentence))
    if not first and not explanation:
        raise ModelFailed(f"{reply.model} named no place of the {len(shown)} it was shown")
    return Advice(first, explanation, sum(1 for sentence in sentences if not sentence), reply.model)


async def _reply(model: Model, prompt: Prompt, spending: Spending) -> Reply:
    """Reserved before it is spent (P2): the prompt by our estimate, and the longest reply."""
    size = sum(estimate_tokens(turn.text) for turn in prompt.turns)
    with (
        spending.reserve(BudgetKind.STEPS, 1) as step,
        spending.reserve(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
    ):
        step.settle(1)
        reply = await model.reply(prompt)
        tokens.settle((reply.prompt_tokens or size) + (reply.reply_tokens or estimate_tokens(reply.text)))
    return reply


def _shown(facts: ModelFacts, question: str, finds: Sequence[str]) -> list[str]:
    """As many finds, the best first, as the model can hold."""
    room = min(MOST_TOKENS, round(facts.context * SHARE)) - estimate_tokens(_SYSTEM + question)
    shown: list[str] = []
    for find in finds[:MOST_SHOWN]:
        line = clip(" ".join(find.split()), _LONGEST_FIND)
        room -= estimate_tokens(line) + 3
        if room < 0:
            break
        shown.append(line)
    if len(shown) < min(2, len(finds)):
        raise ModelFailed(
            f"the question and what was found do not fit {facts.model}, loaded with {facts.context} tokens",
            hint="load the model with a larger context",
        )
    return shown


def _prompt(question: str, shown: Sequence[str]) -> Prompt:
    places = "\n".join(f"{number}. {find}" for number, find in enumerate(shown, 1))
    return Prompt(
        turns=(Turn("system", _SYSTEM), Turn("user", f"Question: {question}\n\nPlaces:\n{places}")),
        schema=SCHEMA,
        max_tokens=REPLY_TOKENS,
    )


def _parsed(text: str) -> dict[str, Any] | None:
    """The object in it: small models put thoughts, fences and words around what they are asked for."""
    # Imported here because most questions are answered without a model.
    from retinue.core import first_value
    from retinue.executors import without_thoughts

    found = first_value(without_thoughts(text))
    return cast("dict[str, Any]", found[0]) if found is not None and isinstance(found[0], dict) else None


def _list(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def _numbers(given: object, count: int) -> tuple[int, ...]:
    """Positions, each once, of those that exist."""
    numbers = [number for number in _list(given) if isinstance(number, int) and number is not True]
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))


def _sentence(given: object, question: str, shown: Sequence[str]) -> str | None:
    """The text, if it cites what was shown and names nothing else."""
    said = cast(dict[str, object], given) if isinstance(given, dict) else {}
    text = " ".join(str(said.get("text", "")).split())
    if not any(char.isalpha() for char in text) or not _numbers(said.get("cites"), len(shown)):
        return None
    known = "\n".join((question, *shown))
    if any(name.strip("`()") not in known for name in _NAME.findall(text)):
        return None
    return clip(text, SENTENCE_CHARS)


# MERGED advised: A role's result with a model's word on it: in its order, explained by it, and said to be.
#
# What the search is sure of stays first. Where there is no word, or none that can be used, the result stays as
# it was and says why (P8). Knows nothing of how a model is reached.

Consult = Callable[[str, str, Sequence[str], float], Awaitable[Advice]]
"""Asks a model about a role's finds: the role, the question, the finds, and how many seconds it has. Raises
`RetinueError` where nothing can be had of it."""

ADVISED = ("locator", "analyzer", "patterns")
TIME_SHARE = 0.5
"""Of the time that is left: the roles that follow need the rest."""
WORTH_ASKING = 2
"""Finds: there is nothing to order in one."""


async def advised_places(
    consult: Consult, inquiry: Inquiry, result: RoleResult, places: Sequence[Place], seconds: float
) -> tuple[RoleResult, tuple[Place, ...]]:
    """The locator's result and its places, in the model's order."""
    finds = [
        f"{reference} ({place.kind}): {'; '.join(place.why)}"
        for reference, place in zip(result.references, places, strict=True)
    ]
    advice = await _word(consult, "locator", inquiry, finds, seconds)
    if not isinstance(advice, Advice):
        return _unadvised(result, advice), tuple(places)
    order = advice.order(len(places))
    if result.confidence == "high":
        order = [0, *(position for position in order if position)]
    ordered = [places[position] for position in order]
    notes = join_notes(result.notes, _by(advice, "Ordered and explained"))
    retold = told(inquiry, ordered, result.confidence, notes)
    return replace(retold, summary=_explained(advice, retold.summary)), tuple(ordered)


async def advised(
    consult: Consult, role: str, inquiry: Inquiry, result: RoleResult, seconds: float
) -> RoleResult:
    """The result of a later role, explained; examples also in the model's order."""
    advice = await _word(consult, role, inquiry, result.key_findings, seconds)
    if not isinstance(advice, Advice):
        return _unadvised(result, advice)
    order = advice.order(len(result.key_findings)) if role == "patterns" else range(len(result.key_findings))
    return replace(
        result,
        summary=_explained(advice, result.summary),
        key_findings=(*advice.explanation[1:], *(result.key_findings[position] for position in order)),
        notes=join_notes(result.notes, _by(advice, "Explained")),
    )


async def _word(
    consult: Consult, role: str, inquiry: Inquiry, finds: Sequence[str], seconds: float
) -> Advice | RetinueError | None:
    """What the model says, or why it says nothing; None if it need not be asked."""
    if len(finds) < WORTH_ASKING:
        return None
    try:
        return await consult(role, inquiry.asked.text, finds, seconds * TIME_SHARE)
    except RetinueError as error:
        return error


def _unadvised(result: RoleResult, why: RetinueError | None) -> RoleResult:
    if why is None:
        return result
    return replace(result, notes=join_notes(result.notes, f"Without the model: {clip(why.message, 160)}."))


def _explained(advice: Advice, summary: str) -> str:
    return join_notes(*advice.explanation[:1], summary) or ""


def _by(advice: Advice, done: str) -> str:
    left_out = f"; {advice.left_out} of its sentences left out" if advice.left_out else ""
    return f"{done} by {advice.model}{left_out}."


# MERGED model_advisor: Asks a model about a role's finds, in a run of its own: it waits for its turn at the model's endpoint.


@dataclass(frozen=True, slots=True)
class ByModel:
    supervisor: Supervisor
    parent: RunId
    cwd: Path
    model: Callable[[], Model]
    """Raises what is wrong with it when it is wanted."""

    async def __call__(self, role: str, question: str, finds: Sequence[str], seconds: float) -> Advice:
        said: list[Advice] = []
        began = time.monotonic()
        model = self.model()
        facts = None
        with anyio.move_on_after(seconds):
            facts = await model.facts()
        if facts is None:
            raise _late(seconds)

        async def ask(ctx: RunContext) -> Outcome:
            advice = await advise(model, question, finds, ctx.spending)
            said.append(advice)
            for sentence in advice.explanation:
                await ctx.emit(OutputLine("stdout", sentence))
            return Outcome(" ".join(advice.explanation))

        left = max(0.0, seconds - (time.monotonic() - began))
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
        executor, run = Performing(ask), None
        with anyio.move_on_after(left):  # the turn that it waits for and its own time together
            run = await self.supervisor.perform(Work(spec, executor, self.cwd))
        if said:
            return said[0]
        if run is None or run.status is RunStatus.TIMEOUT:
            raise _late(seconds)
        raise executor.error or Canceled("it was not asked to the end")


def _late(seconds: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"it did not answer within {seconds:.1f} seconds")
