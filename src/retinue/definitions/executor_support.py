"""Which fields of an agent's definition each executor supports, and what an agent may do beyond reading.

An agent that sets an unsupported field is refused, not run without it (P7): silently ignoring a sandbox or a
permission would be worse than not running the agent. To support a field, add it here together with the code
that enforces it. Knows nothing of how executors work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from retinue.core import NO_PERMISSIONS, Agent
from retinue.definitions.profiles import DEFAULT_LOCAL_TOOLS, READ_ONLY
from retinue.definitions.tool_rules import restrict_to

SUPPORTED_BY_ALL = frozenset(
    {
        *("name", "description", "executor", "source"),
        *("timeout_s", "spawns", "allowed_callers", "budget.wall_ms"),
    }
)
"""Fields that the runtime enforces for every run, whatever its executor."""

CLI_FIELDS = frozenset(
    {
        *("command", "prompt", "prompt_mode", "model", "tools", "denied_tools", "permissions", "mcp_servers"),
        *("env", "folders", "settings", "container", "sandbox", "network", "isolation", "acceptance"),
        *("output_format", "output_schema", "session", "budget.steps"),
    }
)


@dataclass(frozen=True, slots=True)
class ExecutorSupport:
    """Which fields of an agent's definition one executor supports."""

    fields: frozenset[str] = frozenset()
    """Fields of `Agent` that it enforces, besides `SUPPORTED_BY_ALL`."""
    starts_program: bool = True
    requires_command: bool = False
    """Whether an agent must have a `command`."""

    @property
    def takes_command(self) -> bool:
        """Whether an agent may have a `command`."""
        return "command" in self.fields


# claude reports tokens while it runs, codex and gemini at the end of a turn. opencode reports only those of
# its last step, and other ACP programs may report none, so their tokens cannot be limited.
SUPPORT_BY_EXECUTOR: Mapping[str, ExecutorSupport] = {
    "local": ExecutorSupport(
        frozenset(
            {
                *("prompt", "model", "tools", "mcp_servers", "output_format", "output_schema"),
                *("budget.steps", "budget.tokens", "budget.files", "budget.bytes"),
            }
        ),
        starts_program=False,
    ),
    "claude": ExecutorSupport(CLI_FIELDS | {"budget.cost_micros", "budget.tokens"}),
    "codex": ExecutorSupport((CLI_FIELDS | {"budget.tokens"}) - {"denied_tools"}),
    "gemini": ExecutorSupport(CLI_FIELDS | {"budget.tokens"}),
    "opencode": ExecutorSupport(CLI_FIELDS),
    "acp": ExecutorSupport(
        CLI_FIELDS - {"model", "tools", "denied_tools", "settings"}, requires_command=True
    ),
    "command": ExecutorSupport(
        frozenset({"command", "env", "prompt", "output_format", "output_schema", "container"}),
        requires_command=True,
    ),
    "deterministic": ExecutorSupport(starts_program=False),
}
"""One row for each executor of `core.EXECUTOR_NAMES`."""

COMMAND_FIELDS_IN_CONTAINER = frozenset({"network", "folders"})
"""Fields that the executor `command` supports only if the agent has a container."""

KEY_IN_FILE = {
    "denied_tools": "disallowed_tools",
    "prompt_mode": "system_prompt",
    "budget.cost_micros": "max_cost_usd",
}
"""The key in an agent's file for each field whose name differs."""


def support_of(executor: str) -> ExecutorSupport:
    """Return the row of an executor. An unknown executor supports nothing."""
    return SUPPORT_BY_EXECUTOR.get(executor, ExecutorSupport())


def unsupported_fields(agent: Agent) -> tuple[str, ...]:
    """Return the keys that the agent sets but its executor does not support, as written in its file."""
    supported = SUPPORTED_BY_ALL | support_of(agent.executor).fields
    if agent.executor == "command" and agent.container:
        supported |= COMMAND_FIELDS_IN_CONTAINER
    missing = [
        KEY_IN_FILE.get(name, name)
        for name in requested_fields(agent)
        if name not in supported and name != "needs"
    ]
    return (*missing, *agent.needs)


def requested_fields(agent: Agent) -> Iterator[str]:
    """Yield the fields that differ from their default. Budgets are yielded by kind, as `budget.steps`."""
    for field in dataclasses.fields(agent):
        value = getattr(agent, field.name)
        if field.name == "budget":
            yield from (f"budget.{kind}" for kind in agent.budget.as_dict())
        elif field.name == "permissions":
            yield from ("permissions",) if value.allow or value.deny or value.mode else ()
        elif field.name == "output_format" and agent.output_schema is not None:
            continue  # an executor that supports `output_schema` also supports JSON
        elif field.default is not dataclasses.MISSING:
            yield from (field.name,) if value != field.default else ()
        elif value or field.default_factory is dataclasses.MISSING:
            yield field.name


def permissions_beyond_reading(agent: Agent) -> Iterator[str]:
    """Describe everything the agent may do besides reading the roots with Retinue's own tools.

    Only the user may grant these permissions; the file of a cloned project may not (P6, P7).
    """
    if support_of(agent.executor).starts_program:
        yield f"starts a program (executor {agent.executor})"
    reading_tools = (*READ_ONLY.tools, *DEFAULT_LOCAL_TOOLS)
    if agent.tools is None:
        yield "may call every tool"
    elif more := sorted(set(agent.tools) - set(restrict_to(agent.tools, reading_tools))):
        yield "has tools that do more than read: " + ", ".join(more)
    if agent.mcp_servers:
        yield "uses its own MCP servers"
    if agent.permissions != NO_PERMISSIONS:
        yield "changes permissions"
    if agent.env:
        yield "reads environment variables"
    if agent.folders or agent.settings:
        yield "may reach files outside its folder"
    if agent.acceptance:
        yield "runs commands after its runs"
    if agent.spawns:
        yield "starts further agents"
