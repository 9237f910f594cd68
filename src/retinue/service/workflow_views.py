"""JSON views of workflows, cut to a token budget, and tables of their steps and savings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from retinue.core import Message, Run, RunStatus, clip, estimate_tokens, steps_of
from retinue.definitions import FoundWorkflow, did_you_mean
from retinue.service.agents import AgentService
from retinue.service.run_views import (
    RESULT_STREAM,
    UNCUT,
    elapsed_ms,
    facts,
    fit_to_tokens,
    how_to_wait,
    state_reason_once,
)
from retinue.store import StepCheckpoint

MAX_ROWS = 12
MAX_ISSUES = 20
RESULT_KEYS = (
    *("decision", "reason", "suggestion", "summary", "output", "patch", "issues", "findings", "savings"),
)
MAX_DESCRIPTION = 200
BAR_WIDTH = 32


def workflow_outcome(
    run: Run,
    result: Mapping[str, Any] | None,
    questions: Sequence[Message],
    tokens: int,
    children: Sequence[Run] = (),
    executors: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The answer of a tool that starts a workflow: the result, the open questions, or the state.

    `children` are the runs of its steps. `executors` tells which executor each agent ran on, and why.
    """
    view: dict[str, Any] = {"run_id": run.id, "workflow": run.spec.agent, "status": run.status.value}
    view["duration_ms"] = elapsed_ms(run)
    if executors:
        view["executors"] = dict(executors)
    if run.status.ended:
        if run.error is not None:
            view["error"] = run.error
        view |= {key: result[key] for key in RESULT_KEYS if result is not None and key in result}
        view |= facts(run) | _patches(children)
        if notes := [*view.get("notes", ()), *_step_notes(children)]:
            view["notes"] = notes
        state_reason_once(view)
        return _shorten_result(view, tokens)
    if questions:
        view["questions"] = [message.question for message in questions]
        view["next"] = (
            f"answer_question(run_id={str(run.id)!r}, answers=[...]) with an answer for each continues it, "
            "now or days later"
        )
    elif run.status is RunStatus.QUEUED:
        view["next"] = (
            "no process performs it: start a server in its folder, or run `retinue workflow resume` there"
        )
    else:
        view["next"] = how_to_wait(run)
    return fit_to_tokens(view, tokens, _log_hint(run.id))


def executors_of(agents: AgentService, children: Sequence[Run]) -> dict[str, str]:
    """Which executor each agent of a workflow has run on so far, and why."""
    found: dict[str, str] = {}
    for child in reversed(children):
        chosen = agents.executor_of(child.spec.agent)
        if chosen.get("executor") == child.spec.executor:
            found[child.spec.agent] = f"{child.spec.executor} ({chosen['because']})"
    return found


def _step_notes(children: Sequence[Run]) -> list[str]:
    """The notes of a workflow's runs, such as that another agent did the work."""
    found: dict[str, None] = {}
    for child in reversed(children):
        notes: Any = facts(child).get("notes", ())
        found |= dict.fromkeys(f"{child.spec.agent}: {note}" for note in notes)
    return list(found)[:MAX_ROWS]


def _patches(children: Sequence[Run]) -> dict[str, Any]:
    """The branches that the runs of a workflow left, and how they merge, if there are any.

    The run that ended last was tried against all others.
    """
    rows: list[dict[str, Any]] = []
    merge: Any = None
    for child in sorted(children, key=lambda each: each.timing.ended_at or 0.0):
        result: Mapping[str, Any] = child.result if isinstance(child.result, Mapping) else {}
        branch = result.get("branch")
        if branch and branch not in (row["branch"] for row in rows):  # an agent that only reads adds none
            rows.append({"agent": child.spec.agent, "run": child.id, "branch": branch})
            merge = result.get("merge", merge)
    view: dict[str, Any] = {"branches": rows[-MAX_ROWS:]}
    return {"patches": view | ({"merge": merge} if merge else {})} if rows else {}


def _shorten_result(view: dict[str, Any], tokens: int) -> dict[str, Any]:
    """Drop rows and findings before cutting texts (P4)."""
    if tokens >= UNCUT:
        return view
    rest = _log_hint(view["run_id"])
    if "savings" in view:  # people see the table of all phases with `retinue workflow show`
        view["savings"] = {key: value for key, value in view["savings"].items() if key != "phases"}
    patch: Any = view.get("patch")
    if patch and estimate_tokens(patch.get("diff", "")) > tokens // 3:
        shown = clip(patch["diff"], tokens)
        view["patch"] = {"diff_cut": "`retinue patch RUN` prints all of it"} | patch | {"diff": shown}
    issues: list[str] = view.get("issues", [])
    if len(issues) > MAX_ISSUES:
        more = f"and {len(issues) - MAX_ISSUES} more; {rest}"
        view["issues"] = [*issues[:MAX_ISSUES], more]
    if estimate_tokens(json.dumps(view.get("findings"), ensure_ascii=False)) > tokens // 2:
        view["findings"] = {"cut": f"too large; {rest}"}
    return fit_to_tokens(view, tokens, rest)


def _log_hint(run_id: str) -> str:
    return f"get_subagent_logs(runId={str(run_id)!r}, stream={RESULT_STREAM!r}) returns all of it in pages"


def step_rows(checkpoints: Sequence[StepCheckpoint], children: Mapping[str, Run]) -> list[dict[str, Any]]:
    """A row for each run of an agent or a check, in the order they began."""
    rows: list[dict[str, Any]] = []
    for point in checkpoints:
        child = None if point.child is None else children.get(point.child)
        if child is None:
            continue
        output = cast("dict[str, Any]", point.output or {})
        rows.append(
            {
                "step": point.step,
                "by": child.spec.agent,
                "run_id": child.id,
                "status": child.status.value,
                "began_at": point.began_at,
                "duration_ms": elapsed_ms(child),
                "tokens": output.get("tokens"),
            }
        )
    return rows


def timeline(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A table of the steps with a bar for each, over the time of the whole workflow."""
    if not rows:
        return []
    first = min(row["began_at"] for row in rows)
    last = max(row["began_at"] + row["duration_ms"] / 1000 for row in rows)
    scale = BAR_WIDTH / max(last - first, 0.001)
    drawn: list[tuple[str, ...]] = [("STEP", "BY", "STATUS", "SECONDS", "TOKENS", "TIME")]
    for row in rows:
        start = min(BAR_WIDTH - 1, round((row["began_at"] - first) * scale))
        length = max(1, min(BAR_WIDTH - start, round(row["duration_ms"] / 1000 * scale)))
        bar = " " * start + "█" * length
        seconds = f"{row['duration_ms'] / 1000:.1f}"
        tokens = "-" if row["tokens"] is None else str(row["tokens"])
        drawn.append((row["step"], row["by"], row["status"], seconds, tokens, bar))
    return drawn


def savings_table(savings: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A table that compares the tokens of each phase with those of a single context."""
    rows = [("PHASE", "SAW", "ONE CONTEXT", "SAVED")]
    rows += [
        (row["step"], f"{row['tokens']:,}", f"{row['one_context']:,}", f"{row['saved_percent']} %")
        for row in savings["phases"]
    ]
    return [*rows, ("largest", f"{savings['largest_context']:,}", f"{savings['one_context']:,}", "")]


def workflow_row(found: FoundWorkflow) -> dict[str, Any]:
    view: dict[str, Any] = {"name": found.name, "from": found.source}
    if found.workflow is not None:
        view["description"] = found.workflow.description
        view["agents"] = [step.agent for step in steps_of(found.workflow.body) if step.agent is not None]
    if found.problem is not None:
        view["unavailable"] = f"{found.source}:{found.problem.line}: {found.problem}"
    elif not found.trusted:
        view["unavailable"] = "the project is not trusted: `retinue agents trust DIR`"
    return view


def defined_view(
    workflows: Sequence[dict[str, Any]], teams: Sequence[dict[str, Any]], tokens: int
) -> dict[str, Any]:
    """The workflows and teams for a host, as many as fit (P4)."""
    view: dict[str, Any] = {"workflows": list(workflows), "teams": list(teams)}
    for row in (*workflows, *teams):
        row["description"] = clip(row.get("description", ""), MAX_DESCRIPTION)
    omitted = 0
    while estimate_tokens(json.dumps(view, ensure_ascii=False)) > tokens and any(view.values()):
        max(view["workflows"], view["teams"], key=len).pop()
        omitted += 1
    if omitted:
        view["cut"] = f"{omitted} omitted; `retinue workflow list` and `retinue teams` list all"
    return view


def unknown_agents(found: FoundWorkflow, known: Mapping[str, object]) -> list[dict[str, Any]]:
    """A problem for each agent that a workflow names and that does not exist."""
    workflow = found.workflow
    if workflow is None:
        return []
    rows: list[dict[str, Any]] = []
    for name in sorted(workflow.agents() - known.keys()):
        named = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        lines = [number for number, line in enumerate(workflow.text.splitlines(), 1) if named.search(line)]
        hint = did_you_mean(name, known) or "`retinue agents` lists the agents"
        message = f"there is no agent named {name!r}"
        rows.append(
            {"file": found.source, "line": lines[0] if lines else 1, "message": message, "hint": hint}
        )
    return rows


def problem_rows(found: FoundWorkflow) -> list[dict[str, Any]]:
    return [
        {"file": found.source, "line": problem.line, "message": problem.message}
        | ({"hint": problem.hint} if problem.hint else {})
        for problem in found.problems
    ]
