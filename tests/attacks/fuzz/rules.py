"""Rule matching: whatever the call and the rules are, `deny` wins and a decision is reached quickly."""

from __future__ import annotations

from random import Random

from retinue.core import ToolRequest, decide_by_rules

NAME = "rules"
LETTERS = "abrmg/.~*?[](){}'\"\\$`;&|<>! \t\n-=:"


def run_case(random: Random) -> None:
    text = "".join(random.choices(LETTERS, k=random.randrange(30)))
    verdict = decide_by_rules(ToolRequest("Bash", text), ["Bash"], ["Bash"])
    assert verdict is not None
    assert not verdict.allowed
