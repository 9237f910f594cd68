"""The Tasks extension of protocol revision 2026-07-28: a long run is returned as a task.

A task is a view of a run and has no state of its own. Its id is the id of the run, so it outlives the server.

    run                            task
    queued, running                working
    waiting for an answer          input_required if the host can show forms, else working
    success, error, timeout        completed, with the answer of the tool. `failed` is reserved for protocol
                                   errors, and the answer of the tool reports the failure of the run.
    interrupted                    failed: the server died, so the call was never answered
    canceled                       cancelled

Only connections that declare the extension see tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ElicitResult,
    RequestParams,
    TextContent,
)
from pydantic import BaseModel, ValidationError

from retinue.core import (
    Conflict,
    InvalidInput,
    Message,
    MessageStatus,
    Run,
    RunStatus,
    RunUnknown,
    compact_json,
)
from retinue.server.elicitation import input_requests, read_answer, supports_forms
from retinue.service import RunService, clip_line

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
REVISIONS = frozenset({"2026-07-28"})
TASK_TOOLS = frozenset({"run_subagent"})
"""Tools whose answer may be a task."""
QUICK_RESULT_S = 0.5
"""Seconds that such a tool waits for a quick result first, unless its caller gives `wait_s`."""
POLL_INTERVAL_MS = 1000
MAX_STATUS_MESSAGE_CHARS = 300
DECLINED_ANSWERS = {
    "decline": "The person at the host declined to answer.",
    "cancel": "The person at the host dismissed the question.",
}
"""Sent to the run instead of an answer: the question of a task cannot be asked again, and the model of the
host does not see it (P7)."""
TASK_STATUSES: Mapping[RunStatus, str] = {
    RunStatus.QUEUED: "working",
    RunStatus.RUNNING: "working",
    RunStatus.WAITING: "working",
    RunStatus.SUCCESS: "completed",
    RunStatus.ERROR: "completed",
    RunStatus.TIMEOUT: "completed",
    RunStatus.CANCELED: "cancelled",
    RunStatus.INTERRUPTED: "failed",
}
"""A waiting run is `input_required` instead while a question is open and the host can show forms."""

TaskContext = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]
    """Validated one by one, because answers to unknown questions must be ignored."""


def supports_tasks(ctx: TaskContext) -> bool:
    """Whether the connection declares the extension, in a revision that has it."""
    capabilities = ctx.session.client_capabilities
    declared = None if capabilities is None else capabilities.extensions
    return ctx.protocol_version in REVISIONS and TASKS_EXTENSION in (declared or {})


class Tasks(Extension):
    """The methods of the extension."""

    identifier = TASKS_EXTENSION

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("tasks/get", TaskParams, _checked(get_task), REVISIONS),
            MethodBinding("tasks/update", UpdateParams, _checked(update_task), REVISIONS),
            MethodBinding("tasks/cancel", TaskParams, _checked(cancel_task), REVISIONS),
        )


def answer_with_task(ctx: TaskContext, answer: dict[str, Any]) -> dict[str, Any]:
    """Return a task instead of the answer of a tool that says that its run has not ended."""
    outcome: dict[str, Any] = answer.get("structuredContent") or {}
    if not supports_tasks(ctx) or "run_id" not in outcome or RunStatus(outcome["status"]).ended:
        return answer
    forms = supports_forms(ctx.session.client_capabilities)
    if outcome.get("questions") and not forms:
        return answer  # the model can reply to the question; as a task it would reach nobody
    run, messages = _runs(ctx).with_messages(outcome["run_id"])
    return {"resultType": "task", **task_view(run, messages, forms=forms)}


async def get_task(ctx: TaskContext, params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/get`."""
    runs = _runs(ctx)
    run, messages = runs.with_messages(params.task_id)
    forms = supports_forms(ctx.session.client_capabilities)
    return detailed_task_view(run, messages, runs, forms=forms)


async def update_task(ctx: TaskContext, params: UpdateParams) -> dict[str, Any]:
    """Handle `tasks/update`: deliver the answers to open questions."""
    runs = _runs(ctx)
    run, messages = runs.with_messages(params.task_id)
    for message in _open_questions(messages):
        if message.id not in params.input_responses:
            continue
        try:
            filled = ElicitResult.model_validate(params.input_responses[message.id])
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise MCPError(INVALID_PARAMS, f"inputResponses.{message.id}: {wrong}") from None
        with suppress(Conflict):  # another caller answered first
            await runs.reply(run.id, message.id, DECLINED_ANSWERS.get(filled.action) or read_answer(filled))
    return {"resultType": "complete"}


async def cancel_task(ctx: TaskContext, params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/cancel`."""
    await _runs(ctx).cancel(params.task_id)
    return {"resultType": "complete"}


def _runs(ctx: TaskContext) -> RunService:
    return ctx.lifespan_context.runs


def _checked(handler: Callable[[TaskContext, Any], Any]) -> Callable[[TaskContext, Any], Any]:
    """Wrap a handler: check the extension and the header, and turn unknown ids into protocol errors."""

    async def checked(ctx: TaskContext, params: TaskParams) -> HandlerResult:
        require_client_extension(ctx, TASKS_EXTENSION)
        headers = getattr(ctx.request, "headers", None)
        if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
            raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match params.taskId")
        try:
            return await handler(ctx, params)
        except (InvalidInput, RunUnknown) as error:
            raise MCPError(INVALID_PARAMS, f"no such task: {error.message}") from None

    return checked


def task_view(run: Run, messages: Sequence[Message], *, forms: bool) -> dict[str, Any]:
    """The fields that every answer about a task has. `forms` says whether the host can show forms.

    The time to live is unlimited, because runs are stored.
    """
    questions = _open_questions(messages)
    return {
        "taskId": run.id,
        "status": "input_required" if questions and forms else TASK_STATUSES[run.status],
        "statusMessage": clip_line(_status_message(run, questions), MAX_STATUS_MESSAGE_CHARS),
        "createdAt": _iso(run.timing.enqueued_at),
        "lastUpdatedAt": _iso(_last_change(run, messages)),
        "ttlMs": None,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }


def detailed_task_view(
    run: Run, messages: Sequence[Message], runs: RunService, *, forms: bool
) -> dict[str, Any]:
    """The same, with the result, the error or the open questions, depending on the status."""
    view = {"resultType": "complete", **task_view(run, messages, forms=forms)}
    match view["status"]:
        case "completed":
            view["result"] = _tool_result(runs.outcome(run.id), run.status)
        case "failed":
            view["error"] = {"code": INTERNAL_ERROR, "message": view["statusMessage"], "data": run.error}
        case "input_required":
            requests = input_requests(_open_questions(messages), runs)
            view["inputRequests"] = {key: _as_wire_json(request) for key, request in requests.items()}
        case _:
            pass
    return view


def _open_questions(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.status is MessageStatus.PENDING]


def _tool_result(outcome: dict[str, Any], status: RunStatus) -> dict[str, Any]:
    """The answer of the tool as it is sent to the host."""
    text = TextContent(type="text", text=compact_json(outcome))
    failed = status is not RunStatus.SUCCESS
    return _as_wire_json(CallToolResult(content=[text], structured_content=outcome, is_error=failed))


def _as_wire_json(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def _status_message(run: Run, questions: Sequence[Message]) -> str:
    if questions:
        return f"{run.spec.agent} asks: {questions[0].question}"
    match run.error:
        case {"message": str() as message}:
            return f"{run.status.value}: {message}"
        case _:
            return f"{run.spec.agent}: {run.status.value}"


def _last_change(run: Run, messages: Iterable[Message]) -> float:
    """When the run or one of its messages last changed, in seconds since 1970."""
    times = [run.timing.enqueued_at, run.timing.started_at, run.timing.ended_at]
    for each in messages:
        times += [each.asked_at, each.replied_at, each.acknowledged_at, each.closed_at]
    return max(time for time in times if time is not None)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
