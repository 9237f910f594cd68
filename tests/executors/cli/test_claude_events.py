"""What claude's events mean, read from recordings of the real CLI."""

from __future__ import annotations

from typing import Any

import pytest

from retinue.core import LimitExceeded, ModelFailed, QuotaSpent, Throttled
from retinue.executors.cli.claude import ClaudeEvents
from tests.executors.cli.recorded_events import read_recording, recorded_events


def test_success_is_reported_with_model_session_and_cost_P8() -> None:
    report, log = read_recording(ClaudeEvents(), "claude-tool")
    assert (report.ended, report.error, report.answer) == (True, None, "done")
    assert (report.model, report.steps, report.tokens) == ("claude-opus-5-5", 2, 36)
    assert report.cost_micros == 368
    assert report.session_id
    assert report.denials == report.notes == []
    assert 'uses: Bash {"command": "echo hello", "description": "d"}' in log
    assert "tool: hello" in log


def test_denials_and_dead_servers_are_reported_with_a_success_P8() -> None:
    report, _ = read_recording(ClaudeEvents(), "claude-denied")
    assert (report.error, report.answer) == (None, "gave up")
    assert report.denials == ["Bash(touch x)"]
    assert report.notes == ["the MCP server dead did not start: failed"]


def test_reaching_the_limit_of_turns_is_an_error_P2() -> None:
    report, _ = read_recording(ClaudeEvents(max_steps=2), "claude-max-turns")
    assert isinstance(report.error, LimitExceeded)
    assert (report.error.kind, report.error.limit) == ("steps", 2)


def test_reaching_the_cost_limit_is_an_error_P2() -> None:
    report, _ = read_recording(ClaudeEvents(max_cost_micros=100), "claude-max-cost")
    assert isinstance(report.error, LimitExceeded)
    assert (report.error.kind, report.error.limit) == ("cost_micros", 100)


def test_api_error_is_an_error_even_if_claude_calls_it_success_P8() -> None:
    report, _ = read_recording(ClaudeEvents(), "claude-api-error")
    assert isinstance(report.error, ModelFailed)
    assert report.error.data["status"] == 400
    assert "no such thing" in report.error.message


def test_retries_are_logged_and_noted_P8() -> None:
    """With a wrong key claude retries for minutes, which explains a late run."""
    events = ClaudeEvents()
    again = {"type": "system", "subtype": "api_retry", "max_retries": 10, "retry_delay_ms": 527}
    refused = again | {"error_status": 401, "error": "authentication_failed"}
    told = [line for attempt in (1, 2) for line in events.take(refused | {"attempt": attempt})]
    assert told[1] == (
        "claude: the model's API answered 401 (authentication_failed) and was asked again in 0.5 s, 2 of 10"
    )
    assert list(events.take(again | {"error_status": None, "error": "unknown"}))
    assert events.report.notes == [
        "the model's API answered 401 (authentication_failed) and was asked again",
        "the model's API answered nothing (unknown) and was asked again",
    ]
    assert not events.report.ended


def test_recording_without_its_last_event_has_not_ended_P8() -> None:
    reader = ClaudeEvents()
    for event in list(recorded_events("claude-tool"))[:-1]:
        list(reader.take(event))
    assert not reader.report.ended


def test_run_ends_when_its_tokens_are_spent_P2() -> None:
    """A message comes in several events and counts once."""
    events = ClaudeEvents(max_tokens=25)

    def reply(name: str, spoken: int) -> dict[str, Any]:
        usage = {"input_tokens": 10, "output_tokens": spoken}
        return {"type": "assistant", "message": {"id": name, "content": [], "usage": usage}}

    for event in (reply("a", 1), reply("a", 3), reply("b", 1)):
        assert list(events.take(event)) == []
    assert events.report.tokens == 24
    with pytest.raises(LimitExceeded) as ended:
        list(events.take(reply("b", 3)))
    assert (ended.value.kind, ended.value.used, ended.value.limit) == ("tokens", 26, 25)


@pytest.mark.parametrize("kind", ["result", "assistant", "system", "item.completed", "turn.failed", "?"])
def test_events_of_another_shape_are_ignored(kind: str) -> None:
    events = ClaudeEvents()
    other: dict[str, Any] = {"type": kind, "message": 3, "item": [], "error": "x", "result": None}
    for event in ({"type": kind}, other):
        list(events.take(event))


def test_receipt_counts_the_calls_that_claude_made_P8() -> None:
    report, _ = read_recording(ClaudeEvents(), "claude-tool")
    assert report.activity.tools == {"Bash": 1}
    assert report.activity.commands == [("echo hello", 0)]


def test_receipt_leaves_out_calls_that_were_refused_P8() -> None:
    report, _ = read_recording(ClaudeEvents(), "claude-denied")
    assert report.activity.tools == {}
    assert report.activity.commands == []
    assert not report.activity.has_looked


def test_receipt_has_the_files_that_claude_read_and_the_exit_codes_of_commands_P8() -> None:
    events = ClaudeEvents(folder="/work")

    def call(name: str, given: dict[str, str], result: str, *, failed: bool = False) -> None:
        use = {"type": "tool_use", "id": "1", "name": name, "input": given}
        list(events.take({"type": "assistant", "message": {"id": "m", "content": [use]}}))
        answer = {"type": "tool_result", "tool_use_id": "1", "is_error": failed, "content": result}
        list(events.take({"type": "user", "message": {"content": [answer]}}))

    call("Read", {"file_path": "/work/src/a.py"}, "1 import os")
    call("Read", {"file_path": "/work/gone.py"}, "File does not exist.", failed=True)
    call("Bash", {"command": "make test"}, "Exit code 2\nboom", failed=True)
    call("Bash", {"command": "sleep 999"}, "Command timed out after 2m", failed=True)
    activity = events.report.activity
    assert activity.tools == {"Read": 2, "Bash": 2}
    assert activity.failed_calls == 2
    assert list(activity.files) == ["src/a.py"]
    assert activity.commands == [("make test", 2), ("sleep 999", None)]


def test_repeated_calls_cost_the_tokens_of_the_messages_that_made_them() -> None:
    events = ClaudeEvents(folder="/work")
    for number in range(3):
        use = {"type": "tool_use", "id": "1", "name": "Read", "input": {"file_path": "/work/gone.py"}}
        usage = {"input_tokens": 100 * 2**number, "output_tokens": 5}
        message = {"id": f"m{number}", "content": [use], "usage": usage}
        list(events.take({"type": "assistant", "message": message}))
        answer = {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": "no such file"}
        list(events.take({"type": "user", "message": {"content": [answer]}}))
    activity = events.report.activity
    assert (activity.retries, activity.retry_tokens) == ({"Read": 2}, {"Read": 205 + 405})


def ended_with(events: ClaudeEvents, **more: Any) -> Any:
    list(events.take({"type": "result", "subtype": "success", "result": "", **more}))
    return events.report.error


def test_spent_limit_is_recognised_with_its_end_from_the_typed_event_and_from_words() -> None:
    events = ClaudeEvents()
    info = {"status": "rejected", "resetsAt": 1_999_999_999, "rateLimitType": "five_hour"}
    list(events.take({"type": "rate_limit_event", "rate_limit_info": info}))
    spent = ended_with(events, is_error=True, result="You've hit your limit · resets 2pm (Asia/Shanghai)")
    assert isinstance(spent, QuotaSpent)
    assert spent.reset_at == 1_999_999_999
    old = ended_with(ClaudeEvents(), is_error=True, result="Claude AI usage limit reached|1999999999")
    assert isinstance(old, QuotaSpent)


def test_limit_that_is_only_near_or_only_talked_about_is_no_spent_limit() -> None:
    events = ClaudeEvents()
    near = {"status": "allowed_warning", "resetsAt": 1_999_999_999}
    list(events.take({"type": "rate_limit_event", "rate_limit_info": near}))
    message = {"model": "claude-opus-5-5", "content": [{"type": "text", "text": "x"}]}
    list(events.take({"type": "assistant", "message": message}))
    assert ended_with(events, result="The page says: You've hit your limit · resets 2pm") is None


def test_limit_that_claude_itself_wrote_as_its_answer_is_a_spent_limit() -> None:
    events = ClaudeEvents()
    list(events.take({"type": "assistant", "message": {"model": "<synthetic>", "content": []}}))
    assert isinstance(ended_with(events, result="5-hour limit reached ∙ resets 3pm"), QuotaSpent)


def test_429_without_words_of_a_limit_is_a_throttle() -> None:
    error = ended_with(ClaudeEvents(), is_error=True, api_error_status=429, result="API Error: overloaded")
    assert isinstance(error, Throttled)
