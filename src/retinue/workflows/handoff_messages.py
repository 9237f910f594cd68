"""Builds the prompt of a phase from a handoff request, and parses the agent's answer into a response.

The answer may be bare JSON, or JSON in prose or in a code fence. Knows nothing of agents or runs.
"""

from __future__ import annotations

import json
import re
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
from retinue.workflows.steps import StepInput

CUT_MARK = f" […] (cut to {HANDOFF_SUMMARY_TOKENS} tokens by the server)"
_FIELDS = frozenset(HandoffResponse.model_fields)
_RESPONSE_KEYS = frozenset({"decision", "status", "context_summary"})
_KEYS = "|".join(sorted(_RESPONSE_KEYS))
_RESPONSE_KEY = re.compile(rf"[\"'](?:{_KEYS})[\"']\s*:|[{{,]\s*(?:{_KEYS})\s*:")
_BEGINNING_OF_OBJECT = re.compile(r"\{(?!\w+\})")
_DECISION_OF = {
    Progress.COMPLETE.value: Decision.PROCEED.value,
    Progress.BLOCKED.value: Decision.STOP.value,
}
_STATUS_OF = {
    Decision.PROCEED.value: Progress.COMPLETE.value,
    Decision.STOP.value: Progress.BLOCKED.value,
    Decision.CLARIFY.value: Progress.BLOCKED.value,
}

LAST_REPLY_TOKENS = 1_500
SIMPLE_SUMMARY_TOKENS = 150
SIMPLE_FILES = 5
DEFAULT_INSTRUCTIONS = {
    Expected.FINDINGS: "Find what exists, what conflicts and what can be reused for the feature.",
    Expected.FILES: "Implement the feature in the style of the project, with tests.",
    Expected.VALIDATION: "Judge whether the change does what was asked.",
}
_FINDINGS_CONTENT = {
    Expected.FINDINGS: "what was found, by name",
    Expected.FILES: '"files_changed" and "tests_written", lists of paths',
    Expected.VALIDATION: "what was checked, and with which result",
}


def build_request(step: Step, task_id: str, step_input: StepInput) -> HandoffRequest:
    """The handoff request of a step."""
    assignment = step_input.assignment
    return HandoffRequest(
        task_id=task_id,
        phase=step.phase,
        context=HandoffContext(
            feature=assignment.feature,
            spec_path=assignment.spec_path,
            relevant_files=tuple(dict.fromkeys((*assignment.relevant_files, *step_input.files))),
            constraints=(*assignment.constraints, *step.constraints, *step_input.remarks),
            previous_findings=step_input.summary,
        ),
        instructions=step.instructions or DEFAULT_INSTRUCTIONS[step.phase.expected],
        expected_output=step.phase.expected,
    )


def simplify_request(request: HandoffRequest) -> HandoffRequest:
    """Reduce the request for an agent that ran out of time."""
    context = request.context
    previous = context.previous_findings
    return request.model_copy(
        update={
            "context": context.model_copy(
                update={
                    "relevant_files": context.relevant_files[:SIMPLE_FILES],
                    "previous_findings": None
                    if previous is None
                    else shorten(previous, SIMPLE_SUMMARY_TOKENS),
                }
            ),
            "instructions": "An earlier attempt ran out of time. Do only the essential part, and list the "
            f"rest under issues. {request.instructions}",
        }
    )


def build_prompt(request: HandoffRequest, step: Step) -> str:
    """The prompt of a phase: the request, and the format of the answer."""
    contents = [_FINDINGS_CONTENT[request.expected_output]]
    contents += [f'"{name}": {describe_type(kind)}' for name, kind in step.finding.items()]
    form: dict[str, object] = {
        "task_id": request.task_id,
        "phase": request.phase.value,
        "status": "complete | partial | blocked",
        "decision": "PROCEED | STOP | CLARIFY",
        "findings": {},
        "context_summary": f"all that the next phase learns, at most {HANDOFF_SUMMARY_TOKENS} tokens",
        "issues": [],
    }
    return (
        "Your part of a workflow, as a handoff:\n"
        f"```json\n{request.model_dump_json(indent=1)}\n```\n"
        "End your answer with one JSON object in this form:\n"
        f"{json.dumps(form)}\n"
        f"findings: {'; '.join(contents)}. "
        'decision: PROCEED when the work is done, STOP on a critical conflict or error ("reason" in '
        'findings), CLARIFY when the task is ambiguous ("questions" in findings).'
    )


def build_retry_prompt(prompt: str, reply: str, reason: str) -> str:
    """The prompt after an unusable answer: the same task, the agent's own answer and the reason."""
    return (
        f"{prompt}\n\nYour last answer could not be used: {reason}.\nIt was:\n"
        f"{shorten(reply, LAST_REPLY_TOKENS)}\n\nAnswer again, in the form above."
    )


def build_plain_task(step: Step, step_input: StepInput) -> str:
    """The task of a step without a handoff: its instructions and the answer of the previous step."""
    parts = [step.instructions, step_input.text, *step_input.remarks]
    return "\n\n".join(part for part in parts if part)


class InvalidHandoffReply(Exception):
    """Raised for an answer that is not a valid handoff response. The message tells the agent why."""


def read_reply(
    text: str, request: HandoffRequest, finding: Mapping[str, FieldType], tokens_used: int
) -> HandoffResponse:
    """Parse an agent's answer, or raise `InvalidHandoffReply`."""
    found = objects_in(text)
    likely = [number for number, each in enumerate(found.objects) if _RESPONSE_KEYS & each.keys()]
    chosen = likely or range(len(found.objects))
    after = text[found.ends[chosen[-1]] :] if chosen else ""
    if _RESPONSE_KEY.search(found.words) or _BEGINNING_OF_OBJECT.search(after):
        # Another object must not take the place of a response that was cut or damaged: it may be a quotation.
        raise InvalidHandoffReply("a JSON object in it cannot be parsed, or it ends too early")
    if not chosen:
        raise InvalidHandoffReply("it contains no JSON object")
    response = _validate(found.objects[chosen[-1]], request, tokens_used)
    for number in likely[:-1]:
        if _is_other_response(found.objects[number], response, request):
            # One of them may be a quotation: files and web pages can contain responses.
            raise InvalidHandoffReply("it contains different responses; end with one, and quote no other")
    for name in ("task_id", "phase"):
        if getattr(response, name) != getattr(request, name):
            raise InvalidHandoffReply(
                f"{name} is {getattr(response, name)!r} instead of {getattr(request, name)!r}"
            )
    if response.decision is Decision.PROCEED:
        _check_findings(response.findings, finding, request.expected_output)
    if response.decision is Decision.CLARIFY and not questions_in(response):
        raise InvalidHandoffReply(
            "it says CLARIFY without a question; list the questions in findings.questions"
        )
    return shorten_summary(response)


def questions_in(response: HandoffResponse) -> list[str]:
    """The questions of a response: those in its findings, else the issues that are questions."""
    named = response.findings.get("questions")
    listed = cast("list[object]", named) if isinstance(named, list) else []
    questions = [each for each in listed if isinstance(each, str)]
    asked = questions or [each for each in response.issues if each.rstrip().endswith("?")]
    return [each for each in asked if each.strip(" .…-")]


def _validate(parsed: dict[str, Any], request: HandoffRequest, tokens_used: int) -> HandoffResponse:
    try:
        return HandoffResponse.model_validate(_fill_missing(parsed, request) | {"tokens_used": tokens_used})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidHandoffReply(
            "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems[:5])
        ) from None


def _is_other_response(parsed: dict[str, Any], response: HandoffResponse, request: HandoffRequest) -> bool:
    """Whether an object is a valid response too, but another one."""
    try:
        return _validate(parsed, request, response.tokens_used) != response
    except InvalidHandoffReply:
        return False


def _fill_missing(parsed: dict[str, Any], request: HandoffRequest) -> dict[str, Any]:
    """Add the fields that the request determines, and move unknown fields into the findings."""
    values = {name: value for name, value in parsed.items() if name in _FIELDS}
    rest = {name: value for name, value in parsed.items() if name not in _FIELDS}
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


def _check_findings(findings: Mapping[str, Any], types: Mapping[str, FieldType], expected: Expected) -> None:
    """Raise `InvalidHandoffReply` if the findings lack a field or a field has the wrong type."""
    for name, kind in types.items():
        if name not in findings:
            raise InvalidHandoffReply(f"findings.{name} is missing; it must be {describe_type(kind)}")
        if not _has_type(findings[name], kind):
            raise InvalidHandoffReply(f"findings.{name} must be {describe_type(kind)}")
    if expected is Expected.FILES and not isinstance(findings.get("files_changed"), list):
        raise InvalidHandoffReply("findings.files_changed must be a list of paths; empty if nothing changed")


def _has_type(value: Any, kind: FieldType) -> bool:
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


def describe_type(kind: FieldType) -> str:
    if isinstance(kind, tuple):
        return "one of " + ", ".join(kind)
    return f"a {kind}" if kind != "integer" else "an integer"


def shorten_summary(response: HandoffResponse) -> HandoffResponse:
    """Cut a summary that is too long. The summary and the issues mention the cut."""
    summary = response.context_summary
    tokens = estimate_tokens(summary)
    if tokens <= HANDOFF_SUMMARY_TOKENS:
        return response
    issue = f"context_summary had {tokens} tokens and was cut to {HANDOFF_SUMMARY_TOKENS}"
    return response.model_copy(
        update={
            "context_summary": shorten(summary, HANDOFF_SUMMARY_TOKENS, CUT_MARK),
            "issues": (*response.issues, issue),
        }
    )


def shorten(text: str, tokens: int, mark: str = " […]") -> str:
    """Return the text if it fits, else its longest beginning that fits together with the mark."""
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
