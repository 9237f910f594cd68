"""Runs in the words of the Tasks extension. Knows nothing of requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mcp_types import INTERNAL_ERROR, CallToolResult, TextContent
from pydantic import BaseModel

from retinue.core import Message, MessageStatus, Run, RunId, RunStatus
from retinue.server.questions import input_requests
from retinue.service import clip_line

POLL_INTERVAL_MS = 1000
MESSAGE_LETTERS = 300

STATUS: Mapping[RunStatus, str] = {
    RunStatus.QUEUED: "working",
    RunStatus.RUNNING: "working",
    RunStatus.WAITING: "working",
    RunStatus.SUCCESS: "completed",
    RunStatus.ERROR: "completed",
    RunStatus.TIMEOUT: "completed",
    RunStatus.CANCELED: "cancelled",
    RunStatus.INTERRUPTED: "failed",
}
"""A run that waits needs input only while a question is open and the host can ask it."""


def task(run: Run, messages: Sequence[Message], *, forms: bool) -> dict[str, Any]:
    """What every answer about a task has. Runs are kept, so its time to live is unlimited."""
    asks = pending(messages)
    return {
        "taskId": run.id,
        "status": "input_required" if asks and forms else STATUS[run.status],
        "statusMessage": clip_line(_told(run, asks), MESSAGE_LETTERS),
        "createdAt": _iso(run.timing.enqueued_at),
        "lastUpdatedAt": _iso(max(_moments(run, messages))),
        "ttlMs": None,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }


def detailed(
    run: Run, messages: Sequence[Message], outcome: Callable[[RunId], dict[str, Any]], *, forms: bool
) -> dict[str, Any]:
    """The same with what its status calls for."""
    view = {"resultType": "complete", **task(run, messages, forms=forms)}
    match view["status"]:
        case "completed":
            view["result"] = _answer(outcome(run.id))
        case "failed":
            view["error"] = {"code": INTERNAL_ERROR, "message": view["statusMessage"], "data": run.error}
        case "input_required":
            asked = input_requests(pending(messages))
            view["inputRequests"] = {key: _on_the_wire(request) for key, request in asked.items()}
        case _:
            pass
    return view


def pending(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.status is MessageStatus.PENDING]


def _answer(told: dict[str, Any]) -> dict[str, Any]:
    """As the tool's own answer is on the wire."""
    text = TextContent(type="text", text=json.dumps(told, ensure_ascii=False))
    return _on_the_wire(CallToolResult(content=[text], structured_content=told))


def _on_the_wire(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def _told(run: Run, asks: Sequence[Message]) -> str:
    if asks:
        return f"{run.spec.agent} asks: {asks[0].question}"
    match run.error:
        case {"message": str() as message}:
            return f"{run.status.value}: {message}"
        case _:
            return f"{run.spec.agent}: {run.status.value}"


def _moments(run: Run, messages: Iterable[Message]) -> list[float]:
    """When something happened to the run."""
    of_run = [run.timing.enqueued_at, run.timing.started_at, run.timing.ended_at]
    of_messages = [
        moment
        for each in messages
        for moment in (each.asked_at, each.replied_at, each.acknowledged_at, each.closed_at)
    ]
    return [moment for moment in (*of_run, *of_messages) if moment is not None]


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
