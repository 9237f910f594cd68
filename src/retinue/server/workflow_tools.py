"""The `workflows` group: running workflows and teams, and answering what they ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult
from pydantic import Field

from retinue.core import Run, RunId
from retinue.server.elicitation import Person, Refusals
from retinue.server.progress import StartedCalls, signs_of_life
from retinue.service import Service, parse_assignment

Ctx = Context[Service, Any]
Answer = dict[str, Any] | InputRequiredResult
WaitS = Annotated[float | None, Field(description="Seconds to wait; then a handle is returned.")]


class Working:
    """Runs workflows for a host. A question ends the call, unless the person at the host answers it."""

    def __init__(self, calls: StartedCalls, refused: Refusals) -> None:
        self._calls = calls
        self._refused = refused

    async def run_workflow(
        self,
        ctx: Ctx,
        input: Annotated[
            str | dict[str, Any],
            Field(description="What is to be done; or {feature, spec_path, relevant_files, constraints}."),
        ],
        name: str | None = None,
        spec: Annotated[
            str | dict[str, Any] | None, Field(description="A workflow in place of a name: {steps: [...]}.")
        ] = None,
        wait_s: WaitS = None,
    ) -> Answer:
        flows = ctx.request_context.lifespan_context.workflows
        return await self._finish(
            ctx,
            lambda: flows.start(name, parse_assignment(input), spec=spec),
            parse_assignment(input).feature,
            wait_s,
        )

    async def run_team(self, name: str, task: str, ctx: Ctx, wait_s: WaitS = None) -> Answer:
        flows = ctx.request_context.lifespan_context.workflows
        return await self._finish(
            ctx, lambda: flows.start(name, parse_assignment(task), kind="team"), task, wait_s
        )

    async def answer_question(
        self, run_id: str, answers: list[str], ctx: Ctx, wait_s: WaitS = None
    ) -> dict[str, Any]:
        flows = ctx.request_context.lifespan_context.workflows
        answered = await flows.answer(run_id, answers)
        async with signs_of_life(ctx, "the workflow goes on"):
            return await flows.finish(answered, wait_s)

    async def _finish(
        self, ctx: Ctx, start: Callable[[], Awaitable[Run]], task: str, wait_s: float | None
    ) -> Answer:
        """The host's person is asked first, if the user wants that; then the call ends with the question."""
        service = ctx.request_context.lifespan_context
        service.runs.effective_wait(wait_s)  # refused before anything is started
        person = Person(ctx, self._refused)
        run_id: RunId | None = None
        for message, filled in person.answers().items():
            if (workflow := service.workflows.find_on_task(message.run_id, task)) is not None:
                run_id = workflow
                await person.deliver(message, filled)
        run_id = run_id or (await start()).id
        self._calls.remember(ctx, run_id)
        async with signs_of_life(ctx, "the workflow"):
            outcome = await service.workflows.finish(run_id, wait_s, person)
        return person.required or outcome


def register(server: MCPServer[Service], calls: StartedCalls, refused: Refusals) -> None:
    working = Working(calls, refused)
    server.add_tool(
        working.run_workflow,
        description="Run phases of agents (research, write, validate) by rule. Answers with the result, with "
        "questions for answer_question, or with run_id if it takes longer than wait_s.",
    )
    server.add_tool(
        working.run_team, description="Run a team: agents in order, each output the next one's task."
    )
    server.add_tool(
        working.answer_question,
        description="Answer a workflow's questions, one answer each, in order; it goes on.",
    )
