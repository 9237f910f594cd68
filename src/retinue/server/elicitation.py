"""Puts the questions of runs to the person at the host while a call waits, in the way of its protocol era.

Up to 2025-11-25 the host is asked in the middle of the call. From 2026-07-28 on the call ends with what is
asked, and the host repeats it with the answers: a question's id then says which run the call was about, so
nothing has to be remembered between the two and a restart in between loses nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from retinue.core import Conflict, Message, MessageId
from retinue.server.questions import answer_in, form, input_requests, shows_forms
from retinue.service import Service

REMEMBERED_REFUSALS = 1000


class Refusals:
    """Questions that the person would not answer: they are the model's from then on."""

    def __init__(self) -> None:
        self._ids: deque[MessageId] = deque(maxlen=REMEMBERED_REFUSALS)

    def add(self, message_id: MessageId) -> None:
        self._ids.append(message_id)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._ids


class Person:
    """The asker of one call. Takes nothing unless the user wants it and the host shows forms."""

    def __init__(self, ctx: Context[Service, Any], refused: Refusals, *, may_be_asked: bool = True) -> None:
        self._ctx = ctx
        self._refused = refused
        self._service = ctx.request_context.lifespan_context
        wanted = may_be_asked and self._service.settings.runtime.ask_person
        self._is_asked = wanted and shows_forms(ctx.client_capabilities)
        self._is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.required: InputRequiredResult | None = None
        """What the call must end with, for the host to ask."""

    def answers(self) -> Mapping[Message, ElicitResult]:
        """The host's answers, when it repeats the call; what we never asked is left out."""
        given = self._ctx.input_responses or {} if self._is_asked else {}
        found = {self._service.runs.question(key): filled for key, filled in given.items()}
        return {
            message: filled
            for message, filled in found.items()
            if message is not None and isinstance(filled, ElicitResult)
        }

    async def deliver(self, message: Message, filled: ElicitResult) -> None:
        """To the run; somebody else may have been quicker, or the run has ended."""
        if filled.action == "accept":
            with suppress(Conflict):
                await self._service.runs.reply(message.run_id, message.id, answer_in(filled))
        else:
            self._refused.add(message.id)

    def accepts(self, message: Message) -> bool:
        return self._is_asked and message.id not in self._refused

    async def ask(self, messages: Sequence[Message], timeout_s: float) -> bool:
        if self._is_modern:
            self.required = InputRequiredResult(input_requests=input_requests(messages))
            return False
        return await self._ask_now(messages[0], timeout_s)

    async def _ask_now(self, message: Message, timeout_s: float) -> bool:
        """Until the person answers, somebody else does, or the time is over."""
        answered = asyncio.create_task(self._elicit(message))
        settled = asyncio.create_task(self._service.runs.waiter.until_settled(message))
        try:
            await asyncio.wait((answered, settled), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answered.cancel()
            settled.cancel()
            await asyncio.gather(answered, settled, return_exceptions=True)
        if not answered.cancelled():
            await self.deliver(message, answered.result())
        return not (answered.cancelled() and settled.cancelled())

    async def _elicit(self, message: Message) -> ElicitResult:
        """A request of ours passes no door, so the question's secrets are taken out here (P6)."""
        question = self._service.redactor.redact(message.question)
        asked = form(dataclasses.replace(message, question=question))
        try:
            return await self._ctx.session.elicit_form(
                asked.message, asked.requested_schema, self._ctx.request_id
            )
        except (MCPError, ValidationError):  # the host cannot ask after all
            return ElicitResult(action="cancel")
