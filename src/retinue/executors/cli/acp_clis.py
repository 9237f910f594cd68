"""Gemini, opencode, and any other program that speaks ACP, as they are started for one job.

Each asks before it changes or runs anything, so that our rules decide, and reads no settings of a project.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from retinue.core import (
    PermissionRule,
    ToolRequest,
    argument_details,
    as_object as table,
    as_object_list as rows,
    as_text as text,
)
from retinue.executors.cli.acp_connection import Params
from retinue.executors.cli.cli_job import Job, Launch
from retinue.executors.cli.cli_traits import GEMINI, OPENCODE, CliTraits
from retinue.executors.cli.gemini_sessions import set_aside

KINDS = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "read": "Read",
    "search": "Grep",
    "fetch": "WebFetch",
}
"""ACP's kinds of tools in the words of permission rules."""
GEMINI_TOOLS = {
    "Bash": "run_shell_command",
    "Read": "read_file",
    "Edit": "replace",
    "Write": "write_file",
    "Grep": "grep_search",
    "Glob": "glob",
    "WebFetch": "web_fetch",
    "WebSearch": "google_web_search",
    "Task": "invoke_agent",
}


class AcpProgram:
    """Any program that speaks ACP: the agent's own command line. No system prompt of it could be set."""

    profile = CliTraits(name="acp", program="acp", inherit=(), home={})

    def launch(self, job: Job) -> Launch:
        return Launch((), preamble=_with_schema(job, job.agent.prompt))

    def asked(self, job: Job, call: Params) -> ToolRequest:
        arguments, title = table(call.get("rawInput")), text(call.get("title"))
        tool = KINDS.get(text(call.get("kind")))
        if tool is None:
            return ToolRequest(
                _mcp_tool(job, title) or title or "an unnamed tool", details=argument_details(arguments)
            )
        asked = ToolRequest.of(tool, arguments)
        named = asked.subject or _path(call) or title
        subject = _within(job.cwd, named) if tool in ("Edit", "Read") else named
        return replace(asked, subject=subject)


class GeminiCli(AcpProgram):
    profile = GEMINI

    def launch(self, job: Job) -> Launch:
        arguments = ["--acp"]
        if job.trusts_project:
            arguments.append("--skip-trust")  # without trust it starts no MCP servers, ours neither
        if job.model:
            arguments += ["--model", job.model]
        for folder in job.agent.folders:
            arguments += ["--include-directories", folder]
        env: dict[str, str] = {}
        preamble = job.agent.prompt
        if preamble and job.agent.prompt_mode == "replace":
            env["GEMINI_SYSTEM_MD"] = job.write("system.md", preamble)
            preamble = ""
        if home := job.env.get("GEMINI_CLI_HOME"):
            settings = Path(home) / ".gemini" / "settings.json"
            if settings.parent.is_symlink():
                settings.parent.unlink()  # planted by an earlier run: we would write elsewhere
            settings.parent.mkdir(mode=0o700, exist_ok=True)
            draft = settings.with_name(f"{settings.name}.{job.folder.name}")
            draft.write_text(json.dumps(self._settings(job)), encoding="utf-8")
            draft.replace(settings)  # another run of the agent may be reading it
            if job.resume:
                set_aside(Path(home), job.resume.session_id)
        return Launch(tuple(arguments), env, preamble=_with_schema(job, preamble))

    def _settings(self, job: Job) -> dict[str, Any]:
        agent = job.agent
        names = GEMINI_TOOLS.get
        excluded = [names(tool, tool) for tool in _denied_tools(job)]
        if not agent.spawns:
            excluded.append("invoke_agent")
        tools: dict[str, Any] = {"exclude": excluded}
        if agent.tools is not None:
            tools["core"] = [names(PermissionRule.parse(tool).tool, tool) for tool in agent.tools]
        auth = "gemini-api-key" if "GEMINI_API_KEY" in job.env else "oauth-personal"
        settings: dict[str, Any] = {
            "security": {
                "auth": {"selectedType": auth},
                "folderTrust": {"enabled": True},
                "environmentVariableRedaction": {"enabled": True},
            },
            "general": {
                "enableAutoUpdate": False,
                "disableAutoUpdate": True,
                "sessionRetention": {"enabled": False},  # it takes sessions that are resumed for broken ones
            },
            "privacy": {"usageStatisticsEnabled": False},
            "advanced": {"ignoreLocalEnv": True},  # a project's .env could send the key elsewhere
            "tools": tools,
        }
        if agent.budget.steps is not None:
            settings["model"] = {"maxSessionTurns": agent.budget.steps}
        return settings


class OpencodeCli(AcpProgram):
    profile = OPENCODE
    READING = ("read", "glob", "grep", "list", "todowrite", "todoread", "lsp")

    def launch(self, job: Job) -> Launch:
        agent = job.agent
        env = {"OPENCODE_CONFIG_CONTENT": json.dumps(self._config(job))}
        if "project" not in agent.settings:
            env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
        preamble = agent.prompt if agent.prompt_mode == "append" else ""
        return Launch(("acp", "--pure"), env, preamble=_with_schema(job, preamble))

    def _config(self, job: Job) -> dict[str, Any]:
        agent = job.agent
        given: dict[str, Any] = json.loads(job.env.get("OPENCODE_CONFIG_CONTENT", "{}"))
        ours: dict[str, Any] = {"mode": "primary", "permission": self._permission(job)}
        if agent.prompt and agent.prompt_mode == "replace":
            ours["prompt"] = agent.prompt
        if agent.budget.steps is not None:
            ours["steps"] = agent.budget.steps
        config = {
            **given,
            "autoupdate": False,
            "share": "disabled",
            "agent": {"retinue": ours},
            "default_agent": "retinue",
        }
        return config | ({"model": job.model} if job.model else {})

    def _permission(self, job: Job) -> dict[str, str]:
        """It does unasked what it is not told to ask about. Reading is held by the workspace."""
        agent = job.agent
        if agent.tools is None:
            rules = {"*": "ask", **dict.fromkeys(self.READING, "allow")}
        else:
            own = [PermissionRule.parse(tool).tool.lower() for tool in agent.tools]
            mcp = [f"{server.name}_*" for server in job.servers]
            rules = {"*": "deny", **dict.fromkeys(mcp, "ask")}
            rules |= {tool: "allow" if tool in self.READING else "ask" for tool in own}
        rules["external_directory"] = "ask"
        if not agent.spawns:
            rules["task"] = "deny"
        return rules | {tool.lower(): "deny" for tool in _denied_tools(job)}


def _denied_tools(job: Job) -> list[str]:
    """Those that are denied whole; a denial of some uses is for whoever decides on questions."""
    agent = job.agent
    rules = map(PermissionRule.parse, (*agent.permissions.deny, *agent.denied_tools))
    return [rule.tool for rule in rules if rule.subject is None]


def _with_schema(job: Job, preamble: str) -> str:
    """ACP has no place for a schema: the agent is asked, and what it answers is checked."""
    if (schema := job.schema()) is None:
        return preamble
    wanted = f"Answer with one JSON value and nothing else. It must match this JSON Schema:\n{schema}"
    return f"{preamble}\n\n{wanted}".strip()


def _mcp_tool(job: Job, title: str) -> str | None:
    """A server's tool, by what the CLIs call it: `tool (server MCP Server)`, or `server_tool`."""
    if found := re.fullmatch(r"(?P<tool>.+) \((?P<server>.+) MCP Server\)", title):
        return f"mcp__{found['server']}__{found['tool']}"
    for server in job.servers:
        if title.startswith(f"{server.name}_"):
            return f"mcp__{server.name}__{title.removeprefix(f'{server.name}_')}"
    return None


def _path(call: Params) -> str:
    """Where an edit is made, or shown as a difference."""
    places = (*rows(call.get("locations")), *rows(call.get("content")))
    return next((text(place.get("path")) for place in places if place.get("path")), "")


def _within(cwd: Path, path: str) -> str:
    """As rules name files: relative to the workspace, if they lie in it."""
    try:
        return str(Path(path).relative_to(cwd))
    except ValueError:
        return path
