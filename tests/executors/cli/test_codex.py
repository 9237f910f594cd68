"""What codex's events mean, read from recordings of the real CLI, and its settings."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from retinue.core import LimitExceeded, ModelFailed, QuotaSpent
from retinue.executors.cli.cli_output import missing_result_error
from retinue.executors.cli.codex import CodexEvents, to_toml
from tests.executors.cli.recorded_events import read_recording


def test_success_is_reported_with_session_and_tokens() -> None:
    report, log = read_recording(CodexEvents(model="stub"), "codex-tool")
    assert (report.ended, report.error, report.answer) == (True, None, "done")
    assert (report.model, report.steps, report.tokens) == ("stub", 3, 54)
    assert report.session_id
    assert "uses: /bin/bash -lc 'echo hello' -> exit code 0" in log


@pytest.mark.parametrize("name", ["codex-failed", "codex-reconnecting"])
def test_failed_turn_is_an_error_and_an_error_on_the_way_is_not(name: str) -> None:
    report, _ = read_recording(CodexEvents(), name)
    assert report.ended
    assert isinstance(report.error, ModelFailed)


def test_run_ends_at_its_limit_of_steps_P2() -> None:
    with pytest.raises(LimitExceeded):
        read_recording(CodexEvents(max_steps=2), "codex-tool")


@pytest.mark.parametrize("kind", ["result", "assistant", "system", "item.completed", "turn.failed", "?"])
def test_events_of_another_shape_are_ignored(kind: str) -> None:
    events = CodexEvents()
    other: dict[str, Any] = {"type": kind, "message": 3, "item": [], "error": "x", "result": None}
    for event in ({"type": kind}, other):
        list(events.take(event))


@given(st.text(st.characters(codec="utf-8")))
@example("a\x7fb")
def test_every_text_is_a_valid_toml_string(text: str) -> None:
    assert tomllib.loads(f"value = {to_toml({text: text})}")["value"] == {text: text}


def test_settings_are_valid_toml() -> None:
    value = {"a.b": {"list": ["x", 'quote " and \\ and é'], "yes": True, "number": 7}}
    assert tomllib.loads(f"value = {to_toml(value)}")["value"] == value


def test_receipt_counts_commands_and_calls_of_servers_P8() -> None:
    report, _ = read_recording(CodexEvents(), "codex-tool")
    assert report.activity.tools == {"Bash": 1, "mcp__ec__echo": 1}
    assert report.activity.commands == [("/bin/bash -lc 'echo hello'", 0)]


def test_spent_limit_of_codex_is_recognised() -> None:
    events = CodexEvents()
    message = "You've hit your usage limit. Upgrade to Pro (x) or try again in 2 days 17 hours 14 minutes."
    list(events.take({"type": "turn.failed", "error": {"message": message}}))
    assert isinstance(events.report.error, QuotaSpent)
    assert events.report.error.reset_at is not None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "error: unexpected argument '--ignore-user-config' found\n\nFor more, see '--help'.",
            "unexpected argument '--ignore-user-config' found",
        ),
        (
            "WARNING: x\nError loading config.toml: data did not match\nin `permissions`\n",
            "data did not match",
        ),
    ],
    ids=["argument", "setting"],
)
def test_codex_that_is_too_old_fails_and_says_what_it_does_not_know_P8(said: str, reason: str) -> None:
    """Without its settings, it would not hide secret files."""
    error = missing_result_error("codex", 2, said)
    assert reason in error.message
    assert "update it" in (error.hint or "")


def test_other_failures_say_their_last_words() -> None:
    error = missing_result_error("codex", 1, "error: no network\nbye\n")
    assert (error.message, error.hint) == ("codex ended without a result, with exit code 1: bye", None)
