"""Asks for the answer of an agent as JSON, without tools: the second phase of a run with a schema.

What the reader has found becomes the text of a form, because a weak model fills in a form well, but loses
what it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from retinue.answers import without_thoughts
from retinue.core import (
    ContextOverflow,
    EmptyReply,
    Json,
    ModelFailed,
    OutputInvalid,
    Unverified,
    clip,
    compact_json,
    counted,
)
from retinue.executors.local.answer_check import NOT_FOUND, AnswerCheck, InvalidAnswer
from retinue.executors.local.conversation import Conversation, Exchange
from retinue.executors.local.instructions import FORM_RULES
from retinue.executors.local.model_requests import LoopLimits, ModelRequester, RequestOptions, WriteLog
from retinue.executors.local.replies import fill_in

JSON_ANSWER_TRIES = 3
"""Requests for an answer in JSON."""
MAX_INVALID_ANSWER_CHARS = 800
"""How much of an invalid answer the model is shown again."""


@dataclass(slots=True, kw_only=True)
class JsonAnswer:
    """Turns what was found for one task into JSON."""

    requester: ModelRequester
    conversation: Conversation
    check: AnswerCheck
    limits: LoopLimits
    log: WriteLog

    async def request(self, text: str | None, found: str | None) -> str:
        """Return an answer in JSON that fits the schema (P3), in a limited number of tries.

        `text` is the answer so far, and `found` what the reader answered.
        """
        check = self.check
        check.found = found
        if text is not None:
            self.conversation.add(Exchange(text))
            with suppress(InvalidAnswer):
                return await check.checked_json(text)
        if found is not None and not self.limits.has_time:
            return await self._form_without_model(found)
        if found is not None:  # without the code, a weak model copies what was found
            self.conversation = Conversation(FORM_RULES, f"{check.task}\n\nWhat was found: {found}")
        try:
            return await self._fill_in_form(found)
        except InvalidAnswer as invalid:
            problem = str(invalid)
        if unverified := check.unverified(problem):
            raise unverified
        what = "was JSON" if check.schema is None else "fitted the output schema"
        raise OutputInvalid(
            f"no answer {what} in {counted(JSON_ANSWER_TRIES, 'try', 'tries')}: {problem}",
            hint="use a stronger model" + ("" if check.schema is None else ", or a simpler schema"),
            tries=JSON_ANSWER_TRIES,
            problem=problem,
        )

    async def _fill_in_form(self, found: str | None) -> str:
        """Ask for JSON until an answer is accepted, and tell the model what is wrong with each that is not.

        Raises `InvalidAnswer` for the last one.
        """
        schema = None if self.check.schema is None else self.check.schema.schema
        instruction = "Give your answer now: one JSON value, and nothing else."
        if schema is not None:
            shown = compact_json(schema)
            instruction = f"Give your answer now: JSON that fits this schema, and nothing else. {shown}"
        enforced = schema  # the server should enforce it; dropped if the server cannot
        problem = ""
        for _ in range(min(JSON_ANSWER_TRIES, self.requester.steps_left)):
            request = RequestOptions(schema=enforced, as_text=True, last_turn=instruction, temperature=0.0)
            try:
                reply = await self.requester.ask(self.conversation, request)
            except ContextOverflow:
                raise
            except EmptyReply:
                problem = "it was empty"
                continue
            except ModelFailed as error:
                if enforced is None:
                    raise
                enforced = None  # a server that cannot enforce this schema may still pass on the instruction
                problem = error.message
                continue
            answer = without_thoughts(reply.text)
            exchange = Exchange(clip(answer, MAX_INVALID_ANSWER_CHARS))
            self.conversation.add(exchange)
            try:
                return await self._accepted(answer, found, schema)
            except InvalidAnswer as invalid:
                problem = "it was cut off: make it shorter" if reply.finish == "length" else str(invalid)
                if self.check.nothing_found and problem.startswith(NOT_FOUND):
                    break  # the form asks for a place, and there is none
            await self.log(f"step {self.requester.steps}: not a valid answer: {problem}")
            exchange.feedback = f"That is not a valid answer: {problem}. Answer again, with JSON only."
        raise InvalidAnswer(problem)

    async def _accepted(self, answer: str, found: str | None, schema: Mapping[str, Json] | None) -> str:
        """Return an answer that passes the check, if needed with what was found in its first text."""
        try:
            return await self.check.checked_json(answer)
        except InvalidAnswer:
            if found is not None and schema is not None:
                with suppress(InvalidAnswer):
                    return await self.check.checked_json(fill_in(answer, schema, found))
            raise

    async def _form_without_model(self, found: str) -> str:
        """Return a form whose first text is what was found. Raises `Unverified` if it needs more."""
        with suppress(InvalidAnswer):
            if self.check.schema is not None:
                return await self.check.checked_json(fill_in("{}", self.check.schema.schema, found))
        raise Unverified(
            "the form was not filled in: the model is too slow for the time of this run",
            hint="give the agent more time, or use a faster model",
        )
