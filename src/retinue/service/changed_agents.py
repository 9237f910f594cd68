"""Changes that a workflow or a person makes to an agent for one call, as JSON.

The changes are recorded with the run, so that a server that adopts the run performs it in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from retinue.core import Agent, Json

CHANGEABLE = ("isolation", "acceptance", "output_format", "output_schema", "timeout_s", "model")
"""The fields of an agent that a call may change."""


def changes_to(defined: Agent, called: Agent) -> dict[str, Json]:
    """Return the fields in which an agent differs from its definition."""
    return {
        name: getattr(called, name) for name in CHANGEABLE if getattr(called, name) != getattr(defined, name)
    }


def with_changes(agent: Agent, changes: Mapping[str, Json]) -> Agent:
    """Return the agent with recorded changes, read back from JSON."""
    values: dict[str, Any] = {name: changes[name] for name in CHANGEABLE if name in changes}
    if "acceptance" in values:
        values["acceptance"] = tuple(tuple(command) for command in values["acceptance"])
    return replace(agent, **values)
