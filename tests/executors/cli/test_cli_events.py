"""What the CLIs' events mean, read from recordings of the real ones (see `recordings`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retinue.core import LimitExceeded, ModelFailed
from retinue.executors.cli.claude import ClaudeEvents
from retinue.executors.cli.cli_output import CliEvents, CliReport
from retinue.executors.cli.codex import CodexEvents

RECORDINGS = Path(__file__).parent / "recordings"


def recorded(name: str) -> Iterator[dict[str, Any]]:
    for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def read(events: CliEvents, name: str) -> tuple[CliReport, list[str]]:
    log = [line for event in recorded(name) for line in events.take(event)]
    return events.report, log


def test_claude_success_is_told_with_its_model_session_and_costs_P8() -> None:
    report, log = read(ClaudeEvents(), "claude-tool")
    assert (report.ended, report.error, report.answer) == (True, None, "done")
    assert (report.model, report.steps, report.tokens) == ("claude-opus-5-5", 2, 36)
    assert report.cost_micros == 368
    assert report.session_id
    assert report.denials == report.notes == []
    assert 'uses: Bash {"command": "echo hello", "description": "d"}' in log
    assert "tool: hello" in log


def test_claude_denial_and_dead_server_are_seen_behind_a_success_P8() -> None:
    report, _ = read(ClaudeEvents(), "claude-denied")
    assert (report.error, report.answer) == (None, "gave up")
    assert report.denials == ["Bash(touch x)"]
    assert report.notes == ["the MCP server dead did not start: failed"]


def test_claude_limit_of_turns_is_a_limit() -> None:
    report, _ = read(ClaudeEvents(max_steps=2), "claude-max-turns")
    assert isinstance(report.error, LimitExceeded)
    assert (report.error.kind, report.error.limit) == ("steps", 2)


def test_claude_limit_of_cost_is_a_limit() -> None:
    report, _ = read(ClaudeEvents(max_cost_micros=100), "claude-max-cost")
    assert isinstance(report.error, LimitExceeded)
    assert (report.error.kind, report.error.limit) == ("cost_micros", 100)


def test_claude_error_of_the_api_is_no_success_though_it_says_so_P8() -> None:
    report, _ = read(ClaudeEvents(), "claude-api-error")
    assert isinstance(report.error, ModelFailed)
    assert report.error.data["status"] == 400
    assert "no such thing" in report.error.message


def test_claude_tells_what_the_api_answers_while_it_tries_again_P8() -> None:
    """For minutes, with a wrong key: neither the log nor the result of a late run may be silent."""
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


def test_codex_success_is_told_with_its_session_and_tokens() -> None:
    report, log = read(CodexEvents(model="stub"), "codex-tool")
    assert (report.ended, report.error, report.answer) == (True, None, "done")
    assert (report.model, report.steps, report.tokens) == ("stub", 3, 54)
    assert report.session_id
    assert "uses: /bin/bash -lc 'echo hello' -> exit code 0" in log


@pytest.mark.parametrize("name", ["codex-failed", "codex-reconnecting"])
def test_codex_failure_is_the_end_of_the_turn_not_an_error_on_the_way(name: str) -> None:
    report, _ = read(CodexEvents(), name)
    assert report.ended
    assert isinstance(report.error, ModelFailed)


def test_codex_is_stopped_at_its_limit_of_steps_P2() -> None:
    with pytest.raises(LimitExceeded):
        read(CodexEvents(max_steps=2), "codex-tool")


@pytest.mark.parametrize("events", [ClaudeEvents, CodexEvents])
@pytest.mark.parametrize("kind", ["result", "assistant", "system", "item.completed", "turn.failed", "?"])
def test_events_of_another_shape_are_survived(events: type[CliEvents], kind: str) -> None:
    reader = events()
    other: dict[str, Any] = {"type": kind, "message": 3, "item": [], "error": "x", "result": None}
    for event in ({"type": kind}, other):
        list(reader.take(event))


def test_nothing_is_proved_by_the_beginning_of_a_recording_P8() -> None:
    reader = ClaudeEvents()
    for event in list(recorded("claude-tool"))[:-1]:
        list(reader.take(event))
    assert not reader.report.ended


def test_claude_is_ended_in_the_middle_when_its_tokens_are_spent_P2() -> None:
    """A message comes in several events, and counts once."""
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
