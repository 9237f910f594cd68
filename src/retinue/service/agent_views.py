"""Agents as hosts and people see them: small lists, and one agent whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from retinue.core import Agent, McpServer, RetinueError, clip, counted, estimate_tokens
from retinue.definitions import AgentDefinition, DefinitionProblem

if TYPE_CHECKING:  # only named here, and slow to load
    from retinue.executors import LaunchPreview

DESCRIPTION_LETTERS = (200, 100, 50)
"""In a list, shorter the more agents there are."""
CUT_TOKENS = 40

FoundAgents = Sequence[tuple[AgentDefinition, RetinueError | None]]


def listing(found: FoundAgents, tokens: int) -> dict[str, Any]:
    """Those that can be run first; as many as fit, and a word about the rest (P4)."""
    ordered = sorted(found, key=lambda each: each[1] is not None)
    for letters in DESCRIPTION_LETTERS:
        lines = [_line(*each, letters) for each in ordered]
        if sum(map(_size, lines)) <= tokens:
            return {"agents": lines}
    shortest = [_line(*each, DESCRIPTION_LETTERS[-1]) for each in ordered]
    kept = _fitting([_size(line) for line in shortest], tokens - CUT_TOKENS)
    left = counted(len(shortest) - kept, "agent")
    return {"agents": shortest[:kept], "cut": f"{left} did not fit; `retinue agents` lists all"}


def _size(line: object) -> int:
    return estimate_tokens(json.dumps(line, ensure_ascii=False)) + 1


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many from the beginning fit."""
    return sum(used <= room for used in accumulate(sizes))


def _line(definition: AgentDefinition, refusal: RetinueError | None, letters: int) -> dict[str, Any]:
    agent = definition.agent
    line: dict[str, Any] = {
        "name": definition.name,
        "description": clip(agent.description, letters) if agent else "",
        "executor": agent.executor if agent else None,
        "from": definition.source,
    }
    if refusal is not None:
        line["unavailable"] = clip(refusal.message.removeprefix(f"agent {definition.name} "), 2 * letters)
    return line


def whole(definition: AgentDefinition, refusal: RetinueError | None) -> dict[str, Any]:
    """What would run, and by which line of which file; of the environment the names alone (P6)."""
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
    if rows := problems(definition):
        view["problems"] = rows
    if definition.agent is None:
        return view
    effective = _effective(definition.agent)
    view["agent"] = effective
    view["origins"] = {name: definition.origins.get(name, "default") for name in effective}
    return view


def start(found: LaunchPreview | RetinueError) -> dict[str, Any]:
    """What its runs start, made as for a run; of the environment the names alone (P6)."""
    if isinstance(found, RetinueError):
        return {"start": {"prevented": found.message + (f"; {found.hint}" if found.hint else "")}}
    view = {
        "command": list(found.command) or None,
        "folder": found.folder,
        "isolation": found.isolation,
        "model": found.model or "its own choice",
        "task": found.task,
        "env": list(found.env),
        "secrets": f"{counted(found.secret_files, 'open file')}, in no variable and no folder"
        if found.secret_files
        else None,
        "notes": list(found.notes),
    }
    return {"start": {key: value for key, value in view.items() if value not in (None, [])}}


def _effective(agent: Agent) -> dict[str, Any]:
    return {
        "description": agent.description,
        "executor": agent.executor,
        "command": list(agent.command) or None,
        "model": agent.model or "default",
        "tools": "what the executor gives" if agent.tools is None else list(agent.tools),
        "denied_tools": list(agent.denied_tools),
        "permissions": {"allow": list(agent.permissions.allow), "deny": list(agent.permissions.deny)}
        | ({"mode": agent.permissions.mode} if agent.permissions.mode else {}),
        "mcp_servers": [_server(server) for server in agent.mcp_servers],
        "env": list(agent.env),
        "folders": list(agent.folders),
        "settings": list(agent.settings),
        "session": agent.session,
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
        "acceptance": [list(command) for command in agent.acceptance],
        "needs": list(agent.needs),
        "prompt_mode": agent.prompt_mode,
        "prompt": agent.prompt,
    }


def _server(server: McpServer) -> dict[str, Any]:
    return {
        "name": server.name,
        "command": list(server.argv) or None,
        "url": server.url,
        "env": list(server.env),
        "headers": list(server.headers),
        "tools": None if server.tools is None else list(server.tools),
    }


def problems(definition: AgentDefinition) -> list[dict[str, Any]]:
    found = [problem(definition.file or definition.source, each) for each in definition.problems]
    if definition.left_out is not None:
        note = DefinitionProblem(1, f"left out: {definition.left_out}", fatal=False)
        found.append(problem(definition.file, note))
    return found


def problem(file: str, found: DefinitionProblem) -> dict[str, Any]:
    row = {"file": file, "line": found.line, "level": "error" if found.fatal else "warning"}
    row["message"] = found.message
    return row | ({"hint": found.hint} if found.hint else {})


def wrong(definition: AgentDefinition, key: str, error: RetinueError) -> dict[str, Any]:
    """A mistake that shows only when the whole agent is looked at."""
    at = DefinitionProblem(_line_of(definition, key), f"{key}: {error.message}", error.hint)
    return problem(definition.file or definition.source, at)


def namesake(definition: AgentDefinition, other: AgentDefinition) -> dict[str, Any]:
    """Two files of one folder, of which the second can never be called."""
    text = f"name: {definition.name} is the name of {other.source} too, which hides this one"
    return problem(definition.file, DefinitionProblem(_line_of(definition, "name"), text, fatal=False))


def _line_of(definition: AgentDefinition, key: str) -> int:
    line = definition.origins.get(key, "").rpartition(":")[2]
    return int(line) if line.isdigit() else 1


def prompt_section(agents: Sequence[Agent]) -> str:
    if not agents:
        return "## Subagents\n\nThere are none."
    lines = [
        "## Subagents",
        "",
        "`run_subagent(agent_name, prompt)` gives a task to one of these agents. Each knows only what its",
        "prompt says. Leave work of their kind to them.",
        "",
    ]
    lines += [f"- **{agent.name}**: {agent.description}" for agent in agents]
    return "\n".join(lines)


def instructions(agents: Sequence[Agent], tokens: int) -> str:
    """One line for each agent, as many as fit, and the number of the rest."""
    if not agents:
        return ""
    lines: list[str] = []
    kept = 0
    for letters in DESCRIPTION_LETTERS:
        lines = [f"- {agent.name}: {clip(agent.description, letters)}" for agent in agents]
        kept = _fitting([estimate_tokens(line) + 1 for line in lines], tokens)
        if kept == len(lines):
            break
    if kept < len(lines):
        lines = [*lines[:kept], f"and {counted(len(lines) - kept, 'more agent')}: list_agents"]
    return "\n".join(["Agents for run_subagent:", *lines])
