"""The `workflows` group: runs workflows and teams, and answers their questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from retinue.core import Run, RunId
from retinue.server.core_tools import ToolContext, ToolResponse, WaitSeconds, report_progress
from retinue.server.elicitation import HostElicitation, RecentQuestions
from retinue.server.mcp_server import StartedCalls
from retinue.service import Service, parse_assignment


def register(server: MCPServer[Service], calls: StartedCalls, declined: RecentQuestions) -> None:
    """Add the tools of the `workflows` group."""
    tools = WorkflowTools(calls, declined)
    server.add_tool(
        tools.run_workflow,
        description="Run phases of agents (research, write, validate) by rule. Answers with the result, with "
        "questions for answer_question, or with run_id if it takes longer than wait_s.",
    )
    server.add_tool(
        tools.run_team, description="Run a team: agents in order, each output the next one's task."
    )
    server.add_tool(
        tools.answer_question,
        description="Answer a workflow's questions, one answer each, in order; it goes on.",
    )


class WorkflowTools:
    """Runs workflows for a host. A question ends the call, unless the person at the host answers it."""

    def __init__(self, calls: StartedCalls, declined: RecentQuestions) -> None:
        self._calls = calls
        self._declined = declined

    async def run_workflow(
        self,
        ctx: ToolContext,
        input: Annotated[
            str | dict[str, Any],
            Field(description="The task; or {feature, spec_path, relevant_files, constraints}."),
        ],
        name: str | None = None,
        spec: Annotated[
            str | dict[str, Any] | None, Field(description="A workflow instead of a name: {steps: [...]}.")
        ] = None,
        wait_s: WaitSeconds = None,
    ) -> ToolResponse:
        flows = ctx.request_context.lifespan_context.workflows
        return await self._finish(
            ctx,
            lambda: flows.start(name, parse_assignment(input), spec=spec),
            parse_assignment(input).feature,
            wait_s,
        )

    async def run_team(
        self, name: str, task: str, ctx: ToolContext, wait_s: WaitSeconds = None
    ) -> ToolResponse:
        flows = ctx.request_context.lifespan_context.workflows
        return await self._finish(
            ctx, lambda: flows.start(name, parse_assignment(task), kind="team"), task, wait_s
        )

    async def answer_question(
        self, run_id: str, answers: list[str], ctx: ToolContext, wait_s: WaitSeconds = None
    ) -> dict[str, Any]:
        flows = ctx.request_context.lifespan_context.workflows
        answered = await flows.answer(run_id, answers)
        async with report_progress(ctx, "the workflow goes on"):
            return await flows.finish(answered, wait_s)

    async def _finish(
        self, ctx: ToolContext, start: Callable[[], Awaitable[Run]], task: str, wait_s: float | None
    ) -> ToolResponse:
        """Start a workflow and wait for it.

        If the host repeats a call with answers, this waits for the workflow of the first call instead.
        """
        service = ctx.request_context.lifespan_context
        service.runs.effective_wait(wait_s)  # raises before anything is started if the value is wrong
        person = HostElicitation(ctx, self._declined)
        run_id: RunId | None = None
        for message, filled in person.answers().items():
            if (workflow := service.workflows.find_on_task(message.run_id, task)) is not None:
                run_id = workflow
                await person.deliver(message, filled)
        run_id = run_id or (await start()).id
        self._calls.remember(ctx, run_id)
        async with report_progress(ctx, "the workflow"):
            outcome = await service.workflows.finish(run_id, wait_s, person)
        return person.required or outcome
