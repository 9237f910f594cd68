"""The `research` group: answers questions about a codebase, and writes and reads handoff documents.

The functions of the service are imported by the first call: they load the research roles, which takes a tenth
of the start-up time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from retinue.core import RunId
from retinue.server.core_tools import READ_ONLY, WRITES, RequestService, ToolContext, report_progress
from retinue.server.icons import icons
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
HandoffQuestionArgument = Annotated[str, Field(description="What was asked; or include a report.")]
ReportIdArgument = Annotated[str | None, Field(description="Id of a report to include.")]
HandoffNameArgument = Annotated[str | None, Field(description="Default: the newest.")]


def register(server: MCPServer[Service], calls: StartedCalls, *, web: bool = False) -> None:
    """Add the tools of the `research` group. With `web`, research can be asked to look at the web, too."""
    tools = ResearchTools(calls)

    def add(
        tool: Callable[..., Any],
        title: str,
        description: str,
        annotations: ToolAnnotations,
        name: str | None = None,
    ) -> None:
        server.add_tool(
            tool,
            name=name,
            title=title,
            description=description,
            annotations=annotations,
            icons=icons("research"),
        )

    add(
        tools.research_code_and_web if web else tools.research_codebase,
        "Research the codebase",
        "Answer a question about the code in the roots: where, how, who calls, which option, what changed. "
        "Returns a short report with checked file:line references. Use it first, before reading files. Put "
        "likely names in `also`.",
        WRITES,
        "research_codebase",
    )
    add(
        tools.locate_in_codebase,
        "Locate in the codebase",
        "Only where something is: places, best first, with symbol and line of code. No explanation; for one, "
        "use research_codebase.",
        READ_ONLY,
    )
    add(
        tools.analyze_component,
        "Analyze a component",
        "How one component that you can name works, who calls it, what configures it. If you do not know its "
        "name, use research_codebase.",
        READ_ONLY,
    )
    add(
        tools.find_patterns,
        "Find patterns",
        "2-6 distinct examples of how this code does something, with snippets, to write new code in the same "
        "way.",
        READ_ONLY,
    )
    add(
        create_handoff,
        "Write a handoff",
        "Write a Markdown file for whoever continues this work: what was asked, found, decided, changed and "
        "is open.",
        WRITES,
    )
    add(
        resume_handoff,
        "Resume a handoff",
        "Read a handoff file back; its references are marked unchanged, moved or gone.",
        READ_ONLY,
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
        return await self.research_code_and_web(
            service, ctx, question, also, roots, constraints, artifact, previous
        )

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
        started: list[RunId] = []

        def remember(run_id: RunId) -> None:
            started.append(run_id)
            self._calls.remember(ctx, run_id)

        async with report_progress(ctx, "research", lambda: service.runs.doing(started)):
            return await verb(service, request, remember)


async def create_handoff(
    service: RequestService,
    found: ItemsArgument,
    decided: ItemsArgument,
    changed: ItemsArgument,
    open: ItemsArgument,
    references: ReferencesArgument,
    question: HandoffQuestionArgument = "",
    summary: str = "",
    report: ReportIdArgument = None,
) -> dict[str, Any]:
    from retinue.service import HandoffDraft, create_handoff

    lists = {"found": found, "decided": decided, "changed": changed, "open": open}
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
