"""The door: every answer that leaves over MCP passes here once, and secrets stay behind (P6).

Knows nothing of tools; it sees answers as they go on the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError

CARRIES_CONTENT = frozenset({"tools/call", "resources/read", "prompts/get"})
"""Methods whose answers hold what we read or ran; the others list our own fixed texts."""


class Door:
    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            answer = await call_next(ctx)
        except MCPError as error:
            raise MCPError(error.code, self._redact(error.message), self.clean(error.data)) from None
        return self.clean(answer) if ctx.method in CARRIES_CONTENT else answer

    def clean(self, value: Any) -> Any:
        """The same shape with every text redacted."""
        if isinstance(value, str):
            return self._redact(value)
        if isinstance(value, dict):
            return {key: self.clean(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self.clean(item) for item in cast("list[Any]", value)]
        return value
