"""What a model says of a role's finds: an order, and an explanation that cites them.

It answers with the numbers of what it was shown, so it can add no place; and a sentence that names anything
it was not shown is left out (P3). Knows nothing of roles, runs or servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from retinue.core import (
    UNMETERED,
    BudgetKind,
    Json,
    Model,
    ModelFacts,
    ModelFailed,
    Prompt,
    Reply,
    Spending,
    Turn,
    clip,
    estimate_tokens,
)

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
    async with (
        spending.reserving(BudgetKind.STEPS, 1) as step,
        spending.reserving(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
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
