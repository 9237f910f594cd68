"""The `agents` group: lists agents and runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mcp.server.mcpserver import MCPServer
from mcp_types import InputRequiredResult

from retinue.core import RetinueError, RunId
from retinue.server.core_tools import (
    READ_ONLY,
    RequestService,
    ToolContext,
    ToolResponse,
    WaitSeconds,
    answer_of_run,
    report_progress,
)
from retinue.server.elicitation import HostElicitation, RecentQuestions
from retinue.server.icons import icons
from retinue.server.mcp_server import StartedCalls
from retinue.server.tasks import QUICK_RESULT_S, supports_tasks
from retinue.service import Delegation, Service


def register(
    server: MCPServer[Service],
    calls: StartedCalls,
    declined: RecentQuestions,
    parent: RunId | None = None,
    own_tools: Mapping[str, str] = {},
) -> None:
    """Add the tools of the group, and one for each agent in `own_tools`, which has their descriptions."""
    tools = AgentTools(calls, declined, parent)
    server.add_tool(
        tools.list_agents,
        title="List agents",
        description="The agents that run_subagent can run, and why some cannot run now.",
        annotations=READ_ONLY,
        icons=icons("agents"),
    )
    server.add_tool(
        tools.run_subagent,
        title="Run a subagent",
        description="Give a named agent a task in a process of its own: for work with its own model, tools "
        "or permissions. It knows only the prompt. For questions about code, research_codebase is quicker.",
        icons=icons("agents"),
    )
    server.add_tool(
        tools.spawn_agent,
        title="Spawn an agent",
        description="Run an agent like run_subagent, for callers that are small models: always answers with "
        "output, steps, tokens and, after a failure, error. Otherwise use run_subagent.",
        icons=icons("agents"),
    )
    if parent is not None:  # a host has the tool of the group `runs`
        _register_wait(server, parent)
    for name, about in own_tools.items():
        _register_agent(server, tools, name, about)


def _register_wait(server: MCPServer[Service], parent: RunId) -> None:
    """Add `wait_for_runs` for a run, which may wait for its own children only."""

    async def wait_for_runs(
        run_ids: list[str], service: RequestService, ctx: ToolContext, wait_s: WaitSeconds = None
    ) -> dict[str, Any]:
        async with report_progress(ctx, "waiting for runs"):
            return await Delegation(service.runs, parent).wait(run_ids, wait_s)

    server.add_tool(
        wait_for_runs,
        description="Wait until all runs that you name, and have started, have ended. Returns their results.",
        annotations=READ_ONLY,
    )


def agent_tool_name(agent_name: str) -> str:
    """The name of the tool that runs this agent only."""
    return f"run_subagent_{agent_name}"


def _register_agent(server: MCPServer[Service], tools: AgentTools, name: str, about: str) -> None:
    async def run_this_subagent(
        prompt: str, ctx: ToolContext, context: str | None = None, wait_s: WaitSeconds = None
    ) -> ToolResponse:
        return await tools.run_subagent(name, prompt, ctx, context, wait_s)

    server.add_tool(
        run_this_subagent,
        name=agent_tool_name(name),
        title=f"Run {name}",
        description=f"Give the agent {name} a task. It knows only the prompt. {about}".rstrip(),
        icons=icons("agents"),
    )


class _Performed(NamedTuple):
    """A run after waiting for it."""

    run_id: RunId
    outcome: dict[str, Any]
    required: InputRequiredResult | None
    """What the call must return instead, so that the host asks its person."""


class AgentTools:
    """Runs agents for a host, or for a run that may start runs: these become its children."""

    def __init__(self, calls: StartedCalls, declined: RecentQuestions, parent: RunId | None) -> None:
        self._calls = calls
        self._declined = declined
        self._parent = parent

    async def list_agents(self, service: RequestService) -> dict[str, Any]:
        return service.agents.list_callable(service.runs.caller(self._parent))

    async def run_subagent(
        self,
        agent_name: str,
        prompt: str,
        ctx: ToolContext,
        context: str | None = None,
        wait_s: WaitSeconds = None,
    ) -> ToolResponse:
        as_task = self._parent is None and supports_tasks(ctx.request_context)
        if as_task and wait_s is None:
            wait_s = QUICK_RESULT_S
        performed = await self._perform(ctx, agent_name, prompt, context, wait_s, as_task=as_task)
        return performed.required or answer_of_run(performed.outcome)

    async def spawn_agent(
        self, agent: str, task: str, ctx: ToolContext, wait_s: WaitSeconds = None
    ) -> ToolResponse:
        """Answer in the same shape on success and failure: small models cannot handle tool errors."""
        try:
            performed = await self._perform(ctx, agent, task, None, wait_s)
        except RetinueError as error:
            return {"output": "", "steps": 0, "tokens": 0, "error": error.as_dict()}
        runs = ctx.request_context.lifespan_context.runs
        return performed.required or runs.spawn_result(performed.run_id)

    async def _perform(
        self,
        ctx: ToolContext,
        name: str,
        prompt: str,
        context: str | None,
        wait_s: float | None,
        *,
        as_task: bool = False,
    ) -> _Performed:
        """Start a run and wait until it has ended or asks, or until the time is over.

        If the host repeats a call with answers, this waits for the run of the first call instead.
        """
        runs = ctx.request_context.lifespan_context.runs
        # A run has no person to ask, and a task puts its questions to the host itself.
        person = HostElicitation(ctx, self._declined, is_allowed=self._parent is None and not as_task)
        patience_s = runs.effective_wait(wait_s)
        run_id = None
        for message, filled in person.answers().items():
            if (found := runs.find_on_task(message.run_id, name, prompt, context)) is not None:
                run_id = found
                await person.deliver(message, filled)
        if run_id is None:
            await runs.agents.survey(name)
            run_id = (await runs.start(name, prompt, context, parent=self._parent)).id
        self._calls.remember(ctx, run_id)
        async with report_progress(ctx, name, lambda: runs.doing([run_id])):
            # A run cannot answer questions. Those of its children reach whoever waits for the first run.
            past_questions = self._parent is not None
            outcome = await runs.finish(run_id, patience_s, person, past_questions=past_questions)
        return _Performed(run_id, outcome, person.required)
