"""An agent's answer is parsed from prose, code fences or JSON, and validated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from retinue.core import (
    Decision,
    Expected,
    HandoffContext,
    HandoffRequest,
    HandoffResponse,
    Phase,
    Progress,
    estimate_tokens,
    handoff_schemas,
)
from retinue.workflows.handoff_messages import InvalidHandoffReply, read_reply, shorten

REQUEST = HandoffRequest(
    task_id="t/1",
    phase=Phase.RESEARCH,
    context=HandoffContext(feature="f"),
    instructions="look",
    expected_output=Expected.FINDINGS,
)
WHOLE: dict[str, Any] = {
    "task_id": "t/1",
    "phase": "research",
    "status": "complete",
    "decision": "PROCEED",
    "findings": {"patterns_found": ["x"]},
    "context_summary": "short",
    "tokens_used": 999_999,
    "issues": [],
}


def read(text: str) -> HandoffResponse:
    return read_reply(text, REQUEST, {}, 42)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WHOLE),
        f"Here you are:\n```json\n{json.dumps(WHOLE, indent=2)}\n```\nBye.",
        f"```\n{json.dumps(WHOLE)}\n```",
        f"I looked at {{a}} and {{'b'}}; result: {json.dumps(WHOLE)} That is all.",
        f'First {{"note": 1}}, then {json.dumps(WHOLE)}',
        "{" * 50 + json.dumps(WHOLE),
    ],
)
def test_reply_is_found_in_surrounding_text(text: str) -> None:
    response = read(text)
    assert response.decision is Decision.PROCEED
    assert response.context_summary == "short"


def test_token_count_comes_from_the_server_not_the_agent() -> None:
    assert read(json.dumps(WHOLE)).tokens_used == 42


def test_missing_fields_are_filled_in_and_unknown_ones_become_findings() -> None:
    reply = {"decision": "STOP", "reason": "conflict", "context_summary": "s", "issues": [{"at": "a.py:1"}]}
    response = read(json.dumps(reply))
    assert (response.task_id, response.phase, response.status) == ("t/1", Phase.RESEARCH, Progress.BLOCKED)
    assert response.findings == {"reason": "conflict"}
    assert response.issues == ('{"at": "a.py:1"}',)


def test_status_determines_a_missing_decision() -> None:
    assert read('{"status": "complete", "context_summary": "s"}').decision is Decision.PROCEED
    with pytest.raises(InvalidHandoffReply, match="decision"):
        read('{"status": "partial", "context_summary": "s"}')


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"decision": "YES"}, "decision"),
        ({"context_summary": ""}, "context_summary"),
        ({"context_summary": None}, "context_summary"),
        ({"findings": ["a"]}, "findings"),
        ({"status": "done"}, "status"),
        ({"task_id": "another"}, "task_id is 'another' instead of 't/1'"),
        ({"phase": "write"}, "phase"),
        ({"issues": "one"}, "issues"),
    ],
)
def test_reply_that_breaks_the_protocol_is_refused_with_the_reason(
    change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidHandoffReply, match=reason):
        read(json.dumps(WHOLE | change))


def test_writer_must_name_its_files() -> None:
    request = REQUEST.model_copy(update={"phase": Phase.WRITE, "expected_output": Expected.FILES})
    with pytest.raises(InvalidHandoffReply, match="files_changed"):
        read_reply(json.dumps(WHOLE | {"phase": "write"}), request, {}, 0)


@given(st.text(max_size=400))
def test_no_text_crashes_read_reply(text: str) -> None:
    try:
        read(text)
    except InvalidHandoffReply as error:
        assert str(error)


@given(st.text(alphabet='{}[]":,ab \n`', max_size=300))
def test_no_truncated_json_crashes_read_reply(text: str) -> None:
    try:
        read(text)
    except InvalidHandoffReply as error:
        assert str(error)


@given(st.text(max_size=3000), st.integers(20, 600))
def test_shorten_returns_text_that_fits(text: str, tokens: int) -> None:
    assert estimate_tokens(shorten(text, tokens)) <= tokens


def test_schemas_match_the_handoff_protocol() -> None:
    request, response = handoff_schemas()["request"], handoff_schemas()["response"]
    assert set(request["properties"]) == {"task_id", "phase", "context", "instructions", "expected_output"}
    assert set(request["$defs"]["HandoffContext"]["properties"]) == {
        "feature",
        "spec_path",
        "relevant_files",
        "constraints",
        "previous_findings",
    }
    assert set(response["properties"]) == set(WHOLE)
    assert request["$defs"]["Phase"]["enum"] == ["research", "write", "validate"]
    assert request["$defs"]["Expected"]["enum"] == [
        "structured_findings",
        "files_changed",
        "validation_result",
    ]
    assert response["$defs"]["Decision"]["enum"] == ["PROCEED", "STOP", "CLARIFY"]
    assert response["$defs"]["Progress"]["enum"] == ["complete", "partial", "blocked"]
