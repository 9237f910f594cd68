"""The `agents` group: who can be asked, and asking them."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult
from pydantic import Field

from retinue.core.ids import RunId
from retinue.server.core_tools import READ_ONLY
from retinue.server.patience import StartedCalls, signs_of_life
from retinue.server.person import Person, Refusals
from retinue.server.request import RequestService
from retinue.server.tasks import MOMENT_S, takes_tasks
from retinue.service.service import Service

WaitS = Annotated[
    float | None, Field(description="Seconds to wait for the result; then a handle is returned.")
]


async def list_agents(service: RequestService) -> dict[str, Any]:
    return {"agents": service.running.agents()}


def register(
    server: MCPServer[Service], calls: StartedCalls, refused: Refusals, parent: RunId | None = None
) -> None:
    """For a host, or for a run that may start runs of its own: those are its children."""

    async def run_subagent(
        agent_name: str,
        prompt: str,
        ctx: Context[Service, Any],
        context: str | None = None,
        wait_s: WaitS = None,
    ) -> dict[str, Any] | InputRequiredResult:
        runs = ctx.request_context.lifespan_context.running
        as_task = parent is None and takes_tasks(ctx.request_context)
        # Behind a run there is no person, and a task asks for itself.
        person = Person(ctx, refused, may_be_asked=parent is None and not as_task)
        if as_task and wait_s is None:
            wait_s = MOMENT_S
        patience_s = runs.patience(wait_s)
        run_id = None
        for message, filled in person.answers().items():
            if runs.is_of(message.run_id, agent_name, prompt, context):
                run_id = message.run_id
                person.deliver(message, filled)
        if run_id is None:
            run_id = runs.start(agent_name, prompt, context, parent=parent).id
        calls.remember(ctx, run_id)
        async with signs_of_life(ctx, agent_name):
            outcome = await runs.finish(run_id, patience_s, person)
        return person.required or outcome

    server.add_tool(list_agents, description="The agents that can be asked.", annotations=READ_ONLY)
    server.add_tool(
        run_subagent,
        description="Give an agent a task in a process of its own. Answers with its result, or with run_id "
        "if it takes longer than wait_s.",
    )
