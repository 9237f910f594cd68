"""A run's question as the protocol's one-field form, and the answer read from a filled one.

Knows nothing of how either travels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mcp_types import (
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
)

from retinue.core import Message

FIELD = "answer"
SCHEMA = {
    "type": "object",
    "properties": {FIELD: {"type": "string", "title": "Answer"}},
    "required": [FIELD],
}


def form(message: Message) -> ElicitRequestFormParams:
    """The question, said to be a subagent's: the person has not seen who asks."""
    asks = f"Subagent run {message.run_id} asks: {message.question}"
    return ElicitRequestFormParams(message=asks, requested_schema=SCHEMA)


def input_requests(messages: Iterable[Message]) -> dict[str, InputRequest]:
    """The forms by the ids of their questions, so that an answer says by itself what it answers."""
    return {message.id: ElicitRequest(params=form(message)) for message in messages}


def answer_in(filled: ElicitResult) -> str:
    """What the person wrote. A host that fills another form than ours still carries a person's answer."""
    content = filled.content or {}
    answer = content.get(FIELD)
    return answer if isinstance(answer, str) else json.dumps(content, ensure_ascii=False)


def shows_forms(capabilities: ClientCapabilities | None) -> bool:
    """A bare `elicitation: {}`, from before there were modes, means forms."""
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
