"""The slash commands of hosts that show prompts: who is there, asking one of them, and research."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import Field

from retinue.service.service import Service

MOST_COMPLETIONS = 100
Ctx = Context[Service, Any]


def register_agents(server: MCPServer[Service], service: Service) -> None:
    @server.prompt(name="agents", description="List the agents that can be given a task.")
    async def agents(ctx: Ctx) -> str:
        listed = ctx.request_context.lifespan_context.known.listed()["agents"]
        lines = [
            f"- {each['name']} ({each['unavailable'] if 'unavailable' in each else each['description']})"
            for each in listed
        ]
        return "Show me this list of agents as it is:\n" + ("\n".join(lines) or "(none)")

    @server.prompt(name="agent", description="Give an agent a task.")
    async def agent(
        name: Annotated[str, Field(description="Which agent.")],
        task: Annotated[str, Field(description="What it is to do.")],
    ) -> str:
        return (
            f"Call run_subagent with agent_name={name!r} and exactly the prompt below. If it takes long, "
            f"wait with wait_for_runs. Then tell me what it answered.\n\n{task}"
        )

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if not isinstance(ref, PromptReference) or (ref.name, argument.name) != ("agent", "name"):
            return None
        names = service.known.names(argument.value)
        return Completion(values=names[:MOST_COMPLETIONS], total=len(names))


def register_teams(server: MCPServer[Service]) -> None:
    @server.prompt(name="teams", description="List the teams that can be given a task.")
    async def teams(ctx: Ctx) -> str:
        listed = ctx.request_context.lifespan_context.flows.listed("team")
        lines = [
            f"- {each['name']} ({each.get('unavailable') or ' > '.join(each['agents'])})" for each in listed
        ]
        return "Show me this list of teams as it is:\n" + ("\n".join(lines) or "(none)")

    @server.prompt(name="team", description="Give a team a task.")
    async def team(
        name: Annotated[str, Field(description="Which team.")],
        task: Annotated[str, Field(description="What it is to do.")],
    ) -> str:
        return (
            f"Call run_team with name={name!r} and exactly the task below. If it takes long, wait with "
            f"wait_for_runs. Then tell me what it answered.\n\n{task}"
        )


def register_research(server: MCPServer[Service]) -> None:
    @server.prompt(name="research", description="Answer a question about the code, with checked places.")
    async def research(question: Annotated[str, Field(description="About the code.")]) -> str:
        return (
            "Call research_codebase with the question below and answer from its report, with its file:line "
            f"references.\n\n{question}"
        )
