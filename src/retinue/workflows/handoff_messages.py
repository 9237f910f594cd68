"""What an agent is told: its handoff, and the form of its answer. Knows nothing of agents or runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from retinue.core import (
    HANDOFF_SUMMARY_TOKENS,
    Decision,
    Expected,
    FieldType,
    HandoffContext,
    HandoffRequest,
    HandoffResponse,
    Progress,
    Step,
    estimate_tokens,
    objects_in,
)
from retinue.workflows.steps import Given

# MERGED replies: An agent's answer becomes a handoff response: from prose, fences or bare JSON. Knows nothing of agents.

CUT = f" […] (cut to {HANDOFF_SUMMARY_TOKENS} tokens by the server)"
_FIELDS = frozenset(HandoffResponse.model_fields)
_TELLING = frozenset({"decision", "status", "context_summary"})
_DECISION_OF = {
    Progress.COMPLETE.value: Decision.PROCEED.value,
    Progress.BLOCKED.value: Decision.STOP.value,
}
_STATUS_OF = {
    Decision.PROCEED.value: Progress.COMPLETE.value,
    Decision.STOP.value: Progress.BLOCKED.value,
    Decision.CLARIFY.value: Progress.BLOCKED.value,
}


class Unreadable(Exception):
    """The answer is no response; says why, in words for the agent."""


def read_reply(
    text: str, request: HandoffRequest, finding: Mapping[str, FieldType], tokens_used: int
) -> HandoffResponse:
    given = _object_in(text)
    if given is None:
        raise Unreadable("there is no JSON object in it")
    values = _completed(given, request)
    try:
        response = HandoffResponse.model_validate(values | {"tokens_used": tokens_used})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise Unreadable(
            "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems[:5])
        ) from None
    for name in ("task_id", "phase"):
        if getattr(response, name) != getattr(request, name):
            raise Unreadable(f"{name} is {getattr(response, name)!r} and not {getattr(request, name)!r}")
    if response.decision is Decision.PROCEED:
        _hold_to(response.findings, finding, request.expected_output)
    return with_short_summary(response)


def with_short_summary(response: HandoffResponse) -> HandoffResponse:
    """Within the tokens that a summary may have; a cut is said, in it and among the issues."""
    summary = response.context_summary
    tokens = estimate_tokens(summary)
    if tokens <= HANDOFF_SUMMARY_TOKENS:
        return response
    issue = f"context_summary had {tokens} tokens and was cut to {HANDOFF_SUMMARY_TOKENS}"
    return response.model_copy(
        update={
            "context_summary": shortened(summary, HANDOFF_SUMMARY_TOKENS, CUT),
            "issues": (*response.issues, issue),
        }
    )


def shortened(text: str, tokens: int, mark: str = " […]") -> str:
    """The longest beginning that fits with the mark behind it; the text itself if it fits."""
    if estimate_tokens(text) <= tokens:
        return text
    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if estimate_tokens(text[:middle] + mark) <= tokens:
            least = middle
        else:
            most = middle - 1
    return text[:least].rstrip() + mark


def _object_in(text: str) -> dict[str, Any] | None:
    """The last object that looks like a response: answers end with it."""
    found = list(objects_in(text))
    telling = [each for each in found if _TELLING & each.keys()]
    return (telling or found or [None])[-1]


def _completed(given: dict[str, Any], request: HandoffRequest) -> dict[str, Any]:
    """With what we know anyway; what has no place of its own in a response belongs to the findings."""
    values = {name: value for name, value in given.items() if name in _FIELDS}
    rest = {name: value for name, value in given.items() if name not in _FIELDS}
    values.setdefault("task_id", request.task_id)
    values.setdefault("phase", request.phase.value)
    values.setdefault("findings", {})
    if isinstance(values["findings"], dict):
        values["findings"] = rest | values["findings"]
    if "decision" not in values and (decision := _DECISION_OF.get(str(values.get("status")))):
        values["decision"] = decision
    if "status" not in values and (status := _STATUS_OF.get(str(values.get("decision")))):
        values["status"] = status
    if isinstance(values.get("issues"), list):
        issues = cast("list[Any]", values["issues"])
        values["issues"] = [each if isinstance(each, str) else json.dumps(each) for each in issues]
    return values


def _hold_to(findings: Mapping[str, Any], types: Mapping[str, FieldType], expected: Expected) -> None:
    for name, kind in types.items():
        if name not in findings:
            raise Unreadable(f"findings.{name} is missing; it must be {said(kind)}")
        if not _is(findings[name], kind):
            raise Unreadable(f"findings.{name} must be {said(kind)}")
    if expected is Expected.FILES and not isinstance(findings.get("files_changed"), list):
        raise Unreadable("findings.files_changed must be a list of paths, empty if nothing was changed")


def said(kind: FieldType) -> str:
    if isinstance(kind, tuple):
        return "one of " + ", ".join(kind)
    return f"a {kind}" if kind != "integer" else "an integer"


def _is(value: Any, kind: FieldType) -> bool:
    match kind:
        case tuple():
            return isinstance(value, str) and value in kind
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)


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
