"""The `agents` group: who can be asked, and asking them."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from retinue.core.ids import RunId
from retinue.server.core_tools import READ_ONLY
from retinue.server.patience import StartedCalls, signs_of_life
from retinue.server.request import RequestService
from retinue.service.service import Service

WaitS = Annotated[
    float | None, Field(description="Seconds to wait for the result; then a handle is returned.")
]


async def list_agents(service: RequestService) -> dict[str, Any]:
    return {"agents": service.running.agents()}


def register(server: MCPServer[Service], calls: StartedCalls, parent: RunId | None = None) -> None:
    """For a host, or for a run that may start runs of its own: those are its children."""

    async def run_subagent(
        agent_name: str,
        prompt: str,
        service: RequestService,
        ctx: Context[Service, Any],
        context: str | None = None,
        wait_s: WaitS = None,
    ) -> dict[str, Any]:
        async with signs_of_life(ctx, agent_name):
            return await service.running.run_agent(
                agent_name,
                prompt,
                context,
                wait_s=wait_s,
                parent=parent,
                started=lambda run_id: calls.remember(ctx, run_id),
            )

    server.add_tool(list_agents, description="The agents that can be asked.", annotations=READ_ONLY)
    server.add_tool(
        run_subagent,
        description="Give an agent a task in a process of its own. Answers with its result, or with run_id "
        "if it takes longer than wait_s.",
    )
