"""The `research` group: answers questions about a codebase, and writes and reads handoff documents.

The functions of the service are imported by the first call: they load the research roles, which takes a tenth
of the start-up time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from retinue.server.core_tools import READ_ONLY, WRITES, RequestService, ToolContext, report_progress
from retinue.server.mcp_server import StartedCalls
from retinue.service import Service

if TYPE_CHECKING:
    from retinue.service import ResearchRequest, ResearchVerb

RootsArgument = Annotated[
    list[str] | None, Field(description="Roots or folders inside them; default: all roots.")
]
AlsoArgument = Annotated[
    list[str] | None,
    Field(description="2-4 identifiers or words that the code probably uses, e.g. csrf, CsrfMiddleware."),
]
ConstraintsArgument = Annotated[
    dict[str, int] | None,
    Field(description="tokens, deadlineMs, maxFilesRead, maxBytesRead, useIndex (0 or 1)."),
]
LimitArgument = Annotated[int, Field(description="Maximum number of places.")]
PreviousArgument = Annotated[
    str | None,
    Field(description="Id of an earlier report to refine; with an empty question, to see in full."),
]
ArtifactArgument = Annotated[bool, Field(description="Also write a Markdown memo.")]
WebArgument = Annotated[bool, Field(description="Also look at pages of the web.")]
ItemsArgument = Annotated[list[str], Field(default_factory=list)]
ReferencesArgument = Annotated[
    list[str], Field(default_factory=list, description="path:line; each is checked.")
]
ReportIdArgument = Annotated[str | None, Field(description="Id of a report to include.")]
HandoffNameArgument = Annotated[str | None, Field(description="Default: the newest.")]


def register(server: MCPServer[Service], calls: StartedCalls, *, web: bool = False) -> None:
    """Add the tools of the `research` group. With `web`, research can be asked to look at the web, too."""
    tools = ResearchTools(calls)
    server.add_tool(
        tools.research_code_and_web if web else tools.research_codebase,
        name="research_codebase",
        description="Answers a question about code, with checked references. Put likely names in `also`.",
        annotations=WRITES,
    )
    server.add_tool(
        tools.locate_in_codebase,
        description="Where something is in the code: places, best first, with symbol and line of code.",
        annotations=READ_ONLY,
    )
    server.add_tool(
        tools.analyze_component,
        description="How a component works, who calls it, or what configures it.",
        annotations=READ_ONLY,
    )
    server.add_tool(
        tools.find_patterns,
        description="2-6 distinct examples of how something is done, with short snippets.",
        annotations=READ_ONLY,
    )
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


class ResearchTools:
    """Answers questions, each within a run."""

    def __init__(self, calls: StartedCalls) -> None:
        self._calls = calls

    async def research_codebase(
        self,
        service: RequestService,
        ctx: ToolContext,
        question: str,
        also: AlsoArgument = None,
        roots: RootsArgument = None,
        constraints: ConstraintsArgument = None,
        artifact: ArtifactArgument = False,
        previous: PreviousArgument = None,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, research_codebase

        request = ResearchRequest(
            question=question,
            also=also or (),
            roots=roots or (),
            constraints=constraints or {},
            artifact=artifact,
            previous=previous,
        )
        return await self._answer(ctx, service, research_codebase, request)

    async def research_code_and_web(
        self,
        service: RequestService,
        ctx: ToolContext,
        question: str,
        also: AlsoArgument = None,
        roots: RootsArgument = None,
        constraints: ConstraintsArgument = None,
        artifact: ArtifactArgument = False,
        previous: PreviousArgument = None,
        web: WebArgument = False,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, research_codebase

        request = ResearchRequest(
            question=question,
            also=also or (),
            roots=roots or (),
            constraints=constraints or {},
            artifact=artifact,
            previous=previous,
            web=web,
        )
        return await self._answer(ctx, service, research_codebase, request)

    async def locate_in_codebase(
        self,
        service: RequestService,
        ctx: ToolContext,
        question: str,
        also: AlsoArgument = None,
        roots: RootsArgument = None,
        constraints: ConstraintsArgument = None,
        limit: LimitArgument = 20,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, locate_in_codebase

        request = ResearchRequest(
            question=question,
            also=also or (),
            roots=roots or (),
            constraints=constraints or {},
            limit=limit,
        )
        return await self._answer(ctx, service, locate_in_codebase, request)

    async def analyze_component(
        self,
        service: RequestService,
        ctx: ToolContext,
        question: str,
        also: AlsoArgument = None,
        roots: RootsArgument = None,
        constraints: ConstraintsArgument = None,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, analyze_component

        request = ResearchRequest(
            question=question, also=also or (), roots=roots or (), constraints=constraints or {}
        )
        return await self._answer(ctx, service, analyze_component, request)

    async def find_patterns(
        self,
        service: RequestService,
        ctx: ToolContext,
        question: str,
        also: AlsoArgument = None,
        roots: RootsArgument = None,
        constraints: ConstraintsArgument = None,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, find_patterns

        request = ResearchRequest(
            question=question, also=also or (), roots=roots or (), constraints=constraints or {}
        )
        return await self._answer(ctx, service, find_patterns, request)

    async def _answer(
        self, ctx: ToolContext, service: Service, verb: ResearchVerb, request: ResearchRequest
    ) -> dict[str, object]:
        """Call a function of the service. Remembers its run, so that the host can cancel it."""
        async with report_progress(ctx, "research"):
            return await verb(service, request, lambda run_id: self._calls.remember(ctx, run_id))


async def create_handoff(
    service: RequestService,
    found: ItemsArgument,
    decided: ItemsArgument,
    changed: ItemsArgument,
    still_open: ItemsArgument,
    references: ReferencesArgument,
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


async def resume_handoff(service: RequestService, name: HandoffNameArgument = None) -> dict[str, Any]:
    from retinue.service import resume_handoff

    return await resume_handoff(service, name)
