"""One way or another, by a field of what the step before has found. The field goes no further than here."""

from __future__ import annotations

from retinue.core import Branch, Decision, Progress
from retinue.workflows.step_io import Done, Given, PerformNode
from retinue.workflows.steps import Steps


async def run_branch(
    steps: Steps, branch: Branch, path: str, given: Given, before: Done, perform: PerformNode
) -> Done:
    value = before.response.findings.get(branch.on)
    name = str(value).lower() if isinstance(value, bool) else str(value)
    chosen = branch.cases.get(name, branch.otherwise)
    await steps.event(
        f"{path}:decision",
        "decision",
        {"step": path, "on": branch.on, "decision": name if chosen is not None else "none of the cases"},
    )
    if chosen is not None:
        return await perform(steps, chosen, f"{path}/{chosen.id}", given)
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
