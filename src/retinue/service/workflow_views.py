"""Workflows as hosts and people see them: the result within its tokens, the steps as a timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from retinue.core import Message, Run, RunStatus, estimate_tokens, steps_of
from retinue.definitions import FoundWorkflow
from retinue.service.run_views import elapsed_ms, fitted
from retinue.store import StepCheckpoint

MOST_ROWS = 12
MOST_ISSUES = 20
SHOWN = ("decision", "reason", "suggestion", "summary", "output", "issues", "findings", "savings")
BAR = 32


def outcome(
    run: Run, result: Mapping[str, Any] | None, asked: Sequence[Message], tokens: int
) -> dict[str, Any]:
    """What a tool that started a workflow answers: the result, the questions, or where it stands."""
    view: dict[str, Any] = {"run_id": run.id, "workflow": run.spec.agent, "status": run.status.value}
    view["duration_ms"] = elapsed_ms(run)
    if run.status.ended:
        if run.error is not None:
            view["error"] = run.error
        view |= {key: result[key] for key in SHOWN if result is not None and key in result}
        return _small(view, tokens)
    if asked:
        view["questions"] = [message.question for message in asked]
        view["next"] = "answer_question(run_id, answers) with an answer for each goes on, now or days later"
    elif run.status is RunStatus.QUEUED:
        view["next"] = (
            "nobody performs it: a server of its folder goes on, or `retinue workflow resume` there"
        )
    else:
        view["next"] = "wait_for_runs([run_id]) returns when the workflow ends or asks"
    return fitted(view, tokens, _rest(run))


def _small(view: dict[str, Any], tokens: int) -> dict[str, Any]:
    """Whole rows go before words do (P4)."""
    rest = f"get_subagent_logs(runId={str(view['run_id'])!r}) has all of it"
    savings: Any = view.get("savings")
    if savings and len(savings["phases"]) > MOST_ROWS:
        largest = sorted(savings["phases"], key=lambda row: -row["tokens"])[:MOST_ROWS]
        shown = [row for row in savings["phases"] if row in largest]
        view["savings"] = savings | {"phases": shown, "more_phases": len(savings["phases"]) - len(shown)}
    issues: list[str] = view.get("issues", [])
    if len(issues) > MOST_ISSUES:
        more = f"and {len(issues) - MOST_ISSUES} more; {rest}"
        view["issues"] = [*issues[:MOST_ISSUES], more]
    if estimate_tokens(json.dumps(view.get("findings"), ensure_ascii=False)) > tokens // 2:
        view["findings"] = {"cut": f"too large; {rest}"}
    return fitted(view, tokens, rest)


def _rest(run: Run) -> str:
    return f"get_subagent_logs(runId={str(run.id)!r}) has all of it"


def steps(checkpoints: Sequence[StepCheckpoint], children: Mapping[str, Run]) -> list[dict[str, Any]]:
    """Each call of an agent or a check, in the order they began."""
    rows: list[dict[str, Any]] = []
    for point in checkpoints:
        child = None if point.child is None else children.get(point.child)
        if child is None:
            continue
        kept = cast("dict[str, Any]", point.output or {})
        rows.append(
            {
                "step": point.step,
                "by": child.spec.agent,
                "run_id": child.id,
                "status": child.status.value,
                "began_at": point.began_at,
                "elapsed_ms": elapsed_ms(child),
                "tokens": kept.get("tokens"),
            }
        )
    return rows


def timeline(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The steps as bars over the whole time."""
    if not rows:
        return []
    first = min(row["began_at"] for row in rows)
    last = max(row["began_at"] + row["elapsed_ms"] / 1000 for row in rows)
    scale = BAR / max(last - first, 0.001)
    drawn: list[tuple[str, ...]] = [("STEP", "BY", "STATUS", "SECONDS", "TOKENS", "TIME")]
    for row in rows:
        start = min(BAR - 1, round((row["began_at"] - first) * scale))
        length = max(1, min(BAR - start, round(row["elapsed_ms"] / 1000 * scale)))
        bar = " " * start + "█" * length
        seconds = f"{row['elapsed_ms'] / 1000:.1f}"
        tokens = "-" if row["tokens"] is None else str(row["tokens"])
        drawn.append((row["step"], row["by"], row["status"], seconds, tokens, bar))
    return drawn


def savings_table(savings: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = [("PHASE", "SAW", "ONE CONTEXT", "SAVED")]
    rows += [
        (row["step"], f"{row['tokens']:,}", f"{row['one_context']:,}", f"{row['saved_percent']} %")
        for row in savings["phases"]
    ]
    return [*rows, ("largest", f"{savings['largest_context']:,}", f"{savings['one_context']:,}", "")]


def listed(found: FoundWorkflow) -> dict[str, Any]:
    view: dict[str, Any] = {"name": found.name, "from": found.source}
    if found.workflow is not None:
        view["description"] = found.workflow.description
        view["agents"] = [step.agent for step in steps_of(found.workflow.body) if step.agent is not None]
    if found.problem is not None:
        view["unavailable"] = f"{found.source}:{found.problem.line}: {found.problem}"
    elif not found.trusted:
        view["unavailable"] = "the project is not trusted: `retinue agents trust DIR`"
    return view


def problems(found: FoundWorkflow) -> list[dict[str, Any]]:
    return [
        {"file": found.source, "line": wrong.line, "message": wrong.message}
        | ({"hint": wrong.hint} if wrong.hint else {})
        for wrong in found.problems
    ]
