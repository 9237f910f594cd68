"""A workflow from its first step to its result. The one place that knows every pattern."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from retinue.core import (
    Assignment,
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
from retinue.workflows.acceptance import failures
from retinue.workflows.handoff_messages import with_short_summary
from retinue.workflows.phase import is_stop, run_step
from retinue.workflows.steps import ContextSeen, Done, Given, Steps, after

# MERGED savings: What isolation saved: tokens that each phase saw, against one context that would have held them all.


def savings(seen: Sequence[ContextSeen]) -> dict[str, Any]:
    """A row for each call of an agent.

    One context would keep everything from before, and would not have to be handed a summary of it.
    """
    rows: list[dict[str, Any]] = []
    together = 0
    for each in seen:
        together += max(0, each.tokens - each.handed) if rows else each.tokens
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
        "largest_context": max((each.tokens for each in seen), default=0),
        "one_context": together,
        "counted": "by the executors" if seen and all(each.metered for each in seen) else "estimated",
    }


# MERGED branch: One way or another, by a field of what the step before has found. The field goes no further than here.


async def run_branch(steps: Steps, branch: Branch, path: str, given: Given, before: Done) -> Done:
    value = before.response.findings.get(branch.on)
    name = str(value).lower() if isinstance(value, bool) else str(value)
    chosen = branch.cases.get(name, branch.otherwise)
    await steps.event(
        f"{path}:decision",
        "decision",
        {"step": path, "on": branch.on, "decision": name if chosen is not None else "none of the cases"},
    )
    if chosen is not None:
        return await perform_node(steps, chosen, f"{path}/{chosen.id}", given)
    reason = f"{branch.on} is {name!r}, and there is no case for it"
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
    return Done(stopped, before.text)


# MERGED parallel: Several steps side by side, each told the same, and their decisions made one.


async def run_parallel(steps: Steps, parallel: Parallel, path: str, given: Given) -> Done:
    jobs = (partial(perform_node, steps, node, f"{path}/{node.id}", given) for node in parallel.steps)
    done = await steps.gather(jobs, parallel.at_once)
    response = aggregate(
        path, [node.id for node in parallel.steps], [each.response for each in done], parallel.rule
    )
    proceeding = sum(each.proceeds for each in done)
    await steps.event(
        f"{path}:decision",
        "decision",
        {
            "step": path,
            "decision": response.decision,
            "rule": parallel.rule,
            "proceed": proceeding,
            "of": len(done),
        },
    )
    text = "\n\n".join(f"{node.id}:\n{each.text}" for node, each in zip(parallel.steps, done, strict=True))
    return Done(response, text, tuple(seen for each in done for seen in each.seen))


def aggregate(
    path: str, names: Sequence[str], responses: Sequence[HandoffResponse], rule: QuorumRule
) -> HandoffResponse:
    """One response for all: issues one after another, findings by the name of their step.

    By name and not by phase, because steps side by side mostly share their phase.
    """
    proceeding = sum(each.decision is Decision.PROCEED for each in responses)
    proceeds = enough(rule, proceeding, len(responses))
    pairs = list(zip(names, responses, strict=True))
    return with_short_summary(
        HandoffResponse(
            task_id=path,
            phase=responses[0].phase,
            status=Progress.COMPLETE if proceeding == len(responses) else Progress.PARTIAL,
            decision=Decision.PROCEED if proceeds else Decision.STOP,
            findings={"checks": {name: _finding(name, each) for name, each in pairs}},
            context_summary="\n".join(f"{name}: {each.context_summary}" for name, each in pairs),
            tokens_used=sum(each.tokens_used for each in responses),
            issues=tuple(issue for each in responses for issue in each.issues),
        )
    )


def enough(rule: QuorumRule, proceeding: int, all_of_them: int) -> bool:
    match rule:
        case "all":
            return proceeding == all_of_them
        case "any":
            return proceeding > 0
        case "majority":
            return 2 * proceeding > all_of_them


def _finding(name: str, response: HandoffResponse) -> object:
    """A step that only ran the check it is named after gives that check's finding itself."""
    match response.findings:
        case {"checks": {**checks}} if list(checks) == [name]:
            return checks[name]
        case findings:
            return findings


# MERGED chain: One step after another; each is told what the one before has summed up.
#
# A validation that fails sends the chain back to its last writer with the failures, at most twice; then the
# user is asked.

MOST_MENDINGS = 2


async def run_chain(steps: Steps, chain: Chain, path: str, given: Given) -> Done:
    told: list[Given] = [given]
    """What the step at each place was told, for when it must be told again."""
    first_told: dict[int, Given] = {}
    seen: list[ContextSeen] = []
    visits = [0] * len(chain.steps)
    mendings = 0
    done = _nothing(chain, path)
    while len(told) <= len(chain.steps):
        place = len(told) - 1
        node = chain.steps[place]
        visits[place] += 1
        first_told.setdefault(place, told[-1])
        here = _path(path, node.id, visits[place])
        if isinstance(node, Branch):
            done = await run_branch(steps, node, here, told[-1], done)
        else:
            done = await perform_node(steps, node, here, told[-1])
        seen += done.seen
        if done.proceeds:
            told.append(after(told[-1], done))
            continue
        writer = _writer_before(chain, place) if _validates(node) else None
        if writer is None:
            break
        mendings += 1
        remarks = await _what_to_mend(steps, here, done, mendings)
        if remarks is None:
            break
        told = [*told[:writer], first_told[writer].remarked(*remarks)]
    return Done(done.response, done.text, tuple(seen))


async def _what_to_mend(steps: Steps, path: str, done: Done, mendings: int) -> list[str] | None:
    """What the writer is told; None when the user wants no more of it."""
    found = [f"Validation failed. Mend this: {each}" for each in failures(done.response)]
    data = {"step": path, "decision": "validation failed", "times": mendings}
    if mendings <= MOST_MENDINGS:
        await steps.event(f"{path}:mend", "decision", data | {"then": "the writer again, with the failures"})
        return found
    await steps.event(f"{path}:mend", "decision", data | {"then": "ask the user"})
    question = (
        f"{path}: validation failed {counted(mendings, 'time')}.\n"
        + "\n".join(failures(done.response))
        + "\n"
        "Answer `stop` to end the workflow; anything else is advice, with which the writer tries again."
    )
    advice = (await steps.ask(f"{path}:mend:ask", [question]))[0]
    return None if is_stop(advice) else [*found, f"The user says: {advice}"]


def _nothing(chain: Chain, path: str) -> Done:
    """What was found before the first step."""
    response = HandoffResponse(
        task_id=path,
        phase=Phase.RESEARCH,
        status=Progress.COMPLETE,
        decision=Decision.PROCEED,
        findings={},
        context_summary=f"{chain.id} has no steps",
        tokens_used=0,
    )
    return Done(response, "")


def _validates(node: WorkflowNode) -> bool:
    return all(step.phase is Phase.VALIDATE for step in steps_of(node))


def _writer_before(chain: Chain, place: int) -> int | None:
    """The last place before this one where something was written."""
    for earlier in range(place - 1, -1, -1):
        if any(step.phase is Phase.WRITE for step in steps_of(chain.steps[earlier])):
            return earlier
    return None


def _path(path: str, name: str, visit: int) -> str:
    here = f"{path}/{name}" if path else name
    return here if visit == 1 else f"{here}#{visit}"


async def perform_node(steps: Steps, node: WorkflowNode, path: str, given: Given) -> Done:
    match node:
        case Step():
            return await run_step(steps, node, path, given)
        case Chain():
            return await run_chain(steps, node, path, given)
        case Parallel():
            return await run_parallel(steps, node, path, given)
        case Branch():
            raise AssertionError("a branch stands in a chain, behind the step it looks at")


async def run_workflow(steps: Steps, workflow: Workflow, assignment: Assignment) -> dict[str, Any]:
    """The result as it is kept and shown."""
    given = Given(assignment=assignment, text=assignment.feature)
    done = await perform_node(steps, workflow.body, "", given)
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
