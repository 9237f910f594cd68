"""A workflow from its first step to its result. The one place that knows every pattern."""

from __future__ import annotations

from typing import Any, cast

from retinue.core import (
    Assignment,
    Branch,
    Chain,
    Decision,
    HandoffResponse,
    Parallel,
    Step,
    Workflow,
    WorkflowNode,
)
from retinue.workflows.chain import run_chain
from retinue.workflows.parallel import run_parallel
from retinue.workflows.phase import run_step
from retinue.workflows.savings import savings
from retinue.workflows.step_io import Done, Given
from retinue.workflows.steps import Steps


async def perform(steps: Steps, node: WorkflowNode, path: str, given: Given) -> Done:
    match node:
        case Step():
            return await run_step(steps, node, path, given)
        case Chain():
            return await run_chain(steps, node, path, given, perform)
        case Parallel():
            return await run_parallel(steps, node, path, given, perform)
        case Branch():
            raise AssertionError("a branch stands in a chain, behind the step it looks at")


async def run_workflow(steps: Steps, workflow: Workflow, assignment: Assignment) -> dict[str, Any]:
    """The result as it is kept and shown."""
    given = Given(assignment=assignment, text=assignment.feature)
    done = await perform(steps, workflow.body, "", given)
    response = done.response
    result: dict[str, Any] = {
        "workflow": workflow.name,
        "decision": response.decision.value,
        "status": response.status.value,
        "last_step": response.task_id,
        "summary": response.context_summary,
        "findings": response.findings,
        "issues": list(response.issues),
        "savings": savings(done.seen),
    }
    if workflow.kind == "team":
        result["output"] = done.text
    if response.decision is Decision.STOP:
        reason = response.findings.get("reason")
        result["reason"] = str(reason) if reason else response.context_summary
        result["suggestion"] = suggestion(response)
    return result


def suggestion(response: HandoffResponse) -> str:
    """How the user might get on: what the phase itself recommends, if it does."""
    named = response.findings.get("recommendations")
    said = (
        [each for each in cast("list[Any]", named) if isinstance(each, str)]
        if isinstance(named, list)
        else []
    )
    return "; ".join(said) or "Settle this, then run the workflow again."
