"""What an agent asks for that only its user may grant: a cloned project's file is not the user (P6, P7)."""

from __future__ import annotations

from collections.abc import Iterator

from retinue.core import EXECUTORS, NO_PERMISSIONS, Agent, ExecutorTable
from retinue.definitions.profiles import READ_ONLY, READING
from retinue.definitions.tool_rules import within


def permissions_beyond_reading(agent: Agent, executors: ExecutorTable = EXECUTORS) -> Iterator[str]:
    """Everything that is more than reading the roots with our own tools, in words."""
    if agent.executor not in executors or executors[agent.executor].starts_program:
        yield f"starts a program (executor {agent.executor})"
    harmless = (*READ_ONLY.tools, *READING)
    if agent.tools is None:
        yield "may call every tool"
    elif more := sorted(set(agent.tools) - set(within(agent.tools, harmless))):
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
