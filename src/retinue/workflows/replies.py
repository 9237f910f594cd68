"""An agent's answer becomes a handoff response: from prose, fences or bare JSON. Knows nothing of agents."""

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
    HandoffRequest,
    HandoffResponse,
    Progress,
    estimate_tokens,
    objects_in,
)

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
