"""Durations and usage are formatted for people (P8)."""

from __future__ import annotations

import pytest

from retinue.dashboard.layout import format_duration, format_usage


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-3, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7260, "2 h 1 min")],
)
def test_durations_are_readable(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


def test_usage_shows_only_known_values() -> None:
    assert format_usage({"tokens": 12_345, "cost_micros": 3_200, "wall_ms": 5}) == "12,345 tokens, $0.0032"
    assert format_usage({"wall_ms": 5}) == ""
