"""The tool through which an agent asks whoever started it. Knows nothing of how questions travel."""

from __future__ import annotations

from retinue.core import ASK_PARENT, NO_ANSWER, AskParent, ToolSpec
from retinue.tools.bounded import bounded
from retinue.tools.tool import Arguments, Tool, parameters

PATIENCE_S = 600.0
"""An answer later than this finds an agent that has gone on without it (P7)."""


async def answer_of(ask: AskParent, question: str, patience_s: float = PATIENCE_S) -> str:
    """The answer, or that none came in time."""
    return (await ask(question, patience_s)).answer or NO_ANSWER


def ask_parent_tool(ask: AskParent, patience_s: float = PATIENCE_S) -> Tool:
    async def act(given: Arguments, tokens: int) -> str:
        answer = await answer_of(ask, given.text("question", "message", "text"), patience_s)
        return bounded(answer, tokens, "ask for the part you need")

    spec = ToolSpec(
        ASK_PARENT,
        "Ask the one who gave you the task, if you cannot go on without an answer.",
        parameters(("question",), question=("string", "one clear question")),
    )
    return Tool(spec, act)
