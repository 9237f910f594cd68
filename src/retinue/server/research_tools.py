"""The `research` group: a question about a codebase becomes a small checked answer.

The verbs are imported by the first question: they bring the roles with them, a tenth of the start-up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from retinue.server import handoff_tools
from retinue.server.core_tools import READ_ONLY
from retinue.server.handoff_tools import WRITES
from retinue.server.progress import StartedCalls, signs_of_life
from retinue.server.request import RequestService
from retinue.service import Service

if TYPE_CHECKING:
    from retinue.service import ResearchRequest, ResearchVerb


Roots = Annotated[list[str] | None, Field(description="Roots or folders inside them; default: all roots.")]
ConstraintsArgument = Annotated[
    dict[str, int] | None, Field(description="tokens, deadlineMs, maxFilesRead, maxBytesRead.")
]
Limit = Annotated[int, Field(description="Most places.")]
Previous = Annotated[
    str | None, Field(description="Id of an earlier report to refine; with an empty question, to see whole.")
]
Artifact = Annotated[bool, Field(description="Also write a Markdown memo.")]


def register(server: MCPServer[Service], calls: StartedCalls) -> None:
    async def answer(
        ctx: Context[Service, Any], verb: ResearchVerb, service: Service, ask: ResearchRequest
    ) -> dict[str, object]:
        """With a sign of life while it takes long; a host's cancel finds the run behind it."""
        async with signs_of_life(ctx, "research"):
            return await verb(service, ask, lambda run_id: calls.remember(ctx, run_id))

    async def research_codebase(
        service: RequestService,
        ctx: Context[Service, Any],
        question: str,
        roots: Roots = None,
        constraints: ConstraintsArgument = None,
        artifact: Artifact = False,
        previous: Previous = None,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, research_codebase as verb

        ask = ResearchRequest(
            question=question,
            roots=roots or (),
            constraints=constraints or {},
            artifact=artifact,
            previous=previous,
        )
        return await answer(ctx, verb, service, ask)

    async def locate_in_codebase(
        service: RequestService,
        ctx: Context[Service, Any],
        question: str,
        roots: Roots = None,
        constraints: ConstraintsArgument = None,
        limit: Limit = 20,
    ) -> dict[str, object]:
        from retinue.service import ResearchRequest, locate_in_codebase as verb

        ask = ResearchRequest(
            question=question, roots=roots or (), constraints=constraints or {}, limit=limit
        )
        return await answer(ctx, verb, service, ask)

    def one_role(
        verb: Literal["analyze_component", "find_patterns"],
    ) -> Callable[..., Awaitable[dict[str, object]]]:
        async def tool(
            service: RequestService,
            ctx: Context[Service, Any],
            question: str,
            roots: Roots = None,
            constraints: ConstraintsArgument = None,
        ) -> dict[str, object]:
            from retinue import service as verbs

            ask = verbs.ResearchRequest(question=question, roots=roots or (), constraints=constraints or {})
            return await answer(ctx, getattr(verbs, verb), service, ask)

        return tool

    server.add_tool(
        research_codebase,
        description="Answers a question about the code: a short report with checked file:line references.",
        annotations=WRITES,
    )
    server.add_tool(
        locate_in_codebase,
        description="Where something is in the code: references, best first, grouped by kind.",
        annotations=READ_ONLY,
    )
    server.add_tool(
        one_role("analyze_component"),
        name="analyze_component",
        description="How a component works: where defined, who uses it, what it calls and reads.",
        annotations=READ_ONLY,
    )
    server.add_tool(
        one_role("find_patterns"),
        name="find_patterns",
        description="2-6 distinct examples of how something is done, with short snippets.",
        annotations=READ_ONLY,
    )
    handoff_tools.register(server)
