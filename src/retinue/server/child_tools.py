"""The `child` group: what a run's own processes may say to us, of their own run alone."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from retinue.core import PathDenied, RunId
from retinue.server.progress import signs_of_life
from retinue.server.request import RequestService
from retinue.service import Service

MEMORY = "append_memory"
OwnRun = Annotated[str | None, Field(description="May be left out: it is your own run.")]


class Speaking:
    """Speaks for one run."""

    def __init__(self, own: RunId) -> None:
        self._own = own

    async def ask_parent(
        self,
        question: str,
        service: RequestService,
        ctx: Context[Service, Any],
        runId: OwnRun = None,
        wait_s: float | None = None,
    ) -> dict[str, Any]:
        self._check_own(runId)
        async with signs_of_life(ctx, "waiting for the answer"):
            return await service.runs.ask_parent(self._own, question, wait_s)

    async def check_message_status(
        self, messageId: str, service: RequestService, runId: OwnRun = None, wait_s: float | None = None
    ) -> dict[str, Any]:
        self._check_own(runId)
        return await service.runs.check_message(self._own, messageId, wait_s)

    async def update_subagent_status(
        self,
        status: Literal["running", "success", "error"],
        service: RequestService,
        runId: OwnRun = None,
        summary: str | None = None,
    ) -> dict[str, Any]:
        self._check_own(runId)
        return await service.runs.report(self._own, status, summary)

    async def request_permission(
        self, tool_name: str, input: dict[str, Any], service: RequestService, tool_use_id: str | None = None
    ) -> str:
        return json.dumps(await service.runs.request_permission(self._own, tool_name, input))

    async def append_memory(self, note: str, service: RequestService) -> dict[str, Any]:
        return await service.runs.append_memory(self._own, note)

    def _check_own(self, given: str | None) -> None:
        if given is not None and given != self._own:
            raise PathDenied("a run can only speak for itself", hint="leave runId out")


def tools_of(own: RunId, *, remembers: bool) -> list[Tool]:
    """The tools of one run. Each run has a server of its own, and to describe them anew takes 35 ms.

    `append_memory` is for agents that keep a memory, and for nobody else to see.
    """
    speaking = Speaking(own)
    return [
        tool.model_copy(update={"fn": getattr(speaking, tool.name)})
        for tool in _described()
        if remembers or tool.name != MEMORY
    ]


@cache
def _described() -> tuple[Tool, ...]:
    """The same for every run; these speak for one that never was."""
    nobody = Speaking(RunId.new())
    return (
        Tool.from_function(
            nobody.ask_parent,
            description="Ask whoever started you, and wait for the answer. No polling needed.",
        ),
        Tool.from_function(
            nobody.check_message_status,
            description="The answer to a question that was not answered in time.",
        ),
        Tool.from_function(
            nobody.request_permission,
            description="Whether you may make a call; asked of whoever started you.",
            structured_output=False,  # Claude Code takes its answers as text alone
        ),
        Tool.from_function(
            nobody.update_subagent_status, description="Say how far you are, or that you failed."
        ),
        Tool.from_function(
            nobody.append_memory, description="Note a short fact for your later runs. No secrets."
        ),
    )
