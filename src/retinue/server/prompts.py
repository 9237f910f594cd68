"""The prompts of the server, which hosts show as slash commands: agents, agent, teams, team, research."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import Field

from retinue.server.core_tools import ToolContext
from retinue.service import Service

MAX_COMPLETIONS = 100


def register_agents(server: MCPServer[Service], service: Service) -> None:
    """Add `agents`, `agent`, and the completion of agent names."""

    @server.prompt(name="agents", description="List the agents that can be given a task.")
    async def agents(ctx: ToolContext) -> str:
        listed = ctx.request_context.lifespan_context.agents.list_callable()["agents"]
        about = {each["name"]: each.get("unavailable", each["description"]) for each in listed}
        return _list_prompt("agents", about)

    _register_task_prompt(server, "agent", "Give an agent a task.", "run_subagent", "agent_name", "prompt")

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if not isinstance(ref, PromptReference) or (ref.name, argument.name) != ("agent", "name"):
            return None
        names = service.agents.names(argument.value)
        return Completion(values=names[:MAX_COMPLETIONS], total=len(names))


def register_teams(server: MCPServer[Service]) -> None:
    """Add `teams` and `team`."""

    @server.prompt(name="teams", description="List the teams that can be given a task.")
    async def teams(ctx: ToolContext) -> str:
        listed = ctx.request_context.lifespan_context.workflows.list_defined("team")
        about = {each["name"]: each.get("unavailable") or " > ".join(each["agents"]) for each in listed}
        return _list_prompt("teams", about)

    _register_task_prompt(server, "team", "Give a team a task.", "run_team", "name", "task")


def register_research(server: MCPServer[Service]) -> None:
    """Add `research`."""

    @server.prompt(name="research", description="Answer a question about the code, with checked places.")
    async def research(question: Annotated[str, Field(description="About the code.")]) -> str:
        return (
            "Call research_codebase with the question below and answer from its report, with its file:line "
            f"references.\n\n{question}"
        )


def _list_prompt(what: str, about: Mapping[str, str]) -> str:
    """Ask the model to show a list of names with their descriptions."""
    lines = [f"- {name} ({description})" for name, description in about.items()]
    return f"Show me this list of {what} as it is:\n" + ("\n".join(lines) or "(none)")


def _register_task_prompt(
    server: MCPServer[Service],
    prompt: str,
    description: str,
    tool: str,
    name_argument: str,
    task_argument: str,
) -> None:
    """Add a prompt that asks the model to call a tool with a name and a task."""

    @server.prompt(name=prompt, description=description)
    async def task_prompt(
        name: Annotated[str, Field(description="Which one.")],
        task: Annotated[str, Field(description="The task to do.")],
    ) -> str:
        return (
            f"Call {tool} with {name_argument}={name!r} and exactly the {task_argument} below. If it takes "
            f"long, wait with wait_for_runs. Then tell me what it answered.\n\n{task}"
        )
