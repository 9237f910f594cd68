"""The prompts of the server, which hosts show as slash commands: agents, agent, teams, team, research.

Claude Code splits what a person types after a slash command at its spaces, and passes one word to each
argument of the prompt. It also shows the model the whole line, as `command-args`. So a prompt whose last
argument is a single word tells the model to read the rest there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import Prompt, PromptArgument
from mcp_types import Icon

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
    async def agents(ctx: ToolContext) -> str:
        listed = ctx.request_context.lifespan_context.agents.list_callable()["agents"]
        about = {each["name"]: each.get("unavailable", each["description"]) for each in listed}
        return _list_prompt("agents", about)

    about = "List the agents that can be given a task."
    _add(server, "agents", "List agents", about, icons("agents"), agents, context_kwarg="ctx")
    _register_task_prompt(server, "agent", "run_subagent", "agent_name", "prompt", icons("agents"))


def _register_teams(server: MCPServer[Service]) -> None:
    async def teams(ctx: ToolContext) -> str:
        listed = ctx.request_context.lifespan_context.workflows.list_defined("team")
        about = {each["name"]: each.get("unavailable") or " > ".join(each["agents"]) for each in listed}
        return _list_prompt("teams", about)

    about = "List the teams that can be given a task."
    _add(server, "teams", "List teams", about, icons("workflows"), teams, context_kwarg="ctx")
    _register_task_prompt(server, "team", "run_team", "name", "task", icons("workflows"))


def _register_research(server: MCPServer[Service]) -> None:
    async def research(question: str) -> str:
        return (
            "Call research_codebase with the question below and answer from its report, with its file:line "
            f"references.\n\n{_typed(question, 'question')}"
        )

    about = "Answer a question about the code, with checked places."
    arguments = {"question": "About the code."}
    _add(server, "research", "Research the codebase", about, icons("research"), research, arguments)


def _list_prompt(what: str, about: Mapping[str, str]) -> str:
    """Ask the model to show a list of names with their descriptions."""
    lines = [f"- {name} ({description})" for name, description in about.items()]
    return f"Show me this list of {what} as it is:\n" + ("\n".join(lines) or "(none)")


def _register_task_prompt(
    server: MCPServer[Service],
    kind: str,
    tool: str,
    name_argument: str,
    task_argument: str,
    shown: list[Icon],
) -> None:
    """Add a prompt that gives a task to an agent or a team."""

    article = "an" if kind[0] in "aeiou" else "a"

    async def give_task(name: str, task: str) -> str:
        typed = _typed(task, task_argument, " after the name")
        return (
            f"Call {tool} with {name_argument}={name!r} and exactly the {task_argument} below. If it takes "
            f"long, wait with wait_for_runs. Then tell me what it answered.\n\n{typed}"
        )

    title = f"Give {article} {kind} a task"
    arguments = {"name": "Which one.", "task": "The task to do."}
    _add(server, kind, title, f"{title}.", shown, give_task, arguments)


def _add(
    server: MCPServer[Service],
    name: str,
    title: str,
    description: str,
    shown: list[Icon],
    render: Callable[..., Awaitable[str]],
    arguments: Mapping[str, str] = {},
    context_kwarg: str | None = None,
) -> None:
    """Add a prompt. `arguments` has their descriptions; all are required, and are texts.

    The decorator of the SDK would find them in the signature of `render`, which takes a millisecond of every
    start for each prompt.
    """
    server.add_prompt(
        Prompt(
            name=name,
            title=title,
            description=description,
            arguments=[
                PromptArgument(name=each, description=about, required=True)
                for each, about in arguments.items()
            ],
            fn=render,
            icons=shown,
            context_kwarg=context_kwarg,
        )
    )


def _typed(text: str, what: str, after: str = "") -> str:
    """The text that a person typed. A single word may be the first of several: see the module's docstring."""
    if len(text.split()) > 1:
        return text
    return f"{text}\n\n(If command-args above have more words, the {what} is all of them{after}.)"
