"""What of an agent's file is really done, by executor. The one list: a field is added with its enforcement.

An agent that asks for anything else is refused instead of run without it (P7): a sandbox or a permission that
is quietly left aside would be worse than no agent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from retinue.core import NO_PERMISSIONS, Agent
from retinue.definitions.profiles import DEFAULT_LOCAL_TOOLS, READ_ONLY
from retinue.definitions.tool_rules import restrict_to

ALWAYS = frozenset(
    {
        *("name", "description", "executor", "source"),
        *("timeout_s", "spawns", "allowed_callers", "budget.wall_ms"),
    }
)
"""Done for every run, whatever performs it."""

_CLI = frozenset(
    {
        *("command", "prompt", "prompt_mode", "model", "tools", "denied_tools", "permissions", "mcp_servers"),
        *("env", "folders", "settings", "container", "sandbox", "network", "isolation", "acceptance"),
        *("output_format", "output_schema", "session", "budget.steps"),
    }
)
# Of tokens, claude tells during its run, codex and gemini when their turn has ended. opencode tells those of
# its last step alone, and of any other program that speaks ACP nobody knows: there they cannot be limited.
BY_EXECUTOR: Mapping[str, frozenset[str]] = {
    "command": frozenset({"command", "env", "prompt", "output_format", "output_schema", "container"}),
    "local": frozenset(
        {
            *("prompt", "model", "tools", "mcp_servers", "output_format", "output_schema"),
            *("budget.steps", "budget.tokens", "budget.files", "budget.bytes"),
        }
    ),
    "claude": _CLI | {"budget.cost_micros", "budget.tokens"},
    "codex": (_CLI | {"budget.tokens"}) - {"denied_tools"},
    "gemini": _CLI | {"budget.tokens"},
    "opencode": _CLI,
    "acp": _CLI - {"model", "tools", "denied_tools", "settings"},
}

IN_A_CONTAINER = frozenset({"network", "folders"})
"""What nothing but a container can hold an agent's own program to."""

KEY_IN_FILE = {
    "denied_tools": "disallowed_tools",
    "prompt_mode": "system_prompt",
    "budget.cost_micros": "max_cost_usd",
}
"""As people write them, where that differs."""


def requested_fields(agent: Agent) -> Iterator[str]:
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


def unsupported_fields(agent: Agent) -> tuple[str, ...]:
    """What the agent asks for and nothing does, in the words of its file."""
    done = ALWAYS | BY_EXECUTOR.get(agent.executor, frozenset())
    if agent.executor == "command" and agent.container:
        done |= IN_A_CONTAINER
    missing = [
        KEY_IN_FILE.get(name, name)
        for name in requested_fields(agent)
        if name not in done and name != "needs"
    ]
    return (*missing, *agent.needs)


# MERGED trust: What an agent asks for that only its user may grant: a cloned project's file is not the user (P6, P7).

HARMLESS = frozenset({"local", "deterministic"})
"""Executors that start no program."""


def permissions_beyond_reading(agent: Agent) -> Iterator[str]:
    """Everything that is more than reading the roots with our own tools, in words."""
    if agent.executor not in HARMLESS:
        yield f"starts a program (executor {agent.executor})"
    harmless = (*READ_ONLY.tools, *DEFAULT_LOCAL_TOOLS)
    if agent.tools is None:
        yield "may call every tool"
    elif more := sorted(set(agent.tools) - set(restrict_to(agent.tools, harmless))):
        yield "has tools that do more than read: " + ", ".join(more)
    if agent.mcp_servers:
        yield "uses MCP servers of its own"
    if agent.permissions != NO_PERMISSIONS:
        yield "changes permissions"
    if agent.env:
        yield "reads environment variables"
    if agent.folders or agent.settings:
        yield "reaches beyond its folder"
    if agent.acceptance:
        yield "runs commands after it"
    if agent.spawns:
        yield "starts further agents"
