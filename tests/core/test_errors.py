"""The texts of errors."""

from __future__ import annotations

import pytest

from retinue.core import LimitExceeded


@pytest.mark.parametrize(
    ("used", "limit", "told"),
    [
        (16_777_217, 16_777_216, "bytes: 16777217 would exceed the limit of 16777216"),
        (3.0, 2.5, "bytes: 3 would exceed the limit of 2.5"),
    ],
)
def test_limit_message_shows_all_digits(used: float, limit: float, told: str) -> None:
    assert str(LimitExceeded("bytes", used, limit)) == told
