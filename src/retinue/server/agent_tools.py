"""The `agents` group: who can be asked, and asking them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult
from pydantic import Field

from retinue.core import RetinueError, RunId
from retinue.server.core_tools import READ_ONLY
from retinue.server.elicitation import Person, Refusals
from retinue.server.progress import StartedCalls, signs_of_life
from retinue.server.request import RequestService
from retinue.server.tasks import MOMENT_S, takes_tasks
from retinue.service import Service

WaitS = Annotated[
    float | None, Field(description="Seconds to wait for the result; then a handle is returned.")
]
Answer = dict[str, Any] | InputRequiredResult
Ctx = Context[Service, Any]


def tool_of(agent_name: str) -> str:
    """The tool that asks this agent alone."""
    return f"run_subagent_{agent_name}"


class Asking:
    """Gives agents tasks for a host, or for a run that may start runs of its own: those are its children."""

    def __init__(self, calls: StartedCalls, refused: Refusals, parent: RunId | None) -> None:
        self._calls = calls
        self._refused = refused
        self._parent = parent

    async def list_agents(self, service: RequestService) -> dict[str, Any]:
        return service.agents.list_callable(service.runs.caller(self._parent))

    async def run_subagent(
        self,
        agent_name: str,
        prompt: str,
        ctx: Ctx,
        context: str | None = None,
        wait_s: WaitS = None,
    ) -> Answer:
        as_task = self._parent is None and takes_tasks(ctx.request_context)
        if as_task and wait_s is None:
            wait_s = MOMENT_S
        run_id, required = await self._perform(ctx, agent_name, prompt, context, wait_s, as_task=as_task)
        return required or ctx.request_context.lifespan_context.runs.outcome(run_id)

    async def spawn_agent(self, agent: str, task: str, ctx: Ctx) -> Answer:
        """Whatever happens is an answer of one shape: a small model has no way with failures of tools."""
        try:
            run_id, required = await self._perform(ctx, agent, task, None, None)
        except RetinueError as error:
            return {"output": "", "steps": 0, "tokens": 0, "error": error.as_dict()}
        return required or ctx.request_context.lifespan_context.runs.spawn_result(run_id)

    async def _perform(
        self,
        ctx: Ctx,
        name: str,
        prompt: str,
        context: str | None,
        wait_s: float | None,
        *,
        as_task: bool = False,
    ) -> tuple[RunId, InputRequiredResult | None]:
        """A run that has ended or asks, or has had its time; and what the host must ask its person first."""
        runs = ctx.request_context.lifespan_context.runs
        # Behind a run there is no person, and a task asks for itself.
        person = Person(ctx, self._refused, may_be_asked=self._parent is None and not as_task)
        patience_s = runs.effective_wait(wait_s)
        run_id = None
        for message, filled in person.answers().items():
            if runs.performs(message.run_id, name, prompt, context):
                run_id = message.run_id
                await person.deliver(message, filled)
        if run_id is None:
            await runs.agents.survey(name)
            run_id = (await runs.start(name, prompt, context, parent=self._parent)).id
        self._calls.remember(ctx, run_id)
        async with signs_of_life(ctx, name):
            await runs.finish(run_id, patience_s, person)
        return run_id, person.required


def register(
    server: MCPServer[Service],
    calls: StartedCalls,
    refused: Refusals,
    parent: RunId | None = None,
    tools_for: Iterable[str] = (),
) -> None:
    """`tools_for` names agents that get a tool of their own."""
    asking = Asking(calls, refused, parent)
    server.add_tool(asking.list_agents, description="The agents that can be asked.", annotations=READ_ONLY)
    server.add_tool(
        asking.run_subagent,
        description="Give an agent a task in a process of its own. Answers with its result, or with run_id "
        "if it takes longer than wait_s.",
    )
    server.add_tool(
        asking.spawn_agent,
        description="The same for small models: answers with output, steps, tokens, error.",
    )
    for name in tools_for:
        _register_one(server, asking, name)


def _register_one(server: MCPServer[Service], asking: Asking, name: str) -> None:
    async def run_this_subagent(
        prompt: str, ctx: Ctx, context: str | None = None, wait_s: WaitS = None
    ) -> Answer:
        return await asking.run_subagent(name, prompt, ctx, context, wait_s)

    server.add_tool(run_this_subagent, name=tool_of(name), description=f"run_subagent for the agent {name}.")
