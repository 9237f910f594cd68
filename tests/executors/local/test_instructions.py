from __future__ import annotations

from retinue.core import estimate_tokens
from retinue.executors.local.instructions import CUT_NOTE, system_prompt


def test_long_prompt_is_cut_with_a_note_and_stays_within_600_tokens() -> None:
    long = system_prompt("Look at it closely. " * 200, has_tools=True)
    assert CUT_NOTE in long and long.index(CUT_NOTE) <= 1_600
    for body in ("证据" * 900, "0123456789abcdef" * 200, "x" * 1_600, "short"):
        assert estimate_tokens(system_prompt(body, has_tools=True)) <= 600
    assert CUT_NOTE not in system_prompt("x" * 1_600, has_tools=True)
