"""A server that adopts a run performs it as the workflow that started it wanted (P2)."""

from __future__ import annotations

import json
from dataclasses import replace

from retinue.core import Agent
from retinue.service.changed_agents import changes_to, with_changes

DEFINED = Agent(name="writer", description="", executor="claude", source="test", timeout_s=600)


def test_changes_of_a_call_survive_as_json() -> None:
    called = replace(
        DEFINED,
        isolation="worktree",
        acceptance=(("make", "test"), ("make", "lint")),
        output_format="json",
        output_schema={"type": "object", "required": ["decision"]},
        timeout_s=30.0,
    )
    recorded = json.loads(json.dumps({"start": "retinue/x", **changes_to(DEFINED, called)}))
    assert with_changes(DEFINED, recorded) == called


def test_agent_that_a_call_does_not_change_is_recorded_with_nothing() -> None:
    assert changes_to(DEFINED, DEFINED) == {}
    assert with_changes(DEFINED, {"start": None}) == DEFINED
