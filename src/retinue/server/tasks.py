"""The Tasks extension of 2026-07-28: a run that takes longer than a moment is handed out as a task.

A task is a view on a run and has no state of its own: its id is the run's, so it outlives the server.

    queued, running                working
    waiting for an answer          input_required, if the host shows forms; else working
    success, error, timeout        completed, with what the tool would have answered: `failed` is only for
                                   errors of the protocol, and a run that failed has been told about properly
    interrupted                    failed: the server died, so the call was never answered
    canceled                       cancelled

Only connections that declare the extension see any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    RequestParams,
)
from pydantic import ValidationError

from retinue.core import Conflict, InvalidInput, RunStatus, RunUnknown
from retinue.server import task_views
from retinue.server.questions import answer_in, shows_forms
from retinue.service import RunService

IDENTIFIER = "io.modelcontextprotocol/tasks"
REVISIONS = frozenset({"2026-07-28"})
STARTS_WORK = frozenset({"run_subagent"})
"""Tools whose answer may be a task."""
MOMENT_S = 0.5
"""Seconds that such a tool waits for a quick result first, unless its caller says otherwise."""
REFUSED = {
    "decline": "The person at the host declined to answer.",
    "cancel": "The person at the host dismissed the question.",
}
"""Told to the run: a task's question cannot be asked again, and its model does not see it (P7)."""

TaskContext = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]
    """Checked one by one, because answers to what we never asked are to be ignored."""


def takes_tasks(ctx: TaskContext) -> bool:
    capabilities = ctx.session.client_capabilities
    declared = None if capabilities is None else capabilities.extensions
    return ctx.protocol_version in REVISIONS and IDENTIFIER in (declared or {})


class Tasks(Extension):
    identifier = IDENTIFIER

    def __init__(self, starts_work: Collection[str] = STARTS_WORK) -> None:
        self._starts_work = starts_work

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("tasks/get", TaskParams, _checked(get), REVISIONS),
            MethodBinding("tasks/update", UpdateParams, _checked(update), REVISIONS),
            MethodBinding("tasks/cancel", TaskParams, _checked(cancel), REVISIONS),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: TaskContext, call_next: CallNext
    ) -> HandlerResult:
        """The tool answers as ever; only the answer that its run goes on becomes a task."""
        answer = await call_next(ctx)
        if (
            params.name not in self._starts_work
            or not takes_tasks(ctx)
            or not isinstance(answer, CallToolResult)
        ):
            return answer
        told: dict[str, Any] = answer.structured_content or {}
        if "run_id" not in told or RunStatus(told["status"]).ended:
            return answer
        forms = shows_forms(ctx.session.client_capabilities)
        if told.get("questions") and not forms:
            return answer  # the model can reply; as a task the question would reach nobody
        run, messages = _runs(ctx).with_messages(told["run_id"])
        return {"resultType": "task", **task_views.task(run, messages, forms=forms)}


async def refuse_undeclared_listening(ctx: TaskContext, call_next: CallNext) -> HandlerResult:
    """Middleware. News of tasks is not sent, only fetched; but who may ask for it is the protocol's word."""
    if ctx.method == "subscriptions/listen":
        match ctx.params:
            case {"notifications": {"taskIds": _}}:
                require_client_extension(ctx, IDENTIFIER)
            case _:
                pass
    return await call_next(ctx)


async def get(ctx: TaskContext, params: TaskParams) -> dict[str, Any]:
    runs = _runs(ctx)
    run, messages = runs.with_messages(params.task_id)
    forms = shows_forms(ctx.session.client_capabilities)
    return task_views.detailed(run, messages, runs.outcome, forms=forms)


async def update(ctx: TaskContext, params: UpdateParams) -> dict[str, Any]:
    runs = _runs(ctx)
    run, messages = runs.with_messages(params.task_id)
    for message in task_views.pending(messages):
        if message.id not in params.input_responses:
            continue
        try:
            filled = ElicitResult.model_validate(params.input_responses[message.id])
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise MCPError(INVALID_PARAMS, f"inputResponses.{message.id}: {wrong}") from None
        with suppress(Conflict):  # somebody else was quicker
            await runs.reply(run.id, message.id, REFUSED.get(filled.action) or answer_in(filled))
    return {"resultType": "complete"}


async def cancel(ctx: TaskContext, params: TaskParams) -> dict[str, Any]:
    await _runs(ctx).cancel(params.task_id)
    return {"resultType": "complete"}


def _runs(ctx: TaskContext) -> RunService:
    return ctx.lifespan_context.runs


def _checked(handler: Callable[[TaskContext, Any], Any]) -> Callable[[TaskContext, Any], Any]:
    async def checked(ctx: TaskContext, params: TaskParams) -> HandlerResult:
        require_client_extension(ctx, IDENTIFIER)
        headers = getattr(ctx.request, "headers", None)
        if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
            raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match params.taskId")
        try:
            return await handler(ctx, params)
        except (InvalidInput, RunUnknown) as error:
            raise MCPError(INVALID_PARAMS, f"no such task: {error.message}") from None

    return checked
