"""An agent may ask its parent, and continues if nobody answers (P7)."""

from __future__ import annotations

import pytest

from retinue.core import Message, MessageId, MessageStatus, RunId
from retinue.redaction import SecretRedactor
from retinue.tools import Toolbox, ask_parent_tool
from tests.tools.tool_support import answer

pytestmark = pytest.mark.anyio


def asking(status: MessageStatus, said: str | None) -> tuple[Toolbox, list[tuple[str, float | None]]]:
    asked: list[tuple[str, float | None]] = []

    async def ask(question: str, wait_s: float | None) -> Message:
        asked.append((question, wait_s))
        return Message(
            id=MessageId.new(), run_id=RunId.new(), question=question, status=status, asked_at=0, answer=said
        )

    return Toolbox([ask_parent_tool(ask, 3.0)], SecretRedactor()), asked


async def test_answer_reaches_the_agent() -> None:
    box, asked = asking(MessageStatus.ACKNOWLEDGED, "the second one")
    assert await answer(box, "ask_parent", question="which?") == "the second one"
    assert asked == [("which?", 3.0)]


@pytest.mark.parametrize("status", [MessageStatus.PENDING, MessageStatus.CLOSED])
async def test_agent_continues_without_an_answer_P7(status: MessageStatus) -> None:
    box, _ = asking(status, None)
    assert "Go on with what you know" in await answer(box, "ask_parent", question="which?")


async def test_empty_question_is_refused() -> None:
    box, asked = asking(MessageStatus.ACKNOWLEDGED, "yes")
    assert "empty" in await answer(box, "ask_parent", question="")
    assert not asked
