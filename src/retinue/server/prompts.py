"""The slash commands of hosts that show prompts: who is there, asking one of them, and research."""

from __future__ import annotations

from collections.abc import Mapping
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

from retinue.service import Service

MOST_COMPLETIONS = 100
Ctx = Context[Service, Any]


def register_agents(server: MCPServer[Service], service: Service) -> None:
    @server.prompt(name="agents", description="List the agents that can be given a task.")
    async def agents(ctx: Ctx) -> str:
        listed = ctx.request_context.lifespan_context.agents.list_callable()["agents"]
        about = {each["name"]: each.get("unavailable", each["description"]) for each in listed}
        return _list_of("agents", about)

    _register_giving(server, "agent", "Give an agent a task.", "run_subagent", "agent_name", "prompt")

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if not isinstance(ref, PromptReference) or (ref.name, argument.name) != ("agent", "name"):
            return None
        names = service.agents.names(argument.value)
        return Completion(values=names[:MOST_COMPLETIONS], total=len(names))


def register_teams(server: MCPServer[Service]) -> None:
    @server.prompt(name="teams", description="List the teams that can be given a task.")
    async def teams(ctx: Ctx) -> str:
        listed = ctx.request_context.lifespan_context.workflows.list_defined("team")
        about = {each["name"]: each.get("unavailable") or " > ".join(each["agents"]) for each in listed}
        return _list_of("teams", about)

    _register_giving(server, "team", "Give a team a task.", "run_team", "name", "task")


def register_research(server: MCPServer[Service]) -> None:
    @server.prompt(name="research", description="Answer a question about the code, with checked places.")
    async def research(question: Annotated[str, Field(description="About the code.")]) -> str:
        return (
            "Call research_codebase with the question below and answer from its report, with its file:line "
            f"references.\n\n{question}"
        )


def _list_of(what: str, about: Mapping[str, str]) -> str:
    lines = [f"- {name} ({said})" for name, said in about.items()]
    return f"Show me this list of {what} as it is:\n" + ("\n".join(lines) or "(none)")


def _register_giving(
    server: MCPServer[Service], prompt: str, description: str, tool: str, named: str, told: str
) -> None:
    """A prompt that has the host call a tool with a name and a task."""

    @server.prompt(name=prompt, description=description)
    async def give(
        name: Annotated[str, Field(description="Which one.")],
        task: Annotated[str, Field(description="What it is to do.")],
    ) -> str:
        return (
            f"Call {tool} with {named}={name!r} and exactly the {told} below. If it takes long, wait with "
            f"wait_for_runs. Then tell me what it answered.\n\n{task}"
        )
