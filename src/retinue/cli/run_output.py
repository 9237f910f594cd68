"""Formats runs for the terminal: table rows, results, receipts, patches, questions; and their exit codes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from retinue.cli.ask_person import retinue_command
from retinue.cli.output import print_table
from retinue.core import RunStatus, clip, counted, strip_control_characters

EXIT_BY_STATUS = {"success": 0, "timeout": 3, "canceled": 3, "interrupted": 3}
"""Exit codes by the status of an ended run. Every other status is 1."""
STATUS_COLUMN = 2
EXIT_ACTIVE = 4
"""Exit code if a run has not ended yet."""
STATUS_NAMES = {status.value: status for status in RunStatus} | {"asks": RunStatus.WAITING}
"""The statuses by the names that people may use. Tables show `asks` for a run that waits for an answer."""
STATUS_COLORS = {"running": "cyan", "asks": "yellow", "success": "green", "canceled": None, "queued": None}


def format_quota(view: Mapping[str, Any]) -> str:
    """Return one line about a spent account."""
    guess = "" if view["stated"] else " (a guess: nobody said when)"
    waiting = counted(view["waiting_runs"], "run")
    return strip_control_characters(
        f"{view['account']}: spent until {view['reset_at']}{guess}, {waiting} waiting"
    )


def runs_exit_code(views: list[dict[str, Any]]) -> int:
    """Return 4 if a run is still active, otherwise the highest exit code of the runs."""
    active = any(view["status"] in ("queued", "running", "waiting_parent_reply") for view in views)
    return EXIT_ACTIVE if active else max(EXIT_BY_STATUS.get(view["status"], 1) for view in views)


def result_text(view: Mapping[str, Any]) -> str:
    """Return the result of a run or, if it failed, the error, its hint and the end of the output."""
    if "result" in view:
        result = view["result"]
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
    error: Mapping[str, Any] = view.get("error") or {}
    message = f"{error['code']}: {error['message']}" if error else ""
    hint = f"  {error['hint']}" if error.get("hint") else ""
    lines = str(view.get("summary") or "").split("\n")
    output = "\n".join(line for line in lines if line != message)  # the log has the error, too
    return "\n".join(filter(None, (message, hint, output)))


def receipt_lines(view: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counts of a run's receipt, and a warning if it has seen nothing of what it claims."""
    receipt: Mapping[str, Any] = view.get("receipt") or {}
    parts: list[str] = []
    if "tool_calls" in receipt:
        parts.append(counted(sum(receipt["tool_calls"].values()), "tool call"))
        parts.append(f"{counted(_number_of(receipt, 'files_read'), 'file')} read")
    if receipt.get("commands"):
        failed = [
            f"`{clip(each['command'], MAX_SHOWN_COMMAND)}` (exit code {each['exit_code']})"
            for each in receipt["commands"]
            if each["exit_code"]
        ]
        note = f", {len(failed)} failed: {'; '.join(failed)}" if failed else ""
        parts.append(counted(_number_of(receipt, "commands"), "command") + note)
    if "children" in receipt:
        parts.append(counted(receipt["children"], "child run"))
    if "tokens" in receipt:
        parts.append(f"{receipt['tokens']:,} token{'s' * (receipt['tokens'] != 1)}")
    if "seconds" in receipt:
        parts.append(f"{receipt['seconds']:.1f} s")
    usage: Mapping[str, int] = view.get("usage") or {}
    if cost := usage.get("cost_micros"):
        parts.append(f"${cost / 1_000_000:.4f}")
    models: list[str] = receipt.get("models") or ([receipt["model"]] if "model" in receipt else [])
    parts += [f"model {', '.join(models)}"] if models else []
    parts += [f"skills {', '.join(view['skills'])}"] if view.get("skills") else []
    if parts:
        yield ", ".join(parts)
    if reason := view.get("unverified"):
        yield f"unverified: {reason}"


def closing_lines(view: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines below the answer of a run: its patch, denials, notes and receipt."""
    yield from _patch_lines(view)
    yield from _merge_lines(view.get("merge") or {})
    yield from _note_lines(view)
    yield from receipt_lines(view)


def _patch_lines(patch: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a run changed in its worktree, how to apply it, and which files of the user it lacks."""
    if "apply" in patch:
        yield f"patch: changes {', '.join(patch.get('files_changed', ()))}"
        yield f"apply it with: {patch['apply']}"
    elif "files_changed" in patch:
        yield "no file was changed"
    yield from (f"note: {patch[name]}" for name in ("uncommitted", "filters") if name in patch)


def _merge_lines(merge: Mapping[str, Any]) -> Iterator[str]:
    """Yield in which order the branches of several writers apply, and which of them do not fit."""
    if len(order := merge.get("order", ())) > 1:
        yield f"these merge without conflicts, in this order: {', '.join(order)}"
    for row in merge.get("conflicts", ()):
        yield f"conflict between {' and '.join(row['branches'])}: {', '.join(row['files'])}"


def _note_lines(view: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"denied: {each}" for each in view.get("denials", ()))
    yield from (f"note: {each}" for each in view.get("notes", ()))


def print_workflow(view: Mapping[str, Any]) -> None:
    """Print the result of a workflow or team. A team's answer is alone on stdout, for other programs."""
    if view.get("output") and view["status"] == "success":
        click.echo(view["output"])
        for line in (*_patch_lines(view.get("patch") or {}), *_work_lines(view)):
            click.echo(line, err=True)
        return
    click.echo(f"{view.get('decision', view['status'])}: {workflow_summary(view)}")
    error: Mapping[str, str] = view.get("error") or {}
    for line in filter(None, (error.get("hint"), view.get("suggestion"))):
        click.echo(line)
    for issue in view.get("issues", ()):
        if issue != view.get("reason"):  # already printed above
            click.echo("- " + issue.replace("\n", "\n  "))
    for line in (*_try_lines(view.get("findings") or {}), *_patch_lines(view.get("patch") or {})):
        click.echo(line)
    if "patch" not in view:
        for line in _branch_lines(view.get("patches") or {}):
            click.echo(line)
    for line in _work_lines(view):
        click.echo(line)
    if savings := view.get("savings"):
        from retinue.service import savings_table

        click.echo()
        print_table(savings_table(savings))


def _work_lines(view: Mapping[str, Any]) -> Iterator[str]:
    """Yield the executors of a workflow's agents, the denials and notes of their runs, and the receipt."""
    yield from (f"{agent} ran on {executor}" for agent, executor in view.get("executors", {}).items())
    yield from _note_lines(view)
    yield from receipt_lines(view)


def workflow_summary(view: Mapping[str, Any]) -> str:
    """Return the reason, the summary or the error of a workflow."""
    error: Mapping[str, str] = view.get("error") or {}
    return view.get("reason") or error.get("message") or view.get("summary") or ""


def _try_lines(findings: Mapping[str, Any]) -> Iterator[str]:
    """Yield which try of a `best_of` step won, who chose it, and why others did not pass."""
    if "best" not in findings or "chosen_by" not in findings:
        return
    tries: list[dict[str, Any]] = findings.get("tries", [])
    number = counted(len(tries), "try", "tries")
    yield f"best of {number}: {findings['best']}, chosen by {findings['chosen_by']}"
    yield from (f"- {row['try']}: {row['reason']}" for row in tries if not row["passed"])


def _branch_lines(patches: Mapping[str, Any]) -> Iterator[str]:
    """Yield the branches with the work of several writers, or of a workflow that ended early."""
    for row in patches.get("branches", ()):
        printed_by = f"{retinue_command()} patch {row['run']}"
        yield f"work of {row['agent']}: {row['branch']}; see it with: {printed_by}"
    yield from _merge_lines(patches.get("merge") or {})


MAX_SHOWN_COMMAND = 80
"""A longer command is cut in the line that says what a run did."""


def _number_of(receipt: Mapping[str, Any], name: str) -> int:
    more = "more_files_read" if name == "files_read" else "more_commands"
    return len(receipt[name]) + receipt.get(more, 0)


def format_question(run_id: str, row: Mapping[str, str]) -> str:
    """Return a question and the command that answers it, for the output of `wait`."""
    command = f"{retinue_command()} reply {run_id} --message {row['messageId']}"
    question = row["question"].replace("\n", "\n    ")
    return f'\n  asks: {question}\n  answer with: {command} "..."'


def run_row(view: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one run for the table."""
    asks = "  asks: " + _first_line(view["questions"][0]["question"]) if view.get("questions") else ""
    if waits := view.get("waits_for"):
        asks += f"  waits for {waits}"
    if number := view.get("children"):
        asks += f"  (+{counted(number, 'run')})"
    status = shown_status(view["status"])
    age, seconds = time.time() - view["began_at"], f"{view['duration_ms'] / 1000:.1f} s"
    return (view["run_id"], short_age(age), status, seconds, view["agent"], view["task"] + asks)


MAX_SHOWN_QUESTION = 60
"""A longer question is cut in the table of runs."""


def _first_line(question: str) -> str:
    """Return the beginning of a question."""
    first, *more = question.strip().splitlines() or [""]
    shown = clip(first, MAX_SHOWN_QUESTION)
    return shown if not more or shown.endswith("…") else f"{shown} …"


def shown_status(status: str) -> str:
    """Return a status in the word for people."""
    return "asks" if status == RunStatus.WAITING.value else status


def short_age(seconds: float) -> str:
    """Return a time span in its largest unit: `40s`, `5m`, `3h`, `2d`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def colour_status(column: int, cell: str) -> str:
    """Colour the column STATUS. click removes colours if the output is not a terminal."""
    status = cell.strip()
    known = status in {"asks", *STATUS_NAMES}
    return (
        click.style(cell, fg=STATUS_COLORS.get(status, "red")) if column == STATUS_COLUMN and known else cell
    )
