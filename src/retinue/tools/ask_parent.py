"""The `ask_parent` tool: asks the run or person that started the agent.

Knows nothing of how questions are delivered.
"""

from __future__ import annotations

from retinue.core import ASK_PARENT, NO_ANSWER, AskParent, ToolSpec
from retinue.tools.toolbox import Arguments, Tool, cut_to_tokens, parameters

ANSWER_TIMEOUT_S = 600.0
"""After this time, an agent continues without an answer (P7)."""


async def wait_for_answer(ask: AskParent, question: str, timeout_s: float = ANSWER_TIMEOUT_S) -> str:
    """Return the parent's answer, or a sentence saying that none came in time."""
    return (await ask(question, timeout_s)).answer or NO_ANSWER


def ask_parent_tool(ask: AskParent, timeout_s: float = ANSWER_TIMEOUT_S) -> Tool:
    """Return a tool that asks the parent and waits for the answer."""

    async def act(arguments: Arguments, tokens: int) -> str:
        answer = await wait_for_answer(ask, arguments.text("question", "message", "text"), timeout_s)
        return cut_to_tokens(answer, tokens, "ask for the part you need")

    spec = ToolSpec(
        ASK_PARENT,
        "Ask the one who gave you the task, if you cannot go on without an answer.",
        parameters(("question",), question=("string", "one clear question")),
    )
    return Tool(spec, act)
