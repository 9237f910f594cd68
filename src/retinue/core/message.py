"""A message: a question from a run to its parent, and its answer. Knows nothing of how it travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from retinue.core.ids import MessageId, RunId
from retinue.core.permission import ToolRequest


class MessageStatus(StrEnum):
    PENDING = "pending_parent_reply"
    REPLIED = "parent_replied"
    ACKNOWLEDGED = "acknowledged_by_subagent"
    CLOSED = "closed"
    """The run ended before the answer was given or taken."""


MESSAGE_CHANGES: Mapping[MessageStatus, frozenset[MessageStatus]] = {
    MessageStatus.PENDING: frozenset({MessageStatus.REPLIED, MessageStatus.CLOSED}),
    MessageStatus.REPLIED: frozenset({MessageStatus.ACKNOWLEDGED, MessageStatus.CLOSED}),
    MessageStatus.ACKNOWLEDGED: frozenset(),
    MessageStatus.CLOSED: frozenset(),
}
"""From each state, where it may go. The database holds the same table and has the last word."""

NO_ANSWER = "No answer came. Go on with what you know, and say what you had to assume."
"""What an agent is told in place of an answer."""
QUESTION_WITHDRAWN = "The agent took its question back."
"""What stands in place of an answer that nobody waits for any more."""


@dataclass(frozen=True, slots=True)
class PermissionWanted:
    """What a question wants to be allowed, for those who answer with a button instead of words."""

    asked: ToolRequest
    """As it may be shown: without its secrets."""
    rule: str | None
    """What `always` would allow for good; None where it would allow this once."""
    wait_s: float
    """Seconds after which nobody's answer is a denial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
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
    """None for a question that is answered in words."""
