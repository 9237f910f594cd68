"""The middleware of the MCP server: every message passes it once.

It dispatches on the method of the message:

- `notifications/cancelled`: cancels the run that the canceled call started.
- `subscriptions/listen`: refuses task notifications to hosts that do not declare the Tasks extension.
- `initialize`, `server/discover`, `prompts/*`, `resources/*`: a child server hides prompts and resources.
- methods whose answers contain what Retinue read or ran: redacts the answer (P6).

Errors of all methods are redacted too.
"""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from retinue.core import Redactor, RunId
from retinue.server.tasks import TASKS_EXTENSION

log = logging.getLogger(__name__)

REDACTED_METHODS = frozenset({"tools/call", "resources/read", "prompts/get", "tasks/get"})
"""Methods whose answers contain what Retinue read or ran. All other answers are fixed texts of Retinue."""
UNREDACTED_TOOLS = frozenset({"request_permission"})
"""Tools that return the caller's own arguments. Redaction would change the call that it makes next."""
TOOLS_ONLY_CAPABILITIES = ("prompts", "resources")
"""Capabilities that a server for child processes does not declare."""
HOST_TIMED_OUT = re.compile(r"time[ds]?\s?-?out|timeout|deadline", re.IGNORECASE)
MAX_REMEMBERED_CALLS = 1000


class StartedCalls:
    """Remembers which run each tool call started."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, str], RunId] = OrderedDict()

    def remember(self, ctx: Context[Any, Any], run_id: RunId) -> None:
        """Remember the run of the current call."""
        self._runs[_call_key(ctx.request_context, ctx.request_id)] = run_id
        while len(self._runs) > MAX_REMEMBERED_CALLS:
            self._runs.popitem(last=False)

    def pop(self, ctx: ServerRequestContext[Any, Any], request_id: str) -> RunId | None:
        """Forget a call of the same session. Returns its run, if it started one."""
        return self._runs.pop(_call_key(ctx, request_id), None)


class RetinueMiddleware:
    """See the module docstring. `serves_tasks` and `tools_only` switch two of its parts on."""

    def __init__(
        self, redactor: Redactor, calls: StartedCalls, *, serves_tasks: bool = False, tools_only: bool = False
    ) -> None:
        self._redactor = redactor
        self._calls = calls
        self._serves_tasks = serves_tasks
        self._tools_only = tools_only

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            await self._inspect_request(ctx)
            answer = await call_next(ctx)
        except MCPError as error:
            data = self._redactor.redact_value(error.error.data)
            raise MCPError(error.error.code, self._redactor.redact(error.error.message), data) from None
        return self._change_answer(ctx, answer) if isinstance(answer, dict) else answer

    async def _inspect_request(self, ctx: ServerRequestContext[Any, Any]) -> None:
        match ctx.method:
            case "notifications/cancelled":
                await self._cancel_run(ctx)
            case "subscriptions/listen" if self._serves_tasks:
                match ctx.params:
                    case {"notifications": {"taskIds": _}}:
                        require_client_extension(ctx, TASKS_EXTENSION)
                    case _:
                        pass
            case method if self._tools_only and method.partition("/")[0] in TOOLS_ONLY_CAPABILITIES:
                raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
            case _:
                pass

    async def _cancel_run(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Cancel the run behind a canceled call, unless the host only stopped waiting.

        Hosts send the same notification when they time out and when a person cancels. Only the reason tells
        them apart. A timeout must not lose the work.
        """
        params = ctx.params or {}
        run_id = self._calls.pop(ctx, str(params.get("requestId")))
        if run_id is not None and not HOST_TIMED_OUT.search(str(params.get("reason") or "")):
            log.info("the host canceled run %s", run_id)
            await ctx.lifespan_context.runs.cancel(run_id)

    def _change_answer(self, ctx: ServerRequestContext[Any, Any], answer: dict[str, Any]) -> dict[str, Any]:
        if self._tools_only and ctx.method in ("initialize", "server/discover"):
            offered = answer["capabilities"].items()
            kept = {name: value for name, value in offered if name not in TOOLS_ONLY_CAPABILITIES}
            return {**answer, "capabilities": kept}
        if ctx.method not in REDACTED_METHODS or _is_unredacted_tool(ctx):
            return answer
        return self._redact(answer)

    def _redact(self, answer: dict[str, Any]) -> dict[str, Any]:
        redacted = self._redactor.redact_value(answer)
        _copy_structure_to_text(answer, redacted)
        if isinstance(answer.get("result"), dict):  # a task contains the answer of its tool
            _copy_structure_to_text(answer["result"], redacted["result"])
        return redacted


def _is_unredacted_tool(ctx: ServerRequestContext[Any, Any]) -> bool:
    return ctx.method == "tools/call" and (ctx.params or {}).get("name") in UNREDACTED_TOOLS


def _copy_structure_to_text(answer: dict[str, Any], redacted: dict[str, Any]) -> None:
    """Rebuild the text of a structured answer from its redacted structure.

    Both hold the same JSON and must stay equal. The structure is redacted better, because the names of its
    fields help to find secrets.
    """
    structured = answer.get("structuredContent")
    match answer.get("content"):
        case [{"type": "text", "text": str() as text}] if structured is not None and text.startswith("{"):
            shown = json.dumps(redacted["structuredContent"], ensure_ascii=False)
            redacted["content"] = [{**redacted["content"][0], "text": shown}]
        case _:
            pass


def _call_key(ctx: ServerRequestContext[Any, Any], request_id: str) -> tuple[str, str]:
    """Session id and request id. Request ids repeat from one HTTP session to the next."""
    headers = getattr(ctx.request, "headers", None)
    return ("" if headers is None else str(headers.get("mcp-session-id"))), request_id
