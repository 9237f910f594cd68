"""Overviews of runs for a person who watches them, and their answers. Knows nothing of web pages."""

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
    RunId,
    RunStatus,
    clip,
)
from retinue.service import run_views
from retinue.service.quotas import spent_quotas
from retinue.service.run_output import read_log

if TYPE_CHECKING:
    from retinue.service.runs import RunService
    from retinue.service.service import Service

MAX_ACTIVE, MAX_RECENT, MAX_CHILDREN, MAX_EVENTS, MAX_MEMORIES = 200, 30, 100, 100, 200
"""Maximum numbers of rows in each list."""
WORKFLOW_FACTS = ("decision", "suggestion", "issues", "executors", "patches", "notes", "receipt")
"""What a page shows of a workflow's result beside its summary and its patch."""
TASK_CHARACTERS = 4_000
ONE_RUN_TOKENS, LOG_TOKENS = 8_000, 6_000
"""Maximum sizes of a run's overview and log. A person reads more than a host wants to pay for."""
POLL_S = 0.25
"""Seconds between two checks for changes of other processes."""


def runs_overview(runs: RunService) -> dict[str, Any]:
    """The open questions, the active runs, and the requests that ended last."""
    active = runs.store.runs.list(statuses=ACTIVE_STATUSES, limit=MAX_ACTIVE + 1)
    recent = runs.store.runs.list(statuses=ENDED_STATUSES, requests_only=True, limit=MAX_RECENT)
    below = runs.store.runs.count_children([run.id for run in recent])
    view: dict[str, Any] = {
        "asked": _question_views(runs, runs.store.messages.all_pending()),
        "active": [_run_row(runs, run) for run in active[:MAX_ACTIVE]],
        "recent": [_run_row(runs, run, below.get(run.id, 0)) for run in recent],
        "more_active": len(active) > MAX_ACTIVE,
        "quotas": spent_quotas(runs.store, runs.redactor),
    }
    return runs.redactor.redact_value(view)


def run_overview(runs: RunService, run_id: str) -> dict[str, Any]:
    """All details of one run, for a page."""
    run, messages = runs.with_messages(run_id)
    pending = [message for message in messages if message.status is MessageStatus.PENDING]
    task = runs.redactor.redact(run.spec.task)
    view: dict[str, Any] = {
        **_run_row(runs, run),
        "task": clip(task, TASK_CHARACTERS),
        "task_letters": len(task),
        "caller": run.spec.caller,
        "executor": run.spec.executor,
        "model": run.spec.model,
        "tools": list(run.spec.tools),
        "limits": run_views.limits_view(run),
        "exit_code": run.exit_code,
        "summary": run.summary,
        "error": run.error,
        **_answer_and_facts(runs, run),
        "cancel_requested": run.cancel_requested,
        "answered": [_answered_view(message) for message in messages if message.answer is not None],
        "children": [
            _run_row(runs, child) for child in runs.store.runs.list(parent=run.id, limit=MAX_CHILDREN)
        ],
        "events": [
            {"at": event.at, "kind": event.kind, "data": dict(event.data)}
            for event in runs.store.events.latest(run.id, MAX_EVENTS)
        ],
    }
    clean = runs.redactor.redact_value(view)  # before anything is cut: half a secret is not recognized
    fitted = run_views.fit_to_tokens(clean, ONE_RUN_TOKENS, f"`retinue logs {run.id}` shows all output")
    # Questions are not cut: nobody should allow what they cannot see.
    whole = {"asked": _question_views(runs, pending), "log": read_log(runs, run_id, tokens=LOG_TOKENS)}
    return runs.redactor.redact_value(fitted | whole)


async def answer_run(service: Service, run_id: str, message_id: str, text: str) -> dict[str, Any]:
    """Answer one question, and resume the workflow that asked it if no process performs it."""
    reply = await service.runs.reply(run_id, message_id, text)
    await resume_answered(service, reply["run_id"])
    return reply


async def resume_answered(service: Service, run_id: RunId) -> bool:
    """Resume a workflow in this process if its questions are answered and no process performs it."""
    run = service.runs.store.runs.get(run_id)
    if run.spec.resumable and run.status is RunStatus.QUEUED:
        with suppress(Conflict):  # a workflow of another folder: a server of that folder resumes it
            return await service.workflows.resume(run.id)
    return False


async def resume_abandoned(service: Service, run_id: RunId) -> bool:
    """Resume a run in this process if no other performs it: a workflow, or one that waited for a quota."""
    return await resume_answered(service, run_id) or await service.runs.resume_waiting(run_id)


async def watch_for_changes(runs: RunService, run_id: str | None, pause_s: float) -> AsyncGenerator[bool]:
    """Yield True after every change of a run, and False if nothing has changed for `pause_s`.

    With a run's id, new output in its log counts as a change, too.
    """
    cursor: int | None = None if run_id is None else read_log(runs, run_id)["cursor"]
    with runs.changes.watch(poll_s=POLL_S) as watch:
        while True:
            changed = False
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await watch.next()
                    changed = True
            if run_id is not None:
                before, cursor = cursor, read_log(runs, run_id, cursor=cursor)["cursor"]
                changed = changed or before != cursor
            yield changed


def _run_row(runs: RunService, run: Run, below: int = 0) -> dict[str, Any]:
    timing = run.timing
    return run_views.brief_view(run, runs.redactor.redact, below=below) | {
        "ended_at": timing.ended_at,
        "usage": run.usage.as_dict(),
    }


def _answer_and_facts(runs: RunService, run: Run) -> dict[str, Any]:
    """The run's answer, and what else is known of it. The answer of a workflow is its summary in words."""
    if run.spec.executor != "workflow" or not run.status.ended:
        return {"answer": _run_answer(run), "facts": run_views.facts(run)}
    view = runs.workflow_outcome(run, run_views.UNCUT)
    summary = view.get("output") or view.get("summary") or view.get("reason")
    facts = {name: value for name, value in view.items() if name in WORKFLOW_FACTS and value}
    return {"answer": summary, "facts": facts | view.get("patch", {})}


def _run_answer(run: Run) -> Any:
    """The run's answer: a text or a JSON value; None while there is none."""
    match run_views.cuttable_result(run, ONE_RUN_TOKENS):
        case {"value": value}:
            return value
        case {"output": output}:
            return output
        case other:
            return other


def _question_views(runs: RunService, messages: list[Message]) -> list[dict[str, Any]]:
    return [
        _question_view(message, _run_row(runs, runs.store.runs.get(message.run_id))) for message in messages
    ]


def _question_view(message: Message, run: Mapping[str, Any]) -> dict[str, Any]:
    view: dict[str, Any] = {
        "message_id": message.id,
        **{name: run[name] for name in ("run_id", "agent", "task")},
        "asked_at": message.asked_at,
        "question": message.question,
    }
    if message.permission is not None:
        wanted, wait_s = message.permission.asked, message.permission.wait_s
        view["permission"] = {
            "tool": wanted.tool,
            "subject": wanted.subject,
            "details": wanted.details,
            "rule": message.permission.rule,
            "warning": message.permission.warning,
        }
        if wait_s is not None:
            until = message.asked_at + wait_s
            view["permission"] |= {"denied_at": until, "denied_in_s": max(0, round(until - time.time()))}
    return view


def _answered_view(message: Message) -> dict[str, Any]:
    return {"question": message.question, "answer": message.answer, "replied_at": message.replied_at}


def learning_overview(service: Service) -> dict[str, Any]:
    """Friction, drafts, skills and memories, for the dashboard's page on learning."""
    evolution = service.evolution
    found = evolution.overview()
    memories = service.memory.list()["memories"]
    return {
        "friction": found["friction"],
        "drafts": found["drafts"],
        "skills": service.skills.list_all(effects=evolution.skill_effects())["skills"],
        "memories": memories[:MAX_MEMORIES],
        "more_memories": len(memories[MAX_MEMORIES:]),
    }
