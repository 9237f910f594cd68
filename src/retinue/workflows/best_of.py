"""Gives one task to several agents, or several times to one, and keeps the best work.

Every try works in its own worktree. Commands decide whose work counts, whatever an agent says (P3). If
several pass, a judge chooses, who sees the changes as A, B, C and not who made them; without a judge, or if
it gives no usable answer, the smallest change wins. The result always says who decided. Nothing is merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from retinue.core import BestOf, Decision, HandoffResponse, Phase, Progress, Step, clip, counted
from retinue.workflows.handoff_messages import shorten, shorten_summary
from retinue.workflows.phase import run_step
from retinue.workflows.steps import StepInput, StepResult, Steps

JUDGED_CHARACTERS = 40_000
"""Characters of all changes together that a judge gets."""
REASON_TOKENS = 100
CANDIDATES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
JUDGE_INSTRUCTIONS = (
    "Several people did the same task. Their changes are below, as candidates, and all of them pass the "
    "project's commands. Choose the one that solves the task best: correct, complete, simple, and nothing "
    "besides the task. Change nothing yourself. Answer with `best` in your findings, and why in your summary."
)


@dataclass(frozen=True, slots=True)
class _Try:
    """One try and what came of it."""

    step: Step
    result: StepResult

    @property
    def passed(self) -> bool:
        return self.result.proceeds and bool(self.result.diff)

    @property
    def changed_lines(self) -> int:
        lines = self.result.diff.splitlines()
        return sum(line[:1] in ("+", "-") and line[:3] not in ("+++", "---") for line in lines)

    def row(self) -> dict[str, Any]:
        """The try as one row of the result."""
        row: dict[str, Any] = {"try": self.step.id, "agent": self.step.agent, "passed": self.passed}
        if self.result.branch:
            row |= {"branch": self.result.branch, "changed_lines": self.changed_lines}
        if not self.passed:
            reason = self.result.response.findings.get("reason") or self.result.response.context_summary
            row["reason"] = shorten(
                "it changed nothing" if self.result.proceeds else str(reason), REASON_TOKENS
            )
        return row


async def run_best_of(steps: Steps, node: BestOf, path: str, step_input: StepInput) -> StepResult:
    """Run all tries side by side and return the best of those that pass. STOP if none does."""
    jobs = (partial(run_step, steps, step, f"{path}/{step.id}", step_input) for step in node.tries)
    results = await steps.gather(jobs, node.at_once)
    tries = [_Try(step, result) for step, result in zip(node.tries, results, strict=True)]
    passed = [each for each in tries if each.passed]
    judged: StepResult | None = None
    best, chosen_by = None, "nobody"
    if passed:
        best, chosen_by = min(passed, key=lambda each: each.changed_lines), "the smallest change"
    if len(passed) == 1:
        chosen_by = "the commands: no other try passed"
    elif best is not None and node.judge is not None:
        judged, chosen = await _judge(steps, node.judge, path, step_input, passed)
        if chosen is not None:
            best, chosen_by = chosen, f"the judge {node.judge}"
        else:
            chosen_by += f", because the judge {node.judge} gave no usable answer"
    await steps.event(
        f"{path}:decision",
        "decision",
        {
            "step": path,
            "decision": "none passed" if best is None else best.step.id,
            "by": chosen_by,
            "passed": len(passed),
            "of": len(tries),
        },
    )
    return _best_result(path, tries, best, chosen_by, judged)


async def _judge(
    steps: Steps, judge: str, path: str, step_input: StepInput, passed: Sequence[_Try]
) -> tuple[StepResult, _Try | None]:
    """Let the judge choose. The order of the candidates says nothing about who made them."""
    by_content = sorted(passed, key=lambda each: each.result.diff)
    candidates = dict(zip(CANDIDATES, by_content, strict=False))
    room = JUDGED_CHARACTERS // len(candidates)
    shown = [f"Candidate {name}:\n{clip(each.result.diff, room)}" for name, each in candidates.items()]
    step = Step(
        id="judge",
        agent=judge,
        phase=Phase.RESEARCH,
        instructions=JUDGE_INSTRUCTIONS,
        finding={"best": tuple(candidates)},
        idempotent=True,
    )
    result = await run_step(
        steps, step, f"{path}/judge", replace(step_input, summary=None).with_remarks(*shown)
    )
    name = str(result.response.findings.get("best")) if result.proceeds else ""
    return result, candidates.get(name)


def _best_result(
    path: str, tries: Sequence[_Try], best: _Try | None, chosen_by: str, judged: StepResult | None
) -> StepResult:
    """The result of the step: that of the best try, with a row for each."""
    rows = [each.row() for each in tries]
    contexts = tuple(context for each in tries for context in each.result.contexts)
    contexts += () if judged is None else judged.contexts
    tokens = sum(each.result.response.tokens_used for each in tries)
    if best is None:
        reason = f"none of {counted(len(tries), 'try', 'tries')} passed"
        response = HandoffResponse(
            task_id=path,
            phase=Phase.WRITE,
            status=Progress.BLOCKED,
            decision=Decision.STOP,
            findings={"reason": reason, "tries": rows},
            context_summary=f"{path}: {reason}",
            tokens_used=tokens,
            issues=tuple(f"{row['try']}: {row['reason']}" for row in rows),
        )
        return StepResult(shorten_summary(response), "", contexts)
    result = best.result
    findings = {
        **result.response.findings,
        "best": best.step.id,
        "chosen_by": chosen_by,
        "branch": result.branch,
        "apply": f"git merge {result.branch}",
        "tries": rows,
    }
    if judged is not None:
        findings["judge_says"] = shorten(judged.response.context_summary, REASON_TOKENS)
    response = result.response.model_copy(
        update={"task_id": path, "findings": findings, "tokens_used": tokens}
    )
    return StepResult(response, result.text, contexts, result.branch, result.diff)
