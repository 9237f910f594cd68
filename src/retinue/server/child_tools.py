"""The `child` group: what a run's own processes may say to us, of their own run alone."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from retinue.core.errors import PathDenied
from retinue.core.ids import RunId
from retinue.server.patience import signs_of_life
from retinue.server.request import RequestService
from retinue.service.service import Service

OwnRun = Annotated[str | None, Field(description="May be left out: it is your own run.")]


def register(server: MCPServer[Service], own: RunId, *, remembers: bool) -> None:
    """`append_memory` is for agents that keep a memory, and for nobody else to see."""

    def check_own(given: str | None) -> None:
        if given is not None and given != own:
            raise PathDenied("a run can only speak for itself", hint="leave runId out")

    async def ask_parent(
        question: str,
        service: RequestService,
        ctx: Context[Service, Any],
        runId: OwnRun = None,
        wait_s: float | None = None,
    ) -> dict[str, Any]:
        check_own(runId)
        async with signs_of_life(ctx, "waiting for the answer"):
            return await service.running.ask_parent(own, question, wait_s)

    async def check_message_status(
        messageId: str, service: RequestService, runId: OwnRun = None, wait_s: float | None = None
    ) -> dict[str, Any]:
        check_own(runId)
        return await service.running.check_message(own, messageId, wait_s)

    async def update_subagent_status(
        status: Literal["running", "success", "error"],
        service: RequestService,
        runId: OwnRun = None,
        summary: str | None = None,
    ) -> dict[str, Any]:
        check_own(runId)
        return service.running.report(own, status, summary)

    async def request_permission(
        tool_name: str, input: dict[str, Any], service: RequestService, tool_use_id: str | None = None
    ) -> str:
        return json.dumps(await service.running.request_permission(own, tool_name, input))

    async def append_memory(note: str, service: RequestService) -> dict[str, Any]:
        return await service.running.append_memory(own, note)

    server.add_tool(
        ask_parent, description="Ask whoever started you, and wait for the answer. No polling needed."
    )
    server.add_tool(
        check_message_status, description="The answer to a question that was not answered in time."
    )
    server.add_tool(
        request_permission,
        description="Whether you may make a call; asked of whoever started you.",
        structured_output=False,  # Claude Code takes its answers as text alone
    )
    server.add_tool(update_subagent_status, description="Say how far you are, or that you failed.")
    if remembers:
        server.add_tool(append_memory, description="Note a short fact for your later runs. No secrets.")
