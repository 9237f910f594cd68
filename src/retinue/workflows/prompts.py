"""What an agent is told: its handoff, and the form of its answer. Knows nothing of agents or runs."""

from __future__ import annotations

import json

from retinue.core import HANDOFF_SUMMARY_TOKENS, Expected, HandoffContext, HandoffRequest, Step
from retinue.workflows.replies import said, shortened
from retinue.workflows.step_io import Given

LAST_REPLY_TOKENS = 1_500
SIMPLE_SUMMARY_TOKENS = 150
SIMPLE_FILES = 5
DEFAULT_INSTRUCTIONS = {
    Expected.FINDINGS: "Find what exists, what conflicts and what can be reused for the feature.",
    Expected.FILES: "Implement the feature as the project does such things, with tests.",
    Expected.VALIDATION: "Judge whether the change does what was asked.",
}
_HOLDS = {
    Expected.FINDINGS: "what was found, by name",
    Expected.FILES: '"files_changed" and "tests_written", lists of paths',
    Expected.VALIDATION: "what was looked at and how it was",
}


def request_for(step: Step, task_id: str, given: Given) -> HandoffRequest:
    assignment = given.assignment
    return HandoffRequest(
        task_id=task_id,
        phase=step.phase,
        context=HandoffContext(
            feature=assignment.feature,
            spec_path=assignment.spec_path,
            relevant_files=tuple(dict.fromkeys((*assignment.relevant_files, *given.files))),
            constraints=(*assignment.constraints, *step.constraints, *given.remarks),
            previous_findings=given.summary,
        ),
        instructions=step.instructions or DEFAULT_INSTRUCTIONS[step.phase.expected],
        expected_output=step.phase.expected,
    )


def simplified(request: HandoffRequest) -> HandoffRequest:
    """The same work, made smaller, for an agent that did not answer in time."""
    context = request.context
    previous = context.previous_findings
    return request.model_copy(
        update={
            "context": context.model_copy(
                update={
                    "relevant_files": context.relevant_files[:SIMPLE_FILES],
                    "previous_findings": None
                    if previous is None
                    else shortened(previous, SIMPLE_SUMMARY_TOKENS),
                }
            ),
            "instructions": "An earlier attempt ran out of time. Do only the essential part, and name under "
            f"issues what is left. {request.instructions}",
        }
    )


def prompt_for(request: HandoffRequest, step: Step) -> str:
    holds = [_HOLDS[request.expected_output]]
    holds += [f'"{name}": {said(kind)}' for name, kind in step.finding.items()]
    form: dict[str, object] = {
        "task_id": request.task_id,
        "phase": request.phase.value,
        "status": "complete | partial | blocked",
        "decision": "PROCEED | STOP | CLARIFY",
        "findings": {},
        "context_summary": f"all that the next phase is told, at most {HANDOFF_SUMMARY_TOKENS} tokens",
        "issues": [],
    }
    return (
        "Your part of a workflow, as a handoff:\n"
        f"```json\n{request.model_dump_json(indent=1)}\n```\n"
        "End your answer with one JSON object in this form:\n"
        f"{json.dumps(form)}\n"
        f"findings: {'; '.join(holds)}. "
        'decision: PROCEED when the work is done, STOP on a critical conflict or error ("reason" in '
        'findings), CLARIFY when the task is ambiguous ("questions" in findings).'
    )


def prompt_again(prompt: str, reply: str, reason: str) -> str:
    """The same, after an answer that was of no use: the agent sees its own words again and nobody else's."""
    return (
        f"{prompt}\n\nYour last answer could not be used: {reason}.\nIt was:\n"
        f"{shortened(reply, LAST_REPLY_TOKENS)}\n\nAnswer again, in the form above."
    )


def plain_task(step: Step, given: Given) -> str:
    """For a step without a handoff: what came before is the task."""
    parts = [step.instructions, given.text, *given.remarks]
    return "\n\n".join(part for part in parts if part)
