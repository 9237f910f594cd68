"""The `runs` group: shows, waits for, answers and cancels runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from retinue.core import counted
from retinue.server.core_tools import READ_ONLY, RequestService, ToolContext, ToolResponse, report_progress
from retinue.server.elicitation import HostElicitation, RecentQuestions
from retinue.service import Service

StreamsArgument = Literal["all", "stdout", "stderr", "event", "result"]


async def check_subagent_status(runId: str, service: RequestService) -> dict[str, Any]:
    return service.runs.status(runId)


async def get_subagent_logs(
    runId: str,
    service: RequestService,
    stream: StreamsArgument = "all",
    cursor: Annotated[
        int | None, Field(description="Continue from here; 0: the beginning; default: the end.")
    ] = None,
    tokens: int | None = None,
) -> dict[str, Any]:
    return service.runs.logs(runId, stream=stream, cursor=cursor, tokens=tokens)


async def list_runs(service: RequestService, active: bool = False, limit: int = 20) -> dict[str, Any]:
    return service.runs.list(active=active, limit=limit)


async def cancel_run(runId: str, service: RequestService) -> dict[str, Any]:
    return await service.runs.cancel_and_wait(runId)


async def reply_subagent(runId: str, messageId: str, answer: str, service: RequestService) -> dict[str, Any]:
    return await service.runs.reply(runId, messageId, answer)


async def update_subagent_status(
    runId: str,
    status: Literal["running", "success", "error"],
    service: RequestService,
    summary: str | None = None,
) -> dict[str, Any]:
    return await service.runs.decide_status(runId, status, summary)


def register(server: MCPServer[Service], declined: RecentQuestions) -> None:
    """Add the tools of the `runs` group."""
    told = RecentQuestions()

    async def wait_for_runs(
        run_ids: list[str],
        ctx: ToolContext,
        mode: Literal["any", "all"] = "any",
        wait_s: float | None = None,
    ) -> ToolResponse:
        person = HostElicitation(ctx, declined)
        runs = ctx.request_context.lifespan_context.runs
        for message, filled in person.answers().items():
            if any(runs.is_within(message.run_id, run_id) for run_id in run_ids):
                await person.deliver(message, filled)
        async with report_progress(ctx, f"waiting for {mode} of {counted(len(run_ids), 'run')}"):
            answer = await runs.wait(run_ids, mode, wait_s, person, told)
        for view in answer["runs"]:
            for question in view.get("questions", ()):
                told.add(question["messageId"])
        return person.required or answer

    server.add_tool(
        check_subagent_status, description="A run's status, result and open questions.", annotations=READ_ONLY
    )
    server.add_tool(
        get_subagent_logs,
        description="A run's log, or its whole result (stream result), page by page.",
        annotations=READ_ONLY,
    )
    server.add_tool(
        wait_for_runs,
        description="Wait until one run (mode any) or each (all) has ended or asks. Use instead of polling.",
        annotations=READ_ONLY,
    )
    server.add_tool(list_runs, description="The newest runs.", annotations=READ_ONLY)
    server.add_tool(cancel_run, description="End a run and everything it started.")
    server.add_tool(reply_subagent, description="Answer a run's question.")
    server.add_tool(
        update_subagent_status, description="Set a run's status and summary; success and error end it."
    )
