"""Runs, messages and logs as hosts and people see them: small, in the words of the contracts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from retinue.core import (
    BudgetKind,
    InvalidInput,
    Message,
    MessageStatus,
    Run,
    RunStatus,
    Usage,
    counted,
    estimate_tokens,
)
from retinue.store import ALL_STREAMS, LogLine, LogStream, message_view, read_log, tail_log, time_text

CUT = "[…]"
ANSWER = frozenset({"output", "value", "cut"})
SPAWNED = ("error", "run_id", "status", "questions", "next", "note", "cut")
"""Of an outcome, what `spawn_agent` tells besides the answer."""


def brief(run: Run, redact: Callable[[str], str], messages: Iterable[Message] = ()) -> dict[str, Any]:
    """One line of a list. The task loses its secrets before it is cut: half of one is not seen (P6)."""
    view: dict[str, Any] = {
        "run_id": run.id,
        "agent": run.spec.agent,
        "status": run.status.value,
        "elapsed_ms": elapsed_ms(run),
        "task": clip_to_tokens(redact(run.spec.task), 80),
    }
    if run.spec.parent is not None:
        view["parent"] = run.spec.parent
    if questions := open_questions(messages):
        view["questions"] = questions
    return view


def at_work(run: Run) -> dict[str, Any]:
    """Where a run stands, as it is told while others wait for it."""
    view: dict[str, Any] = {
        "agent": run.spec.agent,
        "status": run.status.value,
        "elapsed_ms": elapsed_ms(run),
    }
    match run.result:
        case {"value": {"references": list() as found}}:
            view["places"] = len(found)
        case _:
            pass
    return view


def full(run: Run, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
    """Everything about a run that fits; the rest is named with where to get it."""
    view: dict[str, Any] = {
        "runId": run.id,
        "agentName": run.spec.agent,
        "command": run.spec.command,
        "status": run.status.value,
        "startTime": time_text(run.timing.started_at),
        "endTime": time_text(run.timing.ended_at),
        "exitCode": run.exit_code,
        "summary": run.summary,
        "messages": [message_view(message) for message in messages],
        "parent": run.spec.parent,
        "caller": run.spec.caller,
        "executor": run.spec.executor,
        "model": run.spec.model,
        "tools": list(run.spec.tools),
        "limits": limits(run),
        "elapsed_ms": elapsed_ms(run),
        "usage": run.usage.as_dict(),
        "error": run.error,
        "result": cuttable(run, tokens),
    }
    if questions := open_questions(messages):
        view["questions"] = questions
        view["next"] = "answer with reply_subagent(runId, messageId, answer)"
    elif not run.status.ended:
        view["next"] = "wait_for_runs returns when the run ends or asks"
    return fitted(view, tokens, f"get_subagent_logs(runId={str(run.id)!r}) has the whole output")


def outcome(run: Run, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
    """What a tool that started a run answers: the result, or where the run stands."""
    view: dict[str, Any] = {"run_id": run.id, "agent": run.spec.agent, "status": run.status.value}
    view["duration_ms"] = elapsed_ms(run)
    if run.status is RunStatus.SUCCESS:
        result = cuttable(run, tokens)
        view["result"] = result.get("value", result["output"])
        if result["cut"]:
            view["note"] = "the beginning was cut; get_subagent_logs has all of it"
        view |= facts(run)
    elif run.status.ended:
        view["error"] = run.error
        view["summary"] = run.summary
        view |= facts(run)
    elif questions := open_questions(messages):
        view["questions"] = questions
        view["next"] = "answer with reply_subagent(runId, messageId, answer), then wait_for_runs"
    else:
        view["next"] = "wait_for_runs([run_id]) returns when the run ends or asks"
    return fitted(view, tokens, f"get_subagent_logs(runId={str(run.id)!r}) has the whole output")


def cuttable(run: Run, tokens: int) -> Any:
    """The result. An agent's JSON that does not fit is a text, which can be cut (P4); a report was made to
    fit."""
    result: Any = run.result
    if run.spec.executor == "deterministic" or not isinstance(result, Mapping) or "value" not in result:
        return cast("Any", result)
    kept = dict(cast("Mapping[str, Any]", result))
    text = json.dumps(kept["value"], ensure_ascii=False)
    if estimate_tokens(text) > tokens:
        kept["value"] = text
    return kept


def spawned(seen: dict[str, Any], usage: Usage) -> dict[str, Any]:
    """An outcome in the words of `spawn_agent`: the answer, and what it took."""
    answer = seen.get("result") or seen.get("summary") or ""
    view: dict[str, Any] = {
        "output": answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False),
        "steps": usage.get(BudgetKind.STEPS),
        "tokens": usage.get(BudgetKind.TOKENS),
    }
    return view | {key: seen[key] for key in SPAWNED if key in seen}


def facts(run: Run) -> dict[str, Any]:
    """What a result says beside its answer: notes, the effective model, the isolation, what was denied."""
    result: Mapping[str, Any] = run.result if isinstance(run.result, Mapping) else {}
    return {name: value for name, value in result.items() if name not in ANSWER}


def open_questions(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [
        {"messageId": message.id, "question": message.question}
        for message in messages
        if message.status is MessageStatus.PENDING
    ]


def limits(run: Run) -> dict[str, Any]:
    given = run.spec.limits
    return {"queue_s": given.queue_s, "run_s": given.run_s, **given.budget.as_dict()}


def elapsed_ms(run: Run, now: Callable[[], float] = time.time) -> int:
    """From its start, or from its place in the queue while it has not started, until its end or now."""
    timing = run.timing
    began = timing.started_at if timing.started_at is not None else timing.enqueued_at
    return max(0, round(((timing.ended_at or now()) - began) * 1000))


def line(entry: LogLine, *, streams: bool) -> str:
    return f"{entry.stream}: {entry.text}" if streams else entry.text


def clip_to_tokens(text: str, letters: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= letters else flat[: letters - len(CUT)] + CUT


def fitted(view: dict[str, Any], tokens: int, rest: str) -> dict[str, Any]:
    """The view with its longest texts cut until it fits, and a word about what was cut (P4)."""
    note = "cut to fit; " + rest
    while estimate_tokens(json.dumps(view, ensure_ascii=False)) > tokens:
        holder, key = _longest(view)
        text = holder[key]
        if len(text) < 200:
            break
        # The end of an output says more than its beginning: that is where results and errors stand.
        holder[key] = CUT + text.removeprefix(CUT)[len(text) // 2 :]
        view["cut"] = note
    return view


def _longest(value: Any) -> tuple[Any, Any]:
    """Where the longest text stands in a JSON value."""
    holder, key, _ = max(_texts(value), key=lambda found: len(found[2]))
    return holder, key


def _texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Every text in a JSON value, with what holds it and under which key."""
    if isinstance(value, dict):
        pairs = list(cast("dict[Any, Any]", value).items())
    else:
        pairs = list(enumerate(cast("list[Any]", value)))
    for key, item in pairs:
        if isinstance(item, str):
            yield value, key, item
        elif isinstance(item, dict | list):
            yield from _texts(item)


# MERGED log_pages: A run's log as an answer: its end, or what follows a cursor, and no more than fits (P4).

TAIL_LINES = 200
LONGEST_LINE = 400
MAX_LETTERS_PER_TOKEN = 4
"""A line alone may be longer than all that fits: then its end is shown."""
BYTES_PER_TOKEN = 2
"""Of a log, at the least: a page of so many bytes fits."""


def log_page(path: Path, stream: str, cursor: int | None, tokens: int) -> dict[str, Any]:
    if stream not in ("all", *LogStream):
        names = ", ".join(("all", *(each.value for each in LogStream)))
        raise InvalidInput(f"no such stream: {stream!r}", hint=f"one of: {names}")
    if tokens < 1:
        raise InvalidInput(f"no log fits into {tokens} tokens", hint="leave it out for the default")
    streams = ALL_STREAMS if stream == "all" else frozenset({LogStream(stream)})
    if cursor is None:
        page = tail_log(path, TAIL_LINES, streams)
        kept = _fitting(page.lines[::-1], tokens)[::-1]
    else:
        page = read_log(path, cursor, tokens * BYTES_PER_TOKEN, streams)
        kept = page.lines
    text = "\n".join(line(each, streams=len(streams) > 1) for each in kept)
    most = max(LONGEST_LINE, tokens * MAX_LETTERS_PER_TOKEN)
    view: dict[str, Any] = {
        "log": text if len(text) <= most else CUT + text[-most:],
        "cursor": page.cursor,
        "more": not page.at_end,
    }
    if left_out := len(page.lines) - len(kept):
        view["cut"] = (
            f"{counted(left_out, 'line')} did not fit; ask with a larger `tokens`, or read the log's file"
        )
    return view


def _fitting(lines: Sequence[LogLine], tokens: int) -> Sequence[LogLine]:
    """As many from the beginning as fit, one at least."""
    for number, each in enumerate(lines):
        tokens -= estimate_tokens(each.text) + 2
        if tokens < 0:
            return lines[: max(1, number)]
    return lines
