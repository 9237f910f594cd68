"""The `child` group: the tools that the processes of a run may call, each for their own run only."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from retinue.core import USE_SKILL, PathDenied, RunId
from retinue.server.core_tools import RequestService, ToolContext, report_progress
from retinue.service import report_status

MEMORY_TOOL = "append_memory"
OwnRunId = Annotated[str | None, Field(description="May be left out: it is your own run.")]


def build_child_tools(run_id: RunId, *, has_memory: bool, has_skills: bool = False) -> list[Tool]:
    """The tools for the processes of one run. Without a memory or skills, it gets no tools for them.

    Copies the descriptions of the tools instead of building them again for each run, which takes 35 ms.
    """
    own = ChildTools(run_id)
    missing = {*(() if has_memory else (MEMORY_TOOL,)), *(() if has_skills else (USE_SKILL,))}
    return [
        tool.model_copy(update={"fn": getattr(own, tool.name)})
        for tool in _tool_templates()
        if tool.name not in missing
    ]


@cache
def _tool_templates() -> tuple[Tool, ...]:
    """The tools with their descriptions and schemas, bound to a run that does not exist."""
    template = ChildTools(RunId.new())
    return (
        Tool.from_function(
            template.ask_parent,
            description="Ask whoever started you, and wait for the answer. No polling needed.",
        ),
        Tool.from_function(
            template.check_message_status,
            description="The answer to a question that was not answered in time.",
        ),
        Tool.from_function(
            template.request_permission,
            description="Ask whoever started you whether you may make a tool call.",
            structured_output=False,  # Claude Code reads the answer as text only
        ),
        Tool.from_function(
            template.update_subagent_status, description="Report your progress, or that you failed."
        ),
        Tool.from_function(
            template.append_memory, description="Note a short fact for your later runs. No secrets."
        ),
        Tool.from_function(template.use_skill, description="Read a skill: how a kind of task is done here."),
    )


class ChildTools:
    """The tools of one run. They refuse the id of any other run."""

    def __init__(self, run_id: RunId) -> None:
        self._run_id = run_id

    async def ask_parent(
        self,
        question: str,
        service: RequestService,
        ctx: ToolContext,
        runId: OwnRunId = None,
        wait_s: float | None = None,
    ) -> dict[str, Any]:
        self._check_own(runId)
        async with report_progress(ctx, "waiting for the answer"):
            return await service.runs.ask_parent(self._run_id, question, wait_s)

    async def check_message_status(
        self, messageId: str, service: RequestService, runId: OwnRunId = None, wait_s: float | None = None
    ) -> dict[str, Any]:
        self._check_own(runId)
        return await service.runs.check_message(self._run_id, messageId, wait_s)

    async def update_subagent_status(
        self,
        status: Literal["running", "success", "error"],
        service: RequestService,
        runId: OwnRunId = None,
        summary: str | None = None,
    ) -> dict[str, Any]:
        self._check_own(runId)
        return await report_status(service.runs, self._run_id, status, summary)

    async def request_permission(
        self, tool_name: str, input: dict[str, Any], service: RequestService, tool_use_id: str | None = None
    ) -> str:
        return json.dumps(await service.runs.request_permission(self._run_id, tool_name, input))

    async def append_memory(self, note: str, service: RequestService) -> dict[str, Any]:
        return await service.runs.append_memory(self._run_id, note)

    async def use_skill(
        self, name: str, service: RequestService, file: str | None = None, first_line: int = 1
    ) -> dict[str, Any]:
        return await asyncio.to_thread(service.skills.use_in_run, self._run_id, name, file, first_line)

    def _check_own(self, run_id: str | None) -> None:
        if run_id is not None and run_id != self._run_id:
            raise PathDenied("a run may only use its own run id", hint="leave runId out")
