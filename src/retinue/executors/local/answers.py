"""The second phase: the answer under its schema, without tools, in a bounded number of tries (P3).

Servers hold replies to a schema more or less, so every answer is validated here, whatever they promise.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    Json,
    ModelFailed,
    NotJson,
    OutputInvalid,
    Reply,
    any_value,
    clip,
    counted,
    first_value,
    parse_lenient,
)
from retinue.executors.local.asker import ModelRequester, RequestOptions, Tell
from retinue.executors.local.conversation import Conversation, Exchange
from retinue.executors.local.moves import without_thoughts
from retinue.executors.wrappers import OutputSchema, ReferenceVerdict, remove_wrong_references

KEPT_OF_A_TRY = 800
"""Characters of an answer that was not valid, for the model to see what it wrote."""

Judge = Callable[[str], Awaitable[ReferenceVerdict]]
"""Which references of a text hold."""


class Structured(NamedTuple):
    output: str
    verdict: ReferenceVerdict


class Answers:
    def __init__(
        self, asker: ModelRequester, schema: OutputSchema | None, judge: Judge, tell: Tell, tries: int
    ) -> None:
        """Without a schema any JSON is an answer."""
        self._asker = asker
        self._schema = schema
        self._judge = judge
        self._tell = tell
        self._tries = tries
        self._then = "Give your answer now: one JSON value, and nothing else."
        if schema is not None:
            shown = json.dumps(schema.schema, ensure_ascii=False, separators=(",", ":"))
            self._then = f"Give your answer now: JSON that fits this schema, and nothing else. {shown}"

    async def accept(self, text: str) -> Structured | str:
        """The answer, if a text is one already, or what is wrong with it."""
        try:
            value = any_value(text) if self._schema is None else _value(text)
        except NotJson as error:
            return f"it is not JSON: {error}"
        problem = self._problem(value)
        if problem is not None:
            return problem
        verdict = await self._judge(json.dumps(value, ensure_ascii=False))
        checked = remove_wrong_references(value, verdict.wrong)
        if self._problem(checked) is not None:
            return f"these places do not exist: {', '.join(sorted(verdict.wrong)[:5])}"
        return Structured(json.dumps(checked, ensure_ascii=False), verdict)

    def _problem(self, value: Json) -> str | None:
        return None if self._schema is None else self._schema.problem(value)

    async def ask(self, conversation: Conversation) -> Structured:
        """Raises `OutputInvalid` when no try fits, or what the asker raises."""
        schema = None if self._schema is None else self._schema.schema
        enforced = schema is not None
        problem = ""
        for _ in range(min(self._tries, self._asker.steps_left)):
            request = RequestOptions(schema=schema if enforced else None, as_text=True, then=self._then)
            try:
                reply = await self._asker.ask(conversation, request)
            except ContextOverflow:
                raise
            except EmptyReply:
                problem = "it was empty"
                continue
            except ModelFailed as error:
                if not enforced:
                    raise
                enforced = False  # a server that does not take this schema may still take the words
                problem = error.message
                continue
            text = without_thoughts(reply.text)
            judged = await self.accept(text)
            if isinstance(judged, Structured):
                return judged
            problem = _cut(reply) or judged
            await self._tell(f"step {self._asker.steps}: not a valid answer: {problem}")
            told = f"That is not a valid answer: {problem}. Answer again, with JSON only."
            conversation.add(Exchange(said=clip(text, KEPT_OF_A_TRY), told=told))
        raise OutputInvalid(
            f"no answer {'was JSON' if schema is None else 'fitted the output schema'}"
            f" in {counted(self._tries, 'try', 'tries')}: {problem}",
            hint="use a stronger model" + ("" if schema is None else ", or a simpler schema"),
            tries=self._tries,
            problem=problem,
        )


def _value(text: str) -> Json:
    try:
        return parse_lenient(text)
    except NotJson:
        found = first_value(text)
        if found is None:
            raise
        return found[0]


def _cut(reply: Reply) -> str:
    return "it was cut off: make it shorter" if reply.finish == "length" else ""
