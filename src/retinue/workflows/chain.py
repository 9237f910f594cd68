"""One step after another; each is told what the one before has summed up.

A validation that fails sends the chain back to its last writer with the failures, at most twice; then the
user is asked.
"""

from __future__ import annotations

from retinue.core import (
    Branch,
    Chain,
    Decision,
    HandoffResponse,
    Phase,
    Progress,
    WorkflowNode,
    counted,
    steps_of,
)
from retinue.workflows.acceptance import failures
from retinue.workflows.branch import run_branch
from retinue.workflows.phase import is_stop
from retinue.workflows.step_io import ContextSeen, Done, Given, PerformNode, after
from retinue.workflows.steps import Steps

MOST_MENDINGS = 2


async def run_chain(steps: Steps, chain: Chain, path: str, given: Given, perform: PerformNode) -> Done:
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
            done = await run_branch(steps, node, here, told[-1], done, perform)
        else:
            done = await perform(steps, node, here, told[-1])
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
