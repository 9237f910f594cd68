"""What Claude Code asks while it works, on its stdout, and what it is answered, on its stdin.

It asks before a call that no rule of its agent decides, and it has a tool of its own for questions. So it
needs no MCP server to reach us, and starts as fast as without us.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from retinue.core import (
    NO_ANSWER,
    AskParent,
    JsonObject as JsonTable,
    Permit,
    ToolRequest,
    as_object as table,
    as_object_list as rows,
    as_text as text,
)
from retinue.tools import answer_of

log = logging.getLogger(__name__)

QUESTION_TOOL = "AskUserQuestion"


class ClaudeDialogue:
    """Of one run."""

    def __init__(self, permit: Permit, ask: AskParent | None) -> None:
        self._permit = permit
        self._ask = ask
        self._stdin: asyncio.StreamWriter | None = None
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._goes_on = False
        """Whether its commands go on in the background: when one ends it takes another turn, and may ask."""

    def begin(self, stdin: asyncio.StreamWriter, prompt: str) -> None:
        self._stdin = stdin
        content = prompt.encode("utf-8", "replace").decode()  # half a character would make no JSON of it
        self._say({"type": "user", "message": {"role": "user", "content": content}})

    def hear(self, event: Mapping[str, Any]) -> None:
        """Each question is answered in a task of its own, because a person may be asked."""
        number = text(event.get("request_id"))
        match event.get("type"):
            case "control_request":
                task = asyncio.ensure_future(self._answer(number, table(event.get("request"))))
                self._answering[number] = task
                task.add_done_callback(lambda _: self._answering.pop(number, None))
            case "control_cancel_request" if number in self._answering:
                self._answering[number].cancel()
            case "system" if event.get("subtype") == "background_tasks_changed":
                self._goes_on = bool(event.get("tasks"))
            case "result" if self._stdin is not None and not self._goes_on:
                self._stdin.close()  # else it would wait for more to do
            case _:
                return

    async def end(self) -> None:
        """The program has ended, or is about to: nobody hears an answer any more."""
        unanswered = list(self._answering.values())
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)

    async def _answer(self, number: str, request: JsonTable) -> None:
        """Always with something: it would wait for an answer for ever."""
        answer: dict[str, Any]
        try:
            answer = {"subtype": "success", "response": await self._decided(request)}
        except Exception as error:  # its question may have been nonsense, and so may be the answer
            log.warning("what claude asked could not be decided", exc_info=error)
            answer = {"subtype": "error", "error": str(error)}
        self._say({"type": "control_response", "response": {**answer, "request_id": number}})

    async def _decided(self, request: JsonTable) -> dict[str, Any]:
        if request.get("subtype") != "can_use_tool":
            raise ValueError(f"{request.get('subtype')} is not offered")
        tool, given = text(request.get("tool_name")), table(request.get("input"))
        if tool == QUESTION_TOOL:
            return await self._questions(given)
        verdict = await self._permit(ToolRequest.of(tool, given))
        if not verdict.allowed:
            return {"behavior": "deny", "message": verdict.reason}
        return {"behavior": "allow", "updatedInput": given}

    async def _questions(self, given: JsonTable) -> dict[str, Any]:
        """All at once, as they were asked; whoever answers sees each of them."""
        asked = rows(given.get("questions"))
        if self._ask is None or not asked:
            return {"behavior": "deny", "message": NO_ANSWER}
        ask = self._ask
        found = await asyncio.gather(*(answer_of(ask, _in_words(question)) for question in asked))
        names = [text(question.get("question")) for question in asked]
        return {
            "behavior": "allow",
            "updatedInput": {**given, "answers": dict(zip(names, found, strict=True))},
        }

    def _say(self, message: Mapping[str, Any]) -> None:
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(json.dumps(message).encode() + b"\n")


def _in_words(question: JsonTable) -> str:
    """A question with the answers that it offers."""
    said = text(question.get("question"))
    offered = [
        f"- {text(one.get('label'))}: {text(one.get('description'))}" for one in rows(question.get("options"))
    ]
    if offered:
        said += "\nOffered, several at once:" if question.get("multiSelect") else "\nOffered:"
    return "\n".join((said, *offered))
