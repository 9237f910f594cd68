"""Runs a workflow from its first step to its result: chains, parallel steps, tries and branches.

A chain gives each step the summary of the previous one. If a validation fails, the chain returns to its
last writer with the failures, at most `MAX_REPAIRS` times; then it asks the user. Parallel steps get the
same input, and a quorum rule combines their decisions. A branch chooses a step by a field in the findings
of the previous step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from retinue.core import (
    Assignment,
    BestOf,
    Branch,
    Chain,
    Decision,
    HandoffResponse,
    Parallel,
    Phase,
    Progress,
    QuorumRule,
    Step,
    Workflow,
    WorkflowNode,
    counted,
    steps_of,
)
from retinue.workflows.acceptance import could_not_start, describe_failures
from retinue.workflows.best_of import run_best_of
from retinue.workflows.handoff_messages import shorten_summary
from retinue.workflows.phase import is_stop_answer, run_step
from retinue.workflows.steps import ContextUsage, StepInput, StepResult, Steps, next_input

MAX_REPAIRS = 2


async def run_workflow(steps: Steps, workflow: Workflow, assignment: Assignment) -> dict[str, Any]:
    """Run the workflow and return its result as JSON, as it is stored and shown."""
    step_input = StepInput(assignment=assignment, text=assignment.feature)
    result = await run_node(steps, workflow.body, "", step_input)
    response = result.response
    view: dict[str, Any] = {
        "workflow": workflow.name,
        "decision": response.decision.value,
        "status": response.status.value,
        "last_step": response.task_id,
        "summary": response.context_summary,
        "findings": response.findings,
        "issues": list(response.issues),
        "savings": context_savings(result.contexts),
    }
    if result.branch is not None:
        view["branch"] = result.branch
    if workflow.kind == "team":
        view["output"] = result.text
    if response.decision is Decision.STOP:
        reason = response.findings.get("reason")
        view["reason"] = str(reason) if reason else response.context_summary
        view["suggestion"] = suggest_next_action(response)
    return view


def suggest_next_action(response: HandoffResponse) -> str:
    """What the user can do after a STOP: the recommendations of the phase, if it made any."""
    named = response.findings.get("recommendations")
    recommendations = (
        [each for each in cast("list[Any]", named) if isinstance(each, str)]
        if isinstance(named, list)
        else []
    )
    return "; ".join(recommendations) or "Resolve this, then run the workflow again."


async def run_node(steps: Steps, node: WorkflowNode, path: str, step_input: StepInput) -> StepResult:
    """Run a step, a chain, a parallel or several tries."""
    match node:
        case Step():
            return await run_step(steps, node, path, step_input)
        case Chain():
            return await run_chain(steps, node, path, step_input)
        case Parallel():
            return await run_parallel(steps, node, path, step_input)
        case BestOf():
            return await run_best_of(steps, node, path, step_input)
        case Branch():
            raise AssertionError("a branch must follow the step whose findings it tests, within a chain")


async def run_chain(steps: Steps, chain: Chain, path: str, step_input: StepInput) -> StepResult:
    """Run the steps one after another, and repeat writers whose work fails validation."""
    inputs: list[StepInput] = [step_input]
    """The input of each step so far, to which a repair returns."""
    first_inputs: dict[int, StepInput] = {}
    contexts: list[ContextUsage] = []
    visits = [0] * len(chain.steps)
    repairs = 0
    result = _empty_result(chain, path)
    while len(inputs) <= len(chain.steps):
        position = len(inputs) - 1
        node = chain.steps[position]
        visits[position] += 1
        first_inputs.setdefault(position, inputs[-1])
        node_path = _step_path(path, node.id, visits[position])
        if isinstance(node, Branch):
            result = await run_branch(steps, node, node_path, inputs[-1], result)
        else:
            result = await run_node(steps, node, node_path, inputs[-1])
        contexts += result.contexts
        if result.proceeds:
            inputs.append(next_input(inputs[-1], result))
            continue
        writer = _find_writer_before(chain, position) if _is_validation(node) else None
        if writer is None or could_not_start(result.response):
            break
        repairs += 1
        remarks = await _repair_remarks(steps, node_path, result, repairs)
        if remarks is None:
            break
        # The writer goes on from its failed work, not from the beginning.
        again = replace(
            first_inputs[writer].with_remarks(*remarks), branch=result.branch or inputs[-1].branch
        )
        inputs = [*inputs[:writer], again]
    branch = result.branch or inputs[-1].branch
    return StepResult(result.response, result.text, tuple(contexts), branch)


async def _repair_remarks(steps: Steps, path: str, result: StepResult, repairs: int) -> list[str] | None:
    """What the writer must fix; None if the user stops the workflow."""
    found = [f"Validation failed. Fix this: {each}" for each in describe_failures(result.response)]
    data = {"step": path, "decision": "validation failed", "times": repairs}
    if repairs <= MAX_REPAIRS:
        then = "run the writer again with the failures"
        await steps.event(f"{path}:mend", "decision", data | {"then": then})
        return found
    await steps.event(f"{path}:mend", "decision", data | {"then": "ask the user"})
    question = (
        f"{path}: validation failed {counted(repairs, 'time')}.\n"
        + "\n".join(describe_failures(result.response))
        + "\n"
        "Answer `stop` to end the workflow; the writer tries again with any other answer as advice."
    )
    advice = (await steps.ask(f"{path}:mend:ask", [question]))[0]
    return None if is_stop_answer(advice) else [*found, f"The user says: {advice}"]


def _empty_result(chain: Chain, path: str) -> StepResult:
    """The result before the first step."""
    response = HandoffResponse(
        task_id=path,
        phase=Phase.RESEARCH,
        status=Progress.COMPLETE,
        decision=Decision.PROCEED,
        findings={},
        context_summary=f"{chain.id} has no steps",
        tokens_used=0,
    )
    return StepResult(response, "")


def _is_validation(node: WorkflowNode) -> bool:
    return all(step.phase is Phase.VALIDATE for step in steps_of(node))


def _find_writer_before(chain: Chain, position: int) -> int | None:
    """The position of the last step before this one that writes."""
    for earlier in range(position - 1, -1, -1):
        if any(step.phase is Phase.WRITE for step in steps_of(chain.steps[earlier])):
            return earlier
    return None


def _step_path(path: str, name: str, visit: int) -> str:
    step_path = f"{path}/{name}" if path else name
    return step_path if visit == 1 else f"{step_path}#{visit}"


async def run_parallel(steps: Steps, parallel: Parallel, path: str, step_input: StepInput) -> StepResult:
    """Run the steps side by side, and combine their decisions by the rule."""
    jobs = (partial(run_node, steps, node, f"{path}/{node.id}", step_input) for node in parallel.steps)
    results = await steps.gather(jobs, parallel.at_once)
    response = combine_responses(
        path, [node.id for node in parallel.steps], [each.response for each in results], parallel.rule
    )
    proceeding = sum(each.proceeds for each in results)
    await steps.event(
        f"{path}:decision",
        "decision",
        {
            "step": path,
            "decision": response.decision,
            "rule": parallel.rule,
            "proceed": proceeding,
            "of": len(results),
        },
    )
    text = "\n\n".join(f"{node.id}:\n{each.text}" for node, each in zip(parallel.steps, results, strict=True))
    branches = [each.branch for each in results if each.branch]
    if len(branches) > 1:
        issue = f"the steps changed files side by side, and nothing merges them: {', '.join(branches)}"
        response = response.model_copy(update={"issues": (*response.issues, issue)})
    contexts = tuple(context for each in results for context in each.contexts)
    return StepResult(response, text, contexts, branches[0] if len(branches) == 1 else None)


def combine_responses(
    path: str, names: Sequence[str], responses: Sequence[HandoffResponse], rule: QuorumRule
) -> HandoffResponse:
    """Combine the responses of parallel steps into one, with the findings by step name.

    By name and not by phase, because parallel steps usually share their phase.
    """
    proceeding = sum(each.decision is Decision.PROCEED for each in responses)
    proceeds = reaches_quorum(rule, proceeding, len(responses))
    pairs = list(zip(names, responses, strict=True))
    return shorten_summary(
        HandoffResponse(
            task_id=path,
            phase=responses[0].phase,
            status=Progress.COMPLETE if proceeding == len(responses) else Progress.PARTIAL,
            decision=Decision.PROCEED if proceeds else Decision.STOP,
            findings={"checks": {name: _step_finding(name, each) for name, each in pairs}},
            context_summary="\n".join(f"{name}: {each.context_summary}" for name, each in pairs),
            tokens_used=sum(each.tokens_used for each in responses),
            issues=tuple(issue for each in responses for issue in each.issues),
        )
    )


def reaches_quorum(rule: QuorumRule, proceeding: int, total: int) -> bool:
    match rule:
        case "all":
            return proceeding == total
        case "any":
            return proceeding > 0
        case "majority":
            return 2 * proceeding > total


def _step_finding(name: str, response: HandoffResponse) -> object:
    """The findings of a step. For a step that only ran the check it is named after, that check's result."""
    match response.findings:
        case {"checks": {**checks}} if list(checks) == [name]:
            return checks[name]
        case findings:
            return findings


async def run_branch(
    steps: Steps, branch: Branch, path: str, step_input: StepInput, before: StepResult
) -> StepResult:
    """Run the case that the findings of the previous step select; STOP if there is none."""
    value = before.response.findings.get(branch.on)
    name = str(value).lower() if isinstance(value, bool) else str(value)
    chosen = branch.cases.get(name, branch.otherwise)
    await steps.event(
        f"{path}:decision",
        "decision",
        {"step": path, "on": branch.on, "decision": name if chosen is not None else "none of the cases"},
    )
    if chosen is not None:
        return await run_node(steps, chosen, f"{path}/{chosen.id}", step_input)
    reason = f"{branch.on} is {name!r}, and the branch has no case for it"
    stopped = before.response.model_copy(
        update={
            "task_id": path,
            "status": Progress.BLOCKED,
            "decision": Decision.STOP,
            "findings": {"reason": reason},
            "issues": (reason,),
            "tokens_used": 0,
        }
    )
    return StepResult(stopped, before.text)


def context_savings(contexts: Sequence[ContextUsage]) -> dict[str, Any]:
    """Compare the tokens of each agent call with those of a single context for the whole workflow.

    A single context would keep everything, but would not need the summaries of previous steps.
    """
    rows: list[dict[str, Any]] = []
    together = 0
    for each in contexts:
        together += max(0, each.tokens - each.inherited) if rows else each.tokens
        held = max(together, each.tokens)
        rows.append(
            {
                "step": each.step.rsplit(":", 2)[0],
                "tokens": each.tokens,
                "one_context": held,
                "saved_percent": round(100 * (1 - each.tokens / held)) if held else 0,
            }
        )
    return {
        "phases": rows,
        "largest_context": max((each.tokens for each in contexts), default=0),
        "one_context": together,
        "counted": "by the executors" if contexts and all(each.metered for each in contexts) else "estimated",
    }
