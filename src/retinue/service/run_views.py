"""JSON views of runs, messages and logs, each cut to a token budget (P4)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from retinue.core import (
    BudgetKind,
    InvalidInput,
    Json,
    LongText,
    Message,
    MessageStatus,
    Run,
    RunStatus,
    Usage,
    as_object,
    as_text,
    counted,
    estimate_tokens,
    utc_text,
)
from retinue.store import (
    ALL_STREAMS,
    LogLine,
    LogStream,
    count_lines,
    message_view,
    read_log,
    tail_log,
    time_text,
)

CUT_MARK = "[…]"
MAX_LEAD_IN = 60
"""Characters before or after a reason that add nothing to it, such as the name of its step."""
_ANSWER_KEYS = frozenset({"output", "value", "cut", "beginning", "characters", "lines"})
RESULT_STREAM = "result"
"""What callers pass as `stream` to read the whole result of a run, page by page."""
UNCUT = 1 << 40
"""A token budget that cuts nothing."""
SPAWN_KEYS = (
    *("error", "run_id", "status", "questions", "next", "cut"),
    *("model", "skills", "notes", "unverified", "receipt", "token_limits"),
)
"""The keys of an outcome that `spawn_agent` returns besides the answer."""

TAIL_LINES = 200
MIN_LINE_CHARACTERS = 400
SPARE_TOKENS = 20
"""Tokens by which a text is cut shorter than needed, because tokens are not spread evenly over it."""
MIN_TEXT_CHARACTERS = 200
"""Shorter texts are not shortened to make a view fit."""
MAX_CHARACTERS_PER_TOKEN = 4
"""A page that is longer, such as a single long line, is cut to its end."""
MIN_BYTES_PER_TOKEN = 2
"""A token stands for at least this many bytes of a log."""


def brief_view(
    run: Run, redact: Callable[[str], str], messages: Iterable[Message] = (), below: int = 0
) -> dict[str, Any]:
    """A run as a row of a list, with the number of runs `below` it.

    Redacts the task before it is cut: half a secret is not recognized (P6).
    """
    view: dict[str, Any] = {
        "run_id": run.id,
        "agent": run.spec.agent,
        "status": run.status.value,
        "began_at": run.timing.started_at or run.timing.enqueued_at,
        "duration_ms": elapsed_ms(run),
        "task": clip_line(redact(run.spec.task), 80),
    }
    if run.spec.parent is not None:
        view["parent"] = run.spec.parent
    if below:
        view["children"] = below
    view |= waits_for(run)
    if run.status is RunStatus.QUEUED and not run.owner:
        view.setdefault("waits_for", "a process: a server in its folder, or `retinue wait` there")
    if questions := open_questions(run, messages):
        view["questions"] = questions
    return view


def progress_view(run: Run) -> dict[str, Any]:
    """The state of a run, for progress messages to a caller that waits for it."""
    view: dict[str, Any] = {
        "agent": run.spec.agent,
        "status": run.status.value,
        "duration_ms": elapsed_ms(run),
        **waits_for(run),
    }
    match run.result:
        case {"value": {"references": list() as found}}:
            view["places"] = len(found)
        case _:
            pass
    return view


def full_view(run: Run, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
    """All details of a run, cut to the tokens, with a hint where to get the rest."""
    result, texts = cuttable_result(run, tokens), dict[tuple[int, str], LongText]()
    if isinstance(result, dict) and (long := long_result(run)):
        result = dict(cast("dict[str, Any]", result))
        del result["beginning"]
        result["output"], texts[id(result), "output"] = long.shorten(long.characters), long
    view: dict[str, Any] = {
        "run_id": run.id,
        "agent": run.spec.agent,
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
        "limits": limits_view(run),
        "duration_ms": elapsed_ms(run),
        "usage": run.usage.as_dict(),
        "error": run.error,
        "result": result,
        **waits_for(run),
    }
    if questions := open_questions(run, messages):
        view["questions"] = questions
        view["next"] = how_to_reply(run, questions)
    elif not run.status.ended:
        view["next"] = how_to_wait(run)
    return fit_to_tokens(view, tokens, _where_all_is(run), texts)


def state_reason_once(view: dict[str, Any]) -> None:
    """Remove from the view of a stopped workflow what only repeats the message of its error."""
    said = as_text(as_object(view.get("error")).get("message"))
    reason = as_text(view.get("reason")) or said
    if not said:
        return

    def repeats(value: object) -> bool:
        text = as_text(value).strip()
        return bool(text) and (text in said or (reason in text and len(text) < len(reason) + MAX_LEAD_IN))

    kept = {
        key: value for key, value in view.items() if key not in ("reason", "summary") or not repeats(value)
    }
    if "issues" in view:
        kept["issues"] = [issue for issue in view["issues"] if not repeats(issue)]
    if "findings" in view:
        found = as_object(view["findings"])
        kept["findings"] = {name: value for name, value in found.items() if not repeats(value)}
    view.clear()
    view |= {key: value for key, value in kept.items() if key not in ("issues", "findings") or value}


def workflow_run(run: Run, *, has_own_summary: bool) -> Run:
    """A workflow's run that has ended, with its result as an object and each statement in it once.

    Its stored summary is the end of its log, unless somebody reported one: `has_own_summary`.
    """
    stored = as_object(run.result)
    try:
        parsed: Any = json.loads(as_text(stored.get("output")))
    except ValueError:  # cut, because it is long
        parsed = None
    if not isinstance(parsed, dict):
        return replace(run, summary=run.summary if has_own_summary else None)
    value = {"error": run.error, **cast("dict[str, Any]", parsed)}
    state_reason_once(value)
    del value["error"]
    summary = run.summary if has_own_summary else as_text(value.pop("summary", None)) or None
    rest = {key: each for key, each in stored.items() if key not in ("output", "cut")}
    return replace(run, summary=summary, result=cast("Json", {"value": value, **rest}))


def outcome_view(run: Run, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
    """The answer of a tool that starts a run: the result, or the run's state and what to do next."""
    view: dict[str, Any] = {"run_id": run.id, "agent": run.spec.agent, "status": run.status.value}
    view["duration_ms"] = elapsed_ms(run)
    texts: dict[tuple[int, str], LongText] = {}
    if run.status is RunStatus.SUCCESS:
        result = cuttable_result(run, tokens)
        view["result"] = result.get("value", result["output"])
        if long := long_result(run):
            view["result"], texts[id(view), "result"] = long.shorten(long.characters), long
        view |= facts(run)
    elif run.status.ended:
        view["error"] = run.error
        if run.spec.executor != "workflow":  # the log of a workflow repeats the reason of its stop
            view["summary"] = run.summary
        view |= facts(run)
    elif questions := open_questions(run, messages):
        view["questions"] = questions
        view["next"] = how_to_reply(run, questions)
    else:
        view |= waits_for(run)
        view["next"] = how_to_wait(run)
    return fit_to_tokens(view, tokens, _where_all_is(run), texts)


def how_to_wait(run: Run) -> str:
    """The next step of a caller whose run goes on, in one line."""
    return f"wait_for_runs(run_ids=[{str(run.id)!r}]) returns when it ends or asks something"


def how_to_reply(run: Run, questions: Sequence[Mapping[str, str]]) -> str:
    """The next step of a caller whose run asks something, in one line."""
    first = questions[0]
    asker, message = first.get("run_id", str(run.id)), first["messageId"]
    which = "" if len(questions) == 1 else ", and so on for each question"
    return f"reply_subagent(runId={asker!r}, messageId={message!r}, answer=...){which}, then wait_for_runs"


def _where_all_is(run: Run) -> str:
    """Where to read what a view leaves out."""
    name = str(run.id)
    if run.status is RunStatus.SUCCESS:
        return f"get_subagent_logs(runId={name!r}, stream={RESULT_STREAM!r}) returns all of it in pages"
    return f"get_subagent_logs(runId={name!r}, cursor=0) returns all output in pages"


def long_result(run: Run) -> LongText | None:
    """The result of a run whose middle is only in its log; None if the run has all of it."""
    match run.result:
        case {
            "output": str(end),
            "beginning": str(beginning),
            "characters": int(characters),
            "lines": int(lines),
        }:
            return LongText(beginning, end, characters, lines)
        case _:
            return None


def result_text(run: Run) -> str:
    """The whole result of a run as text: its JSON value, or its answer."""
    result: Any = run.result or {}
    return json.dumps(result["value"], ensure_ascii=False) if "value" in result else result.get("output", "")


def result_page(run: Run, log: Path, cursor: int, tokens: int) -> dict[str, Any]:
    """A part of a run's result, from the cursor on."""
    if long := long_result(run):
        page = read_log(log, cursor, tokens * MIN_BYTES_PER_TOKEN, frozenset({LogStream.STDOUT}))
        text = "".join(line.text + ("\n" if line.complete else "") for line in page.lines)
        return {"log": text, "cursor": page.cursor, "more": not page.at_end, "characters": long.characters}
    whole = result_text(run)
    shown = page_of(whole, cursor, tokens)
    end = len(whole) if shown.next is None else shown.next
    return {"log": shown.text, "cursor": end, "more": shown.next is not None, "characters": len(whole)}


def waits_for(run: Run, now: Callable[[], float] = time.time) -> dict[str, str]:
    """Return the usage limit that a queued run waits for besides a slot."""
    if run.status is not RunStatus.QUEUED or run.not_before is None or run.not_before <= now():
        return {}
    what = f"the quota of {run.spec.account}" if run.spec.account else "its provider"
    return {"waits_for": f"{what}, until {utc_text(run.not_before)}"}


def cuttable_result(run: Run, tokens: int) -> Any:
    """The run's result. JSON that is too large becomes text, which can be cut (P4). Reports already fit."""
    result: Any = run.result
    if run.spec.executor == "deterministic" or not isinstance(result, Mapping) or "value" not in result:
        return cast("Any", result)
    values = dict(cast("Mapping[str, Any]", result))
    text = json.dumps(values["value"], ensure_ascii=False)
    if estimate_tokens(text) > tokens:
        values["value"] = text
    return values


def spawn_view(outcome: dict[str, Any], usage: Usage) -> dict[str, Any]:
    """An outcome in the format of `spawn_agent`: the answer, and the steps and tokens it took."""
    answer = outcome.get("result") or outcome.get("summary") or ""
    if not RunStatus(outcome["status"]).ended:
        waits = "waits for an answer" if "questions" in outcome else "is still running"
        answer = f"The agent {waits} after {outcome['duration_ms'] / 1000:.0f} s. {outcome['next']}"
    view: dict[str, Any] = {
        "output": answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False),
        "steps": usage.get(BudgetKind.STEPS),
        "tokens": usage.get(BudgetKind.TOKENS),
    }
    return view | {key: outcome[key] for key in SPAWN_KEYS if key in outcome}


def facts(run: Run) -> dict[str, Any]:
    """What a result contains besides its answer: notes, the effective model, the isolation, denials."""
    result: Mapping[str, Any] = run.result if isinstance(run.result, Mapping) else {}
    return {name: value for name, value in result.items() if name not in _ANSWER_KEYS}


def open_questions(run: Run, messages: Iterable[Message]) -> list[dict[str, str]]:
    """The questions that are not answered. Those of a run below this one name it as `run_id`."""
    return [
        {"messageId": message.id, "question": message.question}
        | ({"run_id": str(message.run_id)} if message.run_id != run.id else {})
        for message in messages
        if message.status is MessageStatus.PENDING
    ]


def limits_view(run: Run) -> dict[str, Any]:
    limits = run.spec.limits
    return {"queue_s": limits.queue_s, "run_s": limits.run_s, **limits.budget.as_dict()}


def elapsed_ms(run: Run, now: Callable[[], float] = time.time) -> int:
    """The time since the run started, or was queued if it has not started, until its end or now."""
    timing = run.timing
    began = timing.started_at if timing.started_at is not None else timing.enqueued_at
    return max(0, round(((timing.ended_at or now()) - began) * 1000))


def log_page(path: Path, stream: str, cursor: int | None, tokens: int) -> dict[str, Any]:
    """The end of a log, or the lines after a cursor, as many as fit."""
    if stream not in ("all", *LogStream):
        names = ", ".join(("all", *(each.value for each in LogStream)))
        raise InvalidInput(f"no such stream: {stream!r}", hint=f"one of: {names}")
    if tokens < 1:
        raise InvalidInput(f"no log fits into {tokens} tokens", hint="omit `tokens` to use the default")
    streams = ALL_STREAMS if stream == "all" else frozenset({LogStream(stream)})
    if cursor is None:
        page = tail_log(path, TAIL_LINES, streams)
        kept = _take_fitting(page.lines[::-1], tokens)[::-1]
    else:
        page = read_log(path, cursor, tokens * MIN_BYTES_PER_TOKEN, streams)
        kept = page.lines
    text = "\n".join(format_log_line(each, streams=len(streams) > 1) for each in kept)
    most = max(MIN_LINE_CHARACTERS, tokens * MAX_CHARACTERS_PER_TOKEN)
    view: dict[str, Any] = {
        "log": text if cursor is not None or len(text) <= most else CUT_MARK + text[-most:],
        "cursor": page.cursor,
        "more": not page.at_end,
    }
    if left_out := len(page.lines) - len(kept):
        view["cut"] = f"{counted(left_out, 'line')} omitted; cursor=0 returns the log from its beginning"
    return view


def last_lines_view(path: Path, lines: int, stream: str) -> dict[str, Any]:
    """The last lines of a log without a token limit, for people, and the number of earlier lines."""
    streams = ALL_STREAMS if stream == "all" else frozenset({LogStream(stream)})
    page = tail_log(path, lines, streams)
    text = "\n".join(format_log_line(each, streams=len(streams) > 1) for each in page.lines)
    earlier = max(0, count_lines(path, streams) - len(page.lines))
    return {"log": text, "cursor": page.cursor, "more": False, "earlier_lines": earlier}


class TextPage(NamedTuple):
    """A part of a text."""

    text: str
    next: int | None
    """Where the next page begins; None at the end of the text."""


def page_of(text: str, cursor: int, tokens: int) -> TextPage:
    """The part of a text from the cursor on that fits into the tokens, whole lines if possible (P4)."""
    if not 0 <= cursor <= len(text):
        raise InvalidInput(f"invalid cursor: {cursor}", hint="pass a cursor that Retinue has returned")
    end = min(len(text), cursor + tokens * MAX_CHARACTERS_PER_TOKEN)
    while (size := estimate_tokens(text[cursor:end])) > tokens and end > cursor + 1:
        end = cursor + max(1, min(end - cursor - 1, (end - cursor) * tokens // size))
    if end < len(text) and (line_end := text.rfind("\n", cursor, end)) > cursor:
        end = line_end + 1
    return TextPage(text[cursor:end], None if end >= len(text) else end)


def _take_fitting(lines: Sequence[LogLine], tokens: int) -> Sequence[LogLine]:
    """Return as many lines from the beginning as fit, but at least one."""
    for number, each in enumerate(lines):
        tokens -= estimate_tokens(each.text) + 2
        if tokens < 0:
            return lines[: max(1, number)]
    return lines


def format_log_line(entry: LogLine, *, streams: bool) -> str:
    return f"{entry.stream}: {entry.text}" if streams else entry.text


def clip_line(text: str, characters: int) -> str:
    """Join the text into one line and cut it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= characters else flat[: characters - len(CUT_MARK)] + CUT_MARK


def fit_to_tokens(
    view: dict[str, Any],
    tokens: int,
    rest: str,
    texts: Mapping[tuple[int, str], LongText] | None = None,
) -> dict[str, Any]:
    """Shorten the longest texts of the view until it fits. `rest` tells where to get what is missing (P4).

    Each keeps its beginning and its end. `texts` has the whole texts that the view already shows in part, by
    the id of their container and their key.
    """
    if tokens >= UNCUT:
        return view
    whole: dict[tuple[int, Any], LongText] = dict(texts or {})
    if whole:
        view["cut"] = "cut to fit; " + rest
    while (size := _json_tokens(view)) > tokens:
        holder, key, text = max(_iterate_texts(view), key=lambda found: len(found[2]))
        if len(text) < MIN_TEXT_CHARACTERS:
            break
        place = (id(holder), key)
        if place not in whole:
            whole[place] = LongText.of(text)
            view["cut"] = "cut to fit; " + rest
        own = _json_tokens(text)
        share = max(0.0, own - (size - tokens) - SPARE_TOKENS) / own
        shorter = whole[place].shorten(max(MIN_TEXT_CHARACTERS // 2, int(len(text) * share)))
        if len(shorter) >= len(text):
            break
        holder[key] = shorter
    return view


def _json_tokens(value: Any) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False))


def _iterate_texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield every text in a JSON value, with its container and key."""
    if isinstance(value, dict):
        pairs = list(cast("dict[Any, Any]", value).items())
    else:
        pairs = list(enumerate(cast("list[Any]", value)))
    for key, item in pairs:
        if isinstance(item, str):
            yield value, key, item
        elif isinstance(item, dict | list):
            yield from _iterate_texts(item)


def question_state(message: Message) -> dict[str, Any]:
    """The state of a question for the run that asked it: the answer, or how to wait for it."""
    view: dict[str, Any] = {"messageId": message.id, "messageStatus": message.status.value}
    if message.status is MessageStatus.ACKNOWLEDGED:
        return view | {"answer": message.answer}
    if message.status is MessageStatus.CLOSED:
        return view | {"note": "the run ended before an answer arrived"}
    return view | {
        "next": "check_message_status(messageId, wait_s) waits for the answer; until then continue without it"
    }
