"""Runs a step's checks: the project's own commands decide, whatever an agent claims (P3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from retinue.core import (
    BestOf,
    Branch,
    Chain,
    Decision,
    HandoffResponse,
    Parallel,
    Phase,
    Progress,
    Step,
    WorkflowNode,
)
from retinue.workflows.handoff_messages import shorten
from retinue.workflows.steps import CheckResult, Steps

ERROR_TOKENS = 300
"""Maximum size of a failed command's output in the findings."""
COULD_NOT_START = "could_not_start"
"""The field of a check's result that says that its program is missing."""
_COVERAGE = re.compile(r"^(?:TOTAL\b.*?(?=[\d.]+%)|All files\s*\|\s*)(\d+(?:\.\d+)?)", re.MULTILINE)
"""Matches the totals of coverage.py and istanbul."""


async def run_checks(steps: Steps, step: Step, path: str, start: str | None = None) -> HandoffResponse:
    """Run the step's checks, on the work of a branch if there is one. A check that fails means STOP."""
    jobs = [partial(steps.check, f"{path}:check:{name}", name, start) for name in step.checks]
    results = dict(zip(step.checks, await steps.gather(jobs, len(jobs)), strict=True))
    failed = [name for name, result in results.items() if result.passed is False]
    passed = [name for name, result in results.items() if result.passed]
    unknown = [name for name, result in results.items() if result.passed is None]
    decision = Decision.STOP if failed else Decision.PROCEED
    summary = [
        f"{word}: {', '.join(names)}" for word, names in (("failed", failed), ("passed", passed)) if names
    ]
    issues = [_describe_failure(name, results[name]) for name in failed]
    issues += [f"{name} was not checked: the project has no command for it" for name in unknown]
    await steps.event(
        f"{path}:checked",
        "checks",
        {"step": path, "decision": decision, "failed": failed, "passed": passed, "not_checked": unknown},
    )
    return HandoffResponse(
        task_id=path,
        phase=step.phase,
        status=Progress.BLOCKED if failed else Progress.COMPLETE,
        decision=decision,
        findings={"checks": {name: check_finding(name, result) for name, result in results.items()}},
        context_summary="; ".join(
            ["Checks run by the server", *summary] if summary else ["No check was run"]
        ),
        tokens_used=0,
        issues=tuple(issues),
    )


def judged_by_agent(node: WorkflowNode, agent: str) -> WorkflowNode:
    """Return a workflow's node in which an agent judges what no command can check.

    A step that already has an agent only loses its checks.
    """
    match node:
        case Step(checks=()) | BestOf():  # tries are decided by commands alone
            return node
        case Step(agent=None):
            what = ", ".join(node.checks)
            instructions = node.instructions or (
                f"The project has no command for these checks: {what}. Find out how to check it, and do it."
            )
            return replace(node, agent=agent, checks=(), phase=Phase.VALIDATE, instructions=instructions)
        case Step():
            return replace(node, checks=())
        case Chain() | Parallel():
            return replace(node, steps=tuple(judged_by_agent(each, agent) for each in node.steps))
        case Branch():
            cases = {name: cast("Chain", judged_by_agent(case, agent)) for name, case in node.cases.items()}
            otherwise = node.otherwise and cast("Chain", judged_by_agent(node.otherwise, agent))
            return replace(node, cases=cases, otherwise=otherwise)


def check_finding(name: str, result: CheckResult) -> dict[str, Any]:
    """The result of one check as the handoff format names it: each kind of check has its own fields."""
    if result.passed is None:
        return {"passed": None, "note": "the project has no command for it"}
    errors = [] if result.passed else [shorten_to_end(result.output, ERROR_TOKENS)]
    view: dict[str, Any] = {"passed": result.passed, "command": result.command}
    if result.could_not_start:
        view[COULD_NOT_START] = True
    match name:
        case "tests":
            found = _COVERAGE.findall(result.output)
            return view | {"coverage": float(found[-1]) if found else None, "errors": errors}
        case "security":
            return view | {"issues": errors}
        case _:
            return view | {"errors": errors}


def _describe_failure(name: str, result: CheckResult) -> str:
    if not result.could_not_start:
        return f"{name} failed: {last_line(result.output)}"
    return (
        f"{name} could not run: {last_line(result.output)}; install the program, or give the project "
        f"another command: retinue workflow checks --set {name}='COMMAND'"
    )


def could_not_start(response: HandoffResponse) -> bool:
    """Return whether a check of a response did not run because its program is missing."""
    checks: Any = response.findings.get("checks")
    values: Iterable[Any] = cast("dict[str, Any]", checks).values() if isinstance(checks, dict) else ()
    return any(isinstance(each, dict) and COULD_NOT_START in each for each in values)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return shorten(lines[-1], 60) if lines else "it printed nothing"


def shorten_to_end(text: str, tokens: int) -> str:
    """Keep the end of the text, because most programs print their result last."""
    return shorten(text[::-1], tokens, "")[::-1] if text else ""


def describe_failures(response: HandoffResponse) -> list[str]:
    """Describe the failed checks for the agent that must fix them."""
    checks: Any = response.findings.get("checks")
    found: list[str] = []
    for name, check in cast("dict[str, Any]", checks if isinstance(checks, dict) else {}).items():
        if isinstance(check, dict) and (values := cast("dict[str, Any]", check)).get("passed") is False:
            errors: Any = values.get("errors") or values.get("issues") or ["it printed nothing"]
            found.append(f"{name} failed:\n{errors[0] if isinstance(errors, list) else errors}")
    return found or list(response.issues) or [response.context_summary]
