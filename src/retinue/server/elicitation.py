"""Puts the questions of runs to the person at the host: forms with a text field, or with the verdicts.

How the host is asked depends on its protocol revision. Up to 2025-11-25 the server asks in the middle of the
call. From 2026-07-28 on the call returns what to ask, and the host repeats it with the answers. The id of the
question says which run the call was about, so the server remembers nothing in between and may even restart.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from retinue.core import Conflict, Message, MessageId, PermissionWanted, counted
from retinue.server.core_tools import ToolContext
from retinue.service import RunService

MAX_REMEMBERED_QUESTIONS = 1000
MAX_REQUEST_CHARACTERS, MAX_SHOWN_RULE = 10_000, 200
"""Maximum numbers of characters of a request for a permission, and of its rule, that a form shows."""
ANSWER_FIELD = "answer"
REASON_FIELD = "reason"
VERDICTS = {"allow": "Allow once", "always": "Always allow", "deny": "Deny"}


def form_schema(permission: PermissionWanted | None) -> dict[str, Any]:
    """The fields of a form: a text for a question, or the verdicts for a permission and a reason."""
    answer: dict[str, Any] = {"type": "string", "title": "Answer"}
    fields: dict[str, Any] = {ANSWER_FIELD: answer}
    if permission is not None:
        offered = [each for each in VERDICTS if each != "always" or permission.rule is not None]
        answer |= {"enum": offered, "enumNames": [VERDICTS[each] for each in offered]}
        fields[REASON_FIELD] = {"type": "string", "title": "Reason, if you deny"}
    return {"type": "object", "properties": fields, "required": [ANSWER_FIELD]}


def supports_forms(capabilities: ClientCapabilities | None) -> bool:
    """Whether the host can show forms. An empty `elicitation: {}` means yes, as in older revisions."""
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def question_text(message: Message) -> str:
    """The text of a question, with the whole of a request for a permission.

    The question itself shows only the beginning of a long request, but a person decides on all of it (P7).
    """
    whole = "" if message.permission is None else message.permission.whole
    if all(line in message.question for line in whole.splitlines()):
        return message.question
    return f"{message.question}\n\nThe whole request:\n{_cut_request(whole)}"


def _cut_request(whole: str) -> str:
    left_out = max(0, len(whole) - MAX_REQUEST_CHARACTERS)
    cut = f"\n(Cut here: {counted(left_out, 'more character')} not shown.)" if left_out else ""
    return whole[:MAX_REQUEST_CHARACTERS] + cut


def question_form(message: Message, agent: str) -> ElicitRequestFormParams:
    """The form for a question. It names the agent, because the person has not seen who asks."""
    asks = f"The subagent {agent} asks: {message.question}"
    if (wanted := message.permission) is not None:
        asks = f"The subagent {agent} asks for permission:\n{_cut_request(wanted.whole)}"
        asks += f"\n{wanted.warning}" if wanted.warning else ""
        rule = wanted.rule if wanted.rule is None or len(wanted.rule) <= MAX_SHOWN_RULE else "this call"
        asks += f"\n“Always” allows {rule} from now on." if rule is not None else ""
    return ElicitRequestFormParams(message=asks, requested_schema=form_schema(message.permission))


def input_requests(messages: Iterable[Message], runs: RunService) -> dict[str, InputRequest]:
    """The forms for several questions, by message id, so that each answer names its question."""
    return {
        message.id: ElicitRequest(params=question_form(message, runs.asker(message))) for message in messages
    }


def read_answer(filled: ElicitResult) -> str:
    """The answer that a person wrote. If the host filled in another form than ours, its content as JSON."""
    content = filled.content or {}
    answer, reason = content.get(ANSWER_FIELD), content.get(REASON_FIELD)
    if not isinstance(answer, str):
        return json.dumps(content, ensure_ascii=False)
    return f"deny: {reason}" if answer == "deny" and reason else answer


class RecentQuestions:
    """Remembers questions: those that the person declined, or those that the host has been told.

    A declined question goes to the model of the host. A question that was told does not end another wait, so
    a host that waits again before somebody answers does not spin.
    """

    def __init__(self) -> None:
        self._ids: deque[MessageId] = deque(maxlen=MAX_REMEMBERED_QUESTIONS)

    def add(self, message_id: MessageId) -> None:
        self._ids.append(message_id)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._ids


class HostElicitation:
    """Asks the person at the host during one tool call.

    Asks nothing unless the user turned `runtime.ask_person` on and the host can show forms.
    """

    def __init__(self, ctx: ToolContext, declined: RecentQuestions, *, is_allowed: bool = True) -> None:
        self._ctx = ctx
        self._declined = declined
        self._service = ctx.request_context.lifespan_context
        wanted = is_allowed and self._service.settings.runtime.ask_person
        self._is_on = wanted and supports_forms(ctx.client_capabilities)
        self._is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.required: InputRequiredResult | None = None
        """What the call must return, so that the host asks the person."""

    def answers(self) -> Mapping[Message, ElicitResult]:
        """The answers that the host sends when it repeats a call. Unknown questions are left out."""
        given = self._ctx.input_responses or {} if self._is_on else {}
        found = {self._service.runs.question(key): filled for key, filled in given.items()}
        return {
            message: filled
            for message, filled in found.items()
            if message is not None and isinstance(filled, ElicitResult)
        }

    async def deliver(self, message: Message, filled: ElicitResult) -> None:
        """Send the answer to the run. Does nothing if the question is closed or was answered meanwhile."""
        if filled.action == "accept":
            with suppress(Conflict):
                await self._service.runs.reply(message.run_id, message.id, read_answer(filled))
        else:
            self._declined.add(message.id)

    def accepts(self, message: Message) -> bool:
        """Whether the question goes to the person."""
        return self._is_on and message.id not in self._declined

    async def ask(self, messages: Sequence[Message], timeout_s: float) -> bool:
        """Ask the person. Returns whether the call should wait on."""
        if self._is_modern:
            self.required = InputRequiredResult(input_requests=input_requests(messages, self._service.runs))
            return False
        return await self._ask_now(messages[0], timeout_s)

    async def _ask_now(self, message: Message, timeout_s: float) -> bool:
        """Wait until the person answers, somebody else does, or the time is over."""
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
        """Send the form to the host.

        Redacts the question here, because the middleware sees only answers, not our own requests (P6).
        """
        asked = question_form(message, self._service.runs.asker(message))
        text = self._service.redactor.redact(asked.message)
        try:
            return await self._ctx.session.elicit_form(text, asked.requested_schema, self._ctx.request_id)
        except (MCPError, ValidationError):  # the host declared forms but cannot show this one
            return ElicitResult(action="cancel")
