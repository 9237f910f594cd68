"""A message: a question from a run to its parent, and the answer. Knows nothing of how it is delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from retinue.core.ids import MessageId, RunId
from retinue.core.permission import ToolRequest
from retinue.core.text import escape_invisible_characters


class MessageStatus(StrEnum):
    """The states of a message. The values are part of the tools' answers."""

    PENDING = "pending_parent_reply"
    REPLIED = "parent_replied"
    ACKNOWLEDGED = "acknowledged_by_subagent"
    CLOSED = "closed"
    """The run ended before the answer was given or received."""


MESSAGE_CHANGES: Mapping[MessageStatus, frozenset[MessageStatus]] = {
    MessageStatus.PENDING: frozenset({MessageStatus.REPLIED, MessageStatus.CLOSED}),
    MessageStatus.REPLIED: frozenset({MessageStatus.ACKNOWLEDGED, MessageStatus.CLOSED}),
    MessageStatus.ACKNOWLEDGED: frozenset(),
    MessageStatus.CLOSED: frozenset(),
}
"""The allowed changes of state. Triggers in the database enforce the same table."""

NO_ANSWER = "No answer came. Go on with what you know, and say what you had to assume."
"""The text an agent receives if its question is not answered in time."""
QUESTION_WITHDRAWN = "The agent took its question back."
"""The text stored as the answer if the agent no longer waits for one."""


@dataclass(frozen=True, slots=True)
class PermissionWanted:
    """The permission that a question asks for, so that a form can offer buttons instead of a text field."""

    asked: ToolRequest
    """The requested call, with its secrets removed."""
    rule: str | None
    """The rule that the answer `always` adds; None if `always` allows only this call."""
    wait_s: float | None
    """Seconds without an answer after which the call is denied; None if the run waits for the answer."""
    warning: str = ""
    """What to know before answering, such as that the run has read pages of the web."""

    @property
    def whole(self) -> str:
        """The requested call with all its arguments, however long they are, safe to display."""
        call = f"{self.asked.tool}: {self.asked.subject}" if self.asked.subject else self.asked.tool
        text = f"{call}\nwith {self.asked.details}" if self.asked.details else call
        return escape_invisible_characters(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A question and its answer as stored. Times are seconds since 1970."""

    id: MessageId
    run_id: RunId
    question: str
    status: MessageStatus
    asked_at: float
    answer: str | None = None
    replied_at: float | None = None
    acknowledged_at: float | None = None
    closed_at: float | None = None
    permission: PermissionWanted | None = None
    """None if the question is answered with text."""
