"""JSON views of agents: a short list, the details of one agent, and the problems in agent files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from retinue.core import Agent, McpServer, RetinueError, clip, counted, estimate_tokens
from retinue.definitions import AgentDefinition, DefinitionProblem, did_you_mean

if TYPE_CHECKING:  # only named here, and slow to load
    from retinue.executors import LaunchPreview

DESCRIPTION_CHARACTERS = (200, 100, 50)
"""Maximum lengths of a description in a list; the first that makes the list fit is used."""
NOTE_TOKENS = 40

FoundAgents = Sequence[tuple[AgentDefinition, RetinueError | None]]


def agent_list(found: FoundAgents, tokens: int) -> dict[str, Any]:
    """List as many agents as fit, with those that can run first, and count the rest (P4)."""
    ordered = sorted(found, key=lambda each: each[1] is not None)
    for characters in DESCRIPTION_CHARACTERS:
        lines = [_list_row(*each, characters) for each in ordered]
        if sum(map(_row_tokens, lines)) <= tokens:
            return {"agents": lines}
    shortest = [_list_row(*each, DESCRIPTION_CHARACTERS[-1]) for each in ordered]
    kept = _count_fitting([_row_tokens(line) for line in shortest], tokens - NOTE_TOKENS)
    left = counted(len(shortest) - kept, "agent")
    return {"agents": shortest[:kept], "cut": f"{left} omitted; `retinue agents` lists all of them"}


def _row_tokens(line: object) -> int:
    return estimate_tokens(json.dumps(line, ensure_ascii=False)) + 1


def _count_fitting(sizes: Sequence[int], room: int) -> int:
    """How many items from the beginning fit into the room."""
    return sum(used <= room for used in accumulate(sizes))


def _list_row(definition: AgentDefinition, refusal: RetinueError | None, characters: int) -> dict[str, Any]:
    agent = definition.agent
    line: dict[str, Any] = {
        "name": definition.name,
        "description": clip(agent.description, characters) if agent else "",
        "executor": agent.executor if agent else None,
        "from": definition.source,
    }
    if definition.replaces_builtin:
        line["replaces"] = "the built-in agent"
    if refusal is not None:
        line["unavailable"] = clip(refusal.message.removeprefix(f"agent {definition.name} "), 2 * characters)
    return line


def agent_details(definition: AgentDefinition, refusal: RetinueError | None) -> dict[str, Any]:
    """One agent with the origin of each field. Shows only the names of environment variables (P6)."""
    view: dict[str, Any] = {
        "name": definition.name,
        "from": definition.source,
        "file": definition.file,
        "scope": definition.scope,
        "trusted": definition.trusted,
        "available": refusal is None,
    }
    if refusal is not None:
        view["unavailable"] = refusal.message + (f"; {refusal.hint}" if refusal.hint else "")
    if definition.shadows:
        view["shadows"] = list(definition.shadows)
    if rows := problem_views(definition):
        view["problems"] = rows
    if definition.agent is None:
        return view
    effective = _effective_agent(definition.agent)
    view["agent"] = effective
    view["origins"] = {name: definition.origins.get(name, "default") for name in effective}
    return view


def launch_view(found: LaunchPreview | RetinueError) -> dict[str, Any]:
    """What a run of the agent would start. Shows only the names of environment variables (P6)."""
    if isinstance(found, RetinueError):
        return {"start": {"prevented": found.message + (f"; {found.hint}" if found.hint else "")}}
    view = {
        "command": list(found.command) or None,
        "folder": found.folder,
        "isolation": found.isolation,
        "model": found.model or "chosen by the program",
        "task": found.task,
        "env": list(found.env),
        "secrets": f"{counted(found.secret_files, 'open file')}; no variable or folder contains them"
        if found.secret_files
        else None,
        "notes": list(found.notes),
    }
    return {"start": {key: value for key, value in view.items() if value not in (None, [])}}


def _effective_agent(agent: Agent) -> dict[str, Any]:
    return {
        "description": agent.description,
        "executor": agent.executor,
        "command": list(agent.command) or None,
        "model": agent.model or "default",
        "tools": "the executor's default" if agent.tools is None else list(agent.tools),
        "denied_tools": list(agent.denied_tools),
        "permissions": {"allow": list(agent.permissions.allow), "deny": list(agent.permissions.deny)}
        | ({"mode": agent.permissions.mode} if agent.permissions.mode else {}),
        "mcp_servers": [_server_view(server) for server in agent.mcp_servers],
        "env": list(agent.env),
        "folders": list(agent.folders),
        "settings": list(agent.settings),
        "session": agent.session,
        "fork": agent.fork,
        "memory": agent.memory,
        "allowed_callers": "anyone" if agent.allowed_callers is None else list(agent.allowed_callers),
        "timeout_s": agent.timeout_s,
        "budget": agent.budget.as_dict(),
        "spawns": agent.spawns,
        "output_format": agent.output_format,
        "output_schema": agent.output_schema,
        "container": agent.container,
        "sandbox": agent.sandbox,
        "network": agent.network,
        "isolation": agent.isolation,
        "worktree_setup": [list(command) for command in agent.worktree_setup],
        "worktree_copy": list(agent.worktree_copy),
        "fallback": agent.fallback if isinstance(agent.fallback, str) else list(agent.fallback),
        "acceptance": [list(command) for command in agent.acceptance],
        "needs": list(agent.needs),
        "prompt_mode": agent.prompt_mode,
        "prompt": agent.prompt,
    }


def _server_view(server: McpServer) -> dict[str, Any]:
    return {
        "name": server.name,
        "command": list(server.argv) or None,
        "url": server.url,
        "env": list(server.env),
        "headers": list(server.headers),
        "tools": None if server.tools is None else list(server.tools),
    }


def problem_views(definition: AgentDefinition) -> list[dict[str, Any]]:
    """The problems in an agent's file, and why the file is ignored if it is."""
    found = [problem_view(definition.file or definition.source, each) for each in definition.problems]
    if definition.excluded_because is not None:
        note = DefinitionProblem(1, f"ignored: {definition.excluded_because}", fatal=False)
        found.append(problem_view(definition.file, note))
    return found


def problem_view(file: str, found: DefinitionProblem) -> dict[str, Any]:
    row = {"file": file, "line": found.line, "level": "error" if found.fatal else "warning"}
    row["message"] = found.message
    return row | ({"hint": found.hint} if found.hint else {})


def key_problem(definition: AgentDefinition, key: str, error: RetinueError) -> dict[str, Any]:
    """A problem with one key that only a check of the whole agent finds."""
    at = DefinitionProblem(_line_of(definition, key), f"{key}: {error.message}", error.hint)
    return problem_view(definition.file or definition.source, at)


def missing_skill_problem(definition: AgentDefinition, name: str, known: Iterable[str]) -> dict[str, Any]:
    """A warning that an agent lists a skill that does not exist. It runs without it, and says so."""
    hint = did_you_mean(name, known) or "`retinue skills list` lists all skills"
    text = f"skills: there is no skill {name[:80]!r}"
    problem = DefinitionProblem(_line_of(definition, "skills"), text, hint, fatal=False)
    return problem_view(definition.file or definition.source, problem)


def duplicate_name_problem(definition: AgentDefinition, other: AgentDefinition) -> dict[str, Any]:
    """A warning that another file in the same folder has the same name and hides this one."""
    text = f"name: {other.source} is also named {definition.name} and hides this file"
    return problem_view(definition.file, DefinitionProblem(_line_of(definition, "name"), text, fatal=False))


def _line_of(definition: AgentDefinition, key: str) -> int:
    line = definition.origins.get(key, "").rpartition(":")[2]
    return int(line) if line.isdigit() else 1


def prompt_section(agents: Sequence[Agent]) -> str:
    """A Markdown section about the agents, for a main agent's system prompt."""
    if not agents:
        return "## Subagents\n\nNo subagents are available."
    lines = [
        "## Subagents",
        "",
        "`run_subagent(agent_name, prompt)` gives a task to one of these agents. Each knows only what its",
        "prompt says. Delegate matching work to them.",
        "",
    ]
    lines += [f"- **{agent.name}**: {agent.description}" for agent in agents]
    return "\n".join(lines)


def instructions(agents: Sequence[Agent], tokens: int) -> str:
    """One line for each agent, as many as fit, and the number of the others."""
    if not agents:
        return ""
    lines: list[str] = []
    kept = 0
    for characters in DESCRIPTION_CHARACTERS:
        lines = [f"- {agent.name}: {clip(agent.description, characters)}" for agent in agents]
        kept = _count_fitting([estimate_tokens(line) + 1 for line in lines], tokens)
        if kept == len(lines):
            break
    if kept < len(lines):
        lines = [*lines[:kept], f"and {counted(len(lines) - kept, 'more agent')}: list_agents"]
    return "\n".join(["Agents for run_subagent:", *lines])
