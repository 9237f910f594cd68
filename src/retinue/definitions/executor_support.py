"""Finds the fields of an agent that its executor does not support, and what it may do beyond reading.

An agent that sets an unsupported field is refused, not run without it (P7): silently ignoring a sandbox or a
permission would be worse than not running the agent. `core/executors.py` lists what each executor supports.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from retinue.core import EXECUTORS, NO_PERMISSIONS, USE_SKILL, Agent, ExecutorTable, find_executor
from retinue.definitions.profiles import DEFAULT_LOCAL_TOOLS, READ_ONLY
from retinue.definitions.tool_rules import canonical_tool, restrict_to

SUPPORTED_BY_ALL = frozenset(
    {
        *("name", "description", "executor", "source", "untrusted_tools", "keep_changes"),
        *("timeout_s", "spawns", "allowed_callers", "fallback", "budget.wall_ms"),
    }
)
"""Fields that the runtime enforces for every run, whatever its executor."""

KEY_IN_FILE = {
    "denied_tools": "disallowed_tools",
    "prompt_mode": "system_prompt",
    "budget.cost_micros": "max_cost_usd",
}
"""The key in an agent's file for each field whose name differs."""


def unsupported_fields(agent: Agent, executors: ExecutorTable = EXECUTORS) -> tuple[str, ...]:
    """Return the keys that the agent sets but its executor does not support, as written in its file."""
    kind = find_executor(agent.executor, executors)
    supported = SUPPORTED_BY_ALL | kind.fields
    if agent.container:
        supported |= kind.fields_in_container
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


def grants_in_worktree(agent: Agent, *, sandboxed: bool) -> tuple[str, ...]:
    """Return the rules for what the agent may do in a worktree without asking, because it lists these tools.

    It may edit files of the worktree, which nobody else uses and nothing merges. It may run commands only in
    a sandbox, because nothing else keeps a command in the worktree. `permissions.deny` still wins.
    """
    if agent.isolation != "worktree" or agent.tools is None:
        return ()
    edits = restrict_to(agent.tools, ("Edit", "Write", "NotebookEdit"))
    runs = restrict_to(agent.tools, ("Bash",)) if sandboxed else ()
    # A rule such as `Bash(git:*)` in the list of tools grants no more than it says.
    listed = [tool for tool in (*edits, *runs) if "(" in tool]
    whole = {canonical_tool(tool) for tool in (*edits, *runs) if "(" not in tool}
    rules = ["Bash"] if "bash" in whole else []
    if whole - {"bash"}:
        rules.append("Edit(**)")
    return (*rules, *listed)


def permissions_beyond_reading(agent: Agent, executors: ExecutorTable = EXECUTORS) -> Iterator[str]:
    """Describe everything the agent may do besides reading the roots with Retinue's own tools.

    Only the user may grant these permissions; the file of a cloned project may not (P6, P7).
    """
    if find_executor(agent.executor, executors).starts_program:
        yield f"starts a program (executor {agent.executor})"
    reading_tools = (*READ_ONLY.tools, *DEFAULT_LOCAL_TOOLS, USE_SKILL)
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
    if agent.worktree_setup or agent.worktree_copy:
        yield "runs commands or copies files before its runs"
    if agent.spawns:
        yield "starts further agents"
    if agent.fallback != "never":
        yield "falls back to other agents"
