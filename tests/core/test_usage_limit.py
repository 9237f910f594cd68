"""Spent usage limits are recognised by the words that providers and coding CLIs really use."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retinue.core import find_limit_notice, find_usage_limit, read_reset

NOW = datetime(2026, 6, 14, 10, 0, tzinfo=UTC).timestamp()

SAID = [
    ("Claude AI usage limit reached|1781438400", "2026-06-14T12:00:00"),
    ("Claude usage limit reached. Your limit will reset at 3pm (America/Santiago).", "2026-06-14T19:00:00"),
    ("You've hit your limit · resets 2pm (Asia/Shanghai)", "2026-06-15T06:00:00"),
    ("You've hit your session limit · resets 11:50pm (America/Los_Angeles)", "2026-06-15T06:50:00"),
    ("You've hit your weekly limit · resets Jun 18, 3pm (UTC)", "2026-06-18T15:00:00"),
    ("You’ve hit your limit for Claude messages. Limits will reset at 9:30 AM (UTC).", "2026-06-15T09:30:00"),
    ("5-hour limit reached ∙ resets 3pm (UTC)", "2026-06-14T15:00:00"),
    ("You've reached your Opus limit.", None),
    ("Credit balance is too low", None),
    (
        "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in "
        "5 days 22 hours 11 minutes.",
        "2026-06-20T08:11:00",
    ),
    (
        "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore"
        "/plus), or try again at Jul 5th, 2026 8:19 PM UTC.",
        "2026-07-05T20:19:00",
    ),
    (
        "■ You've hit your usage limit. To get more access now, send a request to your admin or try again in "
        "3 days 6 hours 57 minutes.",
        "2026-06-17T16:57:00",
    ),
    ("You've hit your usage limit. Upgrade to Pro (x), or wait for limits to reset (every 5h).", None),
    (
        "You have exhausted your capacity on this model. Your quota will reset after 21h53m56s.",
        "2026-06-15T07:53:56",
    ),
    ("[API Error: You have exhausted your daily quota on this model.]", None),
    ("You have reached your daily gemini-2.5-pro quota limit.", None),
    (
        "Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'per day' of service 'x' for "
        "consumer 'y'. Expected quota reset within 24h.",
        "2026-06-15T10:00:00",
    ),
    (
        "Usage limit reached for gemini-3-flash-preview. Access resets at 10:57 PM GMT-3.",
        "2026-06-15T01:57:00",
    ),
    (
        '{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached",'
        '"plan_type":"free","resets_at":1781438400,"resets_in_seconds":602705}}',
        "2026-06-14T12:00:00",
    ),
    ("You exceeded your current quota, please check your plan and billing details.", None),
    ("You've hit your limit. Your limit will reset at 2026-06-15T18:00:00Z", "2026-06-15T18:00:00"),
]


@pytest.mark.parametrize(("said", "until"), SAID)
def test_limit_and_its_end_are_read_from_the_words(said: str, until: str | None) -> None:
    found = find_usage_limit(f"Error: {said}", NOW)
    assert found is not None
    end = None if found.reset_at is None else datetime.fromtimestamp(found.reset_at, UTC)
    assert end == (None if until is None else datetime.fromisoformat(f"{until}+00:00"))


@pytest.mark.parametrize(
    "said",
    [
        "Error: max turns reached",
        "the rate limiter in worker.js is wrong",
        "Rate limit reached for gpt-5. Please try again in 11.054s",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "time limit reached",
        "",
    ],
)
def test_other_errors_are_no_spent_limit(said: str) -> None:
    assert find_usage_limit(said, NOW) is None


def test_output_that_only_talks_about_limits_is_no_notice() -> None:
    talk = ['I added a check so that the API returns "usage limit reached"', "test_quota exceeded: FAILED"]
    assert find_limit_notice(talk, NOW) is None
    assert find_limit_notice([*talk, "✕ [API Error: You have exhausted your daily quota]"], NOW)


@pytest.mark.parametrize(
    "said",
    [
        "resets at|1",
        "usage limit reached|1781400000",  # in the past
        "try again in 400 days",
        "resets at 2026-13-45T99:99",
        "resets Feb 31, 3pm",
        "resets at 25:99",
        "resets 3pm (No/Where/At/All)" * 1000,
        "reset after " + "9" * 400 + "d",
    ],
)
def test_impossible_ends_are_not_believed(said: str) -> None:
    reset_at = read_reset(said, NOW)
    assert reset_at is None or NOW < reset_at < NOW + 36 * 86_400
