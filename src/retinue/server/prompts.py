"""The prompts of the server, which hosts show as slash commands: agents, agent, teams, team, research.

Claude Code splits what a person types after a slash command at its spaces, and passes one word to each
argument of the prompt. It also shows the model the whole line, as `command-args`. So a prompt whose last
argument is a single word tells the model to read the rest there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from retinue.server.core_tools import ToolContext
from retinue.server.icons import icons
from retinue.service import Service


def register(server: MCPServer[Service], groups: Collection[str]) -> None:
    """Add the prompts of the groups that are switched on."""
    if "agents" in groups:
        _register_agents(server)
    if "research" in groups:
        _register_research(server)
    if "workflows" in groups:
        _register_teams(server)


def _register_agents(server: MCPServer[Service]) -> None:
    @server.prompt(
        name="agents",
        title="List agents",
        description="List the agents that can be given a task.",
        icons=icons("agents"),
    )
    async def agents(ctx: ToolContext) -> str:
        listed = ctx.request_context.lifespan_context.agents.list_callable()["agents"]
        about = {each["name"]: each.get("unavailable", each["description"]) for each in listed}
        return _list_prompt("agents", about)

    _register_task_prompt(server, "agent", "run_subagent", "agent_name", "prompt", icons("agents"))


def _register_teams(server: MCPServer[Service]) -> None:
    @server.prompt(
        name="teams",
        title="List teams",
        description="List the teams that can be given a task.",
        icons=icons("workflows"),
    )
    async def teams(ctx: ToolContext) -> str:
        listed = ctx.request_context.lifespan_context.workflows.list_defined("team")
        about = {each["name"]: each.get("unavailable") or " > ".join(each["agents"]) for each in listed}
        return _list_prompt("teams", about)

    _register_task_prompt(server, "team", "run_team", "name", "task", icons("workflows"))


def _register_research(server: MCPServer[Service]) -> None:
    @server.prompt(
        name="research",
        title="Research the codebase",
        description="Answer a question about the code, with checked places.",
        icons=icons("research"),
    )
    async def research(question: Annotated[str, Field(description="About the code.")]) -> str:
        return (
            "Call research_codebase with the question below and answer from its report, with its file:line "
            f"references.\n\n{_typed(question, 'question')}"
        )


def _list_prompt(what: str, about: Mapping[str, str]) -> str:
    """Ask the model to show a list of names with their descriptions."""
    lines = [f"- {name} ({description})" for name, description in about.items()]
    return f"Show me this list of {what} as it is:\n" + ("\n".join(lines) or "(none)")


def _register_task_prompt(
    server: MCPServer[Service], kind: str, tool: str, name_argument: str, task_argument: str, shown: Any
) -> None:
    """Add a prompt that gives a task to an agent or a team."""

    article = "an" if kind[0] in "aeiou" else "a"

    @server.prompt(
        name=kind,
        title=f"Give {article} {kind} a task",
        description=f"Give {article} {kind} a task.",
        icons=shown,
    )
    async def give_task(
        name: Annotated[str, Field(description="Which one.")],
        task: Annotated[str, Field(description="The task to do.")],
    ) -> str:
        typed = _typed(task, task_argument, " after the name")
        return (
            f"Call {tool} with {name_argument}={name!r} and exactly the {task_argument} below. If it takes "
            f"long, wait with wait_for_runs. Then tell me what it answered.\n\n{typed}"
        )


def _typed(text: str, what: str, after: str = "") -> str:
    """What a person typed. A single word may be the first of several: see the docstring of this module."""
    if len(text.split()) > 1:
        return text
    return f"{text}\n\n(If command-args above have more words, the {what} is all of them{after}.)"
