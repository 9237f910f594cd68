"""The `runs` group: shows, waits for, answers and cancels runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from retinue.core import counted
from retinue.server.core_tools import READ_ONLY, RequestService, ToolContext, ToolResponse, report_progress
from retinue.server.elicitation import HostElicitation, RecentQuestions
from retinue.server.icons import icons
from retinue.service import Service, decide_status, read_log

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
    return read_log(service.runs, runId, stream=stream, cursor=cursor, tokens=tokens)


async def list_runs(
    service: RequestService,
    active: Annotated[bool, Field(description="Only runs that have not ended.")] = False,
    limit: int = 20,
    children: Annotated[bool, Field(description="Also the runs that runs started.")] = False,
) -> dict[str, Any]:
    return service.runs.list(active=active, limit=limit, children=children)


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
    return await decide_status(service.runs, runId, status, summary)


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
        run_ids = [runs.find_id(run_id) for run_id in run_ids]
        for message, filled in person.answers().items():
            if any(runs.is_within(message.run_id, run_id) for run_id in run_ids):
                await person.deliver(message, filled)
        waiting = f"waiting for {mode} of {counted(len(run_ids), 'run')}"
        async with report_progress(ctx, waiting, lambda: runs.doing(run_ids)):
            answer = await runs.wait(run_ids, mode, wait_s, person, told)
        if person.required is not None:
            return person.required  # the host asks the person first, so the model is not told yet
        for view in answer["runs"]:
            for question in view.get("questions", ()):
                told.add(question["messageId"])
        return answer

    def add(tool: Callable[..., Any], title: str, description: str, *, reads: bool = False) -> None:
        annotations = READ_ONLY if reads else None
        server.add_tool(
            tool, title=title, description=description, annotations=annotations, icons=icons("runs")
        )

    add(
        check_subagent_status,
        "Check a run",
        "One run's status, result, limits and open questions, now. To wait for its end, use wait_for_runs.",
        reads=True,
    )
    add(
        get_subagent_logs,
        "Read a run's log",
        "One run's output, or with stream=result its whole result, page by page.",
        reads=True,
    )
    add(
        wait_for_runs,
        "Wait for runs",
        "Wait until one run (mode any) or each (all) has ended or asks something. Use it instead of polling.",
        reads=True,
    )
    add(
        list_runs,
        "List runs",
        "The newest runs, one row for each request, to find a run_id.",
        reads=True,
    )
    add(cancel_run, "Cancel a run", "End a run and everything that it started.")
    add(reply_subagent, "Answer a run", "Answer a question that a run asks; the run goes on.")
    add(
        update_subagent_status,
        "Set a run's status",
        "Set a run's summary, or decide its status: success and error end the run. To end it without a "
        "verdict, use cancel_run.",
    )
