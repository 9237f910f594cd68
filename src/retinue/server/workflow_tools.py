"""The `workflows` group: runs workflows and teams, and answers their questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from retinue.core import Run, RunId
from retinue.server.core_tools import (
    READ_ONLY,
    ToolContext,
    ToolResponse,
    WaitSeconds,
    answer_of_run,
    report_progress,
)
from retinue.server.elicitation import HostElicitation, RecentQuestions
from retinue.server.icons import icons
from retinue.server.mcp_server import StartedCalls
from retinue.service import Service, parse_assignment


def register(server: MCPServer[Service], calls: StartedCalls, declined: RecentQuestions) -> None:
    """Add the tools of the `workflows` group."""
    tools = WorkflowTools(calls, declined)

    def add(
        tool: Callable[..., Any], title: str, description: str, annotations: ToolAnnotations | None = None
    ) -> None:
        server.add_tool(
            tool, title=title, description=description, annotations=annotations, icons=icons("workflows")
        )

    add(
        tools.list_workflows,
        "List workflows and teams",
        "The workflows that run_workflow can run and the teams that run_team can run.",
        READ_ONLY,
    )
    add(
        tools.run_workflow,
        "Run a workflow",
        "Run phases of agents by rule (research, write, validate), with checks between them. For one agent, "
        "use run_subagent. Answers with the result, or with questions for answer_question.",
    )
    add(
        tools.run_team,
        "Run a team",
        "Run a team: agents in a fixed order, each output the next one's task. For phases with checks and "
        "retries, use run_workflow.",
    )
    add(
        tools.answer_question,
        "Answer a workflow",
        "Answer the questions of a workflow or team, one answer each, in order; it goes on. For a single "
        "run, use reply_subagent.",
    )


class WorkflowTools:
    """Runs workflows for a host. A question ends the call, unless the person at the host answers it."""

    def __init__(self, calls: StartedCalls, declined: RecentQuestions) -> None:
        self._calls = calls
        self._declined = declined

    async def list_workflows(self, ctx: ToolContext) -> dict[str, Any]:
        return ctx.request_context.lifespan_context.workflows.list_for_host()

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
    ) -> ToolResponse:
        flows = ctx.request_context.lifespan_context.workflows
        answered = await flows.answer(run_id, answers)
        async with report_progress(ctx, "the workflow goes on", lambda: flows.runs.doing([answered])):
            return answer_of_run(await flows.finish(answered, wait_s))

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
        async with report_progress(ctx, "the workflow", lambda: service.runs.doing([run_id])):
            outcome = await service.workflows.finish(run_id, wait_s, person)
        return person.required or answer_of_run(outcome)
