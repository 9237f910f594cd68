"""What a person who watches sees at once, and what they answer. Knows nothing of pages or terminals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from retinue.core import (
    ACTIVE_STATUSES,
    ENDED_STATUSES,
    Conflict,
    Message,
    MessageStatus,
    Run,
    RunStatus,
    clip,
)
from retinue.service import run_views

if TYPE_CHECKING:
    from retinue.service.runs import RunService
    from retinue.service.service import Service

MOST_ACTIVE, MOST_RECENT, MOST_CHILDREN, MOST_EVENTS = 200, 30, 100, 100
"""Rows of each list; what is left out is counted or said."""
TASK_LETTERS = 4_000
ONE_RUN_TOKENS, LOG_TOKENS = 8_000, 6_000
"""A person reads more of one run than a host wants to pay for."""
LOOK_S = 0.25
"""How often to look for changes of other processes: soon enough for a person, and nearly free."""


def runs_overview(runs: RunService) -> dict[str, Any]:
    """What waits for an answer, what goes on, and what ended last."""
    active = runs.store.runs.list(statuses=ACTIVE_STATUSES, limit=MOST_ACTIVE + 1)
    view: dict[str, Any] = {
        "asked": _asked(runs, runs.store.messages.all_pending()),
        "active": [_row(runs, run) for run in active[:MOST_ACTIVE]],
        "recent": [
            _row(runs, run) for run in runs.store.runs.list(statuses=ENDED_STATUSES, limit=MOST_RECENT)
        ],
        "more_active": len(active) > MOST_ACTIVE,
    }
    return runs.redactor.redact_value(view)


def run_overview(runs: RunService, run_id: str) -> dict[str, Any]:
    """Everything about a run that a page holds."""
    run, messages = runs.with_messages(run_id)
    pending = [message for message in messages if message.status is MessageStatus.PENDING]
    task = runs.redactor.redact(run.spec.task)
    view: dict[str, Any] = {
        **_row(runs, run),
        "task": clip(task, TASK_LETTERS),
        "task_letters": len(task),
        "caller": run.spec.caller,
        "executor": run.spec.executor,
        "model": run.spec.model,
        "tools": list(run.spec.tools),
        "limits": run_views.limits(run),
        "exit_code": run.exit_code,
        "summary": run.summary,
        "error": run.error,
        "answer": _answer(run),
        "facts": run_views.facts(run),
        "cancel_requested": run.cancel_requested,
        "answered": [_answered(message) for message in messages if message.answer is not None],
        "children": [_row(runs, child) for child in runs.store.runs.list(parent=run.id, limit=MOST_CHILDREN)],
        "events": [
            {"at": event.at, "kind": event.kind, "data": dict(event.data)}
            for event in runs.store.events.latest(run.id, MOST_EVENTS)
        ],
    }
    clean = runs.redactor.redact_value(view)  # before anything is cut: half a secret is not seen as one
    fitted = run_views.fitted(clean, ONE_RUN_TOKENS, f"`retinue logs {run.id}` has the whole output")
    # What is asked is not cut here: nobody should allow what they have not been shown.
    whole = {"asked": _asked(runs, pending), "log": runs.logs(run_id, tokens=LOG_TOKENS)}
    return runs.redactor.redact_value(fitted | whole)


async def answer_run(service: Service, run_id: str, message_id: str, text: str) -> dict[str, Any]:
    """Answer one question; a workflow of this folder that nobody performs goes on here."""
    told = await service.runs.reply(run_id, message_id, text)
    run = service.runs.store.runs.get(told["runId"])
    if run.spec.resumable and run.status is RunStatus.QUEUED:
        with suppress(Conflict):  # of another folder: a server there goes on
            await service.workflows.resume(run.id)
    return told


async def run_news(runs: RunService, run_id: str | None, pause_s: float) -> AsyncGenerator[bool]:
    """Again and again, after `pause_s` at the latest: whether anything that a watcher sees has changed.

    With a run's id its output counts too, which is in its log and not in the database.
    """
    cursor: int | None = None if run_id is None else runs.logs(run_id)["cursor"]
    with runs.changes.watch(poll_s=LOOK_S) as watch:
        while True:
            changed = False
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await watch.next()
                    changed = True
            if run_id is not None:
                before, cursor = cursor, runs.logs(run_id, cursor=cursor)["cursor"]
                changed = changed or before != cursor
            yield changed


def _row(runs: RunService, run: Run) -> dict[str, Any]:
    timing = run.timing
    return run_views.brief(run, runs.redactor.redact) | {
        "began_at": timing.started_at or timing.enqueued_at,
        "ended_at": timing.ended_at,
        "usage": run.usage.as_dict(),
    }


def _answer(run: Run) -> Any:
    """A text, or a JSON value; None while there is none."""
    match run_views.cuttable(run, ONE_RUN_TOKENS):
        case {"value": value}:
            return value
        case {"output": output}:
            return output
        case other:
            return other


def _asked(runs: RunService, messages: list[Message]) -> list[dict[str, Any]]:
    return [_question(message, _row(runs, runs.store.runs.get(message.run_id))) for message in messages]


def _question(message: Message, run: Mapping[str, Any]) -> dict[str, Any]:
    view: dict[str, Any] = {
        "message_id": message.id,
        **{name: run[name] for name in ("run_id", "agent", "task")},
        "asked_at": message.asked_at,
        "question": message.question,
    }
    if message.permission is not None:
        wanted, until = message.permission.asked, message.asked_at + message.permission.wait_s
        view["permission"] = {
            "tool": wanted.tool,
            "subject": wanted.subject,
            "details": wanted.details,
            "rule": message.permission.rule,
            "denied_at": until,
            "denied_in_s": max(0, round(until - time.time())),
        }
    return view


def _answered(message: Message) -> dict[str, Any]:
    return {"question": message.question, "answer": message.answer, "replied_at": message.replied_at}
