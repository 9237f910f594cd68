"""Several steps side by side, each told the same, and their decisions made one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from retinue.core import Decision, HandoffResponse, Parallel, Progress, QuorumRule
from retinue.workflows.replies import with_short_summary
from retinue.workflows.step_io import Done, Given, PerformNode
from retinue.workflows.steps import Steps


async def run_parallel(
    steps: Steps, parallel: Parallel, path: str, given: Given, perform: PerformNode
) -> Done:
    jobs = (partial(perform, steps, node, f"{path}/{node.id}", given) for node in parallel.steps)
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
