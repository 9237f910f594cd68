"""The door: every answer that leaves over MCP passes here once, and secrets stay behind (P6).

Knows nothing of tools; it sees answers as they go on the wire.
"""

from __future__ import annotations

import json
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError

from retinue.core import Redactor

CARRIES_CONTENT = frozenset({"tools/call", "resources/read", "prompts/get", "tasks/get"})
"""Methods whose answers hold what we read or ran; the others list our own fixed texts."""


ECHOES = frozenset({"request_permission"})
"""Tools that give a caller back what it sent, which a change would make another thing."""


class Door:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            answer = await call_next(ctx)
        except MCPError as error:
            data = self._redactor.redact_value(error.error.data)
            raise MCPError(error.error.code, self._redactor.redact(error.error.message), data) from None
        if ctx.method not in CARRIES_CONTENT or not isinstance(answer, dict) or _is_echo(ctx):
            return answer
        return self._clean(answer)

    def _clean(self, answer: dict[str, Any]) -> dict[str, Any]:
        clean = self._redactor.redact_value(answer)
        _keep_one_json(answer, clean)
        if isinstance(answer.get("result"), dict):  # a task carries the answer of its tool
            _keep_one_json(answer["result"], clean["result"])
        return clean


def _is_echo(ctx: ServerRequestContext[Any, Any]) -> bool:
    return ctx.method == "tools/call" and (ctx.params or {}).get("name") in ECHOES


def _keep_one_json(answer: dict[str, Any], clean: dict[str, Any]) -> None:
    """A structured result and its text are one JSON, and stay one: names in it help to find secrets."""
    structured = answer.get("structuredContent")
    match answer.get("content"):
        case [{"type": "text", "text": str() as text}] if structured is not None and text.startswith("{"):
            shown = json.dumps(clean["structuredContent"], ensure_ascii=False)
            clean["content"] = [{**clean["content"][0], "text": shown}]
        case _:
            pass
