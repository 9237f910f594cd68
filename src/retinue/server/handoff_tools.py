"""Handoffs, of the `research` group: work that goes on elsewhere or later."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from retinue.server.core_tools import READ_ONLY
from retinue.server.request import RequestService
from retinue.service import Service

WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

Items = Annotated[list[str], Field(default_factory=list)]
References = Annotated[list[str], Field(default_factory=list, description="path:line; each is checked.")]
ReportIdArgument = Annotated[str | None, Field(description="Id of a report to take in.")]
Name = Annotated[str | None, Field(description="Default: the newest.")]


async def create_handoff(
    service: RequestService,
    found: Items,
    decided: Items,
    changed: Items,
    still_open: Items,
    references: References,
    question: str = "",
    summary: str = "",
    report: ReportIdArgument = None,
) -> dict[str, Any]:
    from retinue.service import HandoffDraft, create_handoff

    lists = {"found": found, "decided": decided, "changed": changed, "open": still_open}
    draft = HandoffDraft(
        question=question,
        summary=summary,
        lists={name: items for name, items in lists.items() if items},
        references=references,
        report=report,
    )
    return await create_handoff(service, draft)


async def resume_handoff(service: RequestService, name: Name = None) -> dict[str, Any]:
    from retinue.service import resume_handoff

    return await resume_handoff(service, name)


def register(server: MCPServer[Service]) -> None:
    server.add_tool(
        create_handoff,
        description="Write what was asked, found, decided, changed and is open into a Markdown file.",
        annotations=WRITES,
    )
    server.add_tool(
        resume_handoff,
        description="Read a handoff; references are marked unchanged, moved or gone.",
        annotations=READ_ONLY,
    )
