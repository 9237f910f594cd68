"""Finds the fields of an agent that its executor does not support. The table of executors lists them.

An agent that sets an unsupported field is refused, not run without it (P7): silently ignoring a sandbox or a
permission would be worse than not running the agent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from retinue.core import EXECUTORS, Agent, ExecutorTable

ALWAYS = frozenset(
    {
        *("name", "description", "executor", "source"),
        *("timeout_s", "spawns", "allowed_callers", "budget.wall_ms"),
    }
)
"""Done for every run, whatever performs it."""

KEYS = {
    "denied_tools": "disallowed_tools",
    "prompt_mode": "system_prompt",
    "budget.cost_micros": "max_cost_usd",
}
"""As people write them, where that differs."""


def asked(agent: Agent) -> Iterator[str]:
    """The fields that say something other than their default."""
    for field in dataclasses.fields(agent):
        value = getattr(agent, field.name)
        if field.name == "budget":
            yield from (f"budget.{kind}" for kind in agent.budget.as_dict())
        elif field.name == "permissions":
            yield from ("permissions",) if value.allow or value.deny or value.mode else ()
        elif field.name == "output_format" and agent.output_schema is not None:
            continue  # whoever holds the answer to a schema holds it to JSON
        elif field.default is not dataclasses.MISSING:
            yield from (field.name,) if value != field.default else ()
        elif value or field.default_factory is dataclasses.MISSING:
            yield field.name


def unsupported_fields(agent: Agent, executors: ExecutorTable = EXECUTORS) -> tuple[str, ...]:
    """Return the keys that the agent sets but its executor does not support, as written in its file."""
    done = ALWAYS
    if (kind := executors.get(agent.executor)) is not None:
        done |= kind.fields
        if agent.container:
            done |= kind.fields_in_container
    missing = [KEYS.get(name, name) for name in asked(agent) if name not in done and name != "needs"]
    return (*missing, *agent.needs)
