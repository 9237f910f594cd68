"""Builds the command lines and settings of gemini, opencode and any other program that speaks ACP.

Each is configured to ask before it changes or runs anything, so that the agent's rules decide, and to ignore
the settings of the project.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from retinue.core import (
    JsonObject,
    PermissionRule,
    ToolRequest,
    argument_details,
    as_object,
    as_object_list,
    as_text,
)
from retinue.executors.cli.cli_launch import PROXY_VARIABLES, CliJob, CliTraits
from retinue.executors.process import Program

RULE_TOOLS = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "read": "Read",
    "search": "Grep",
    "fetch": "WebFetch",
}
"""Maps ACP's kinds of tool calls to the tool names of permission rules."""
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
"""Maps the tool names of permission rules to gemini's tool names."""
READING_TOOLS = ("read", "glob", "grep", "list", "todowrite", "todoread", "lsp")
"""Opencode's tools that change nothing."""


class AcpProgram:
    """Any program that speaks ACP, started with the agent's own command line."""

    traits = CliTraits(name="acp", program="acp", inherit=(), state_variables={})

    def program(self, job: CliJob) -> Program:
        return job.program()

    def preamble(self, job: CliJob) -> str:
        return _with_output_schema(job, job.agent.prompt)

    def tool_request(self, job: CliJob, call: JsonObject) -> ToolRequest:
        arguments, title = as_object(call.get("rawInput")), as_text(call.get("title"))
        tool = RULE_TOOLS.get(as_text(call.get("kind")))
        if tool is None:
            name = _mcp_tool(job, title) or title or "an unnamed tool"
            return ToolRequest(name, details=argument_details(arguments))
        request = ToolRequest.of(tool, arguments)
        subject = request.subject or _edited_path(call) or title
        if tool in ("Edit", "Read"):
            subject = _relative_to(job.cwd, subject)
        return replace(request, subject=subject)


class GeminiCli(AcpProgram):
    """Gemini, configured by flags and by a settings file in the agent's own state folder."""

    traits = CliTraits(
        name="gemini",
        program="gemini",
        inherit=(
            *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_*"),
            *PROXY_VARIABLES,
        ),
        env={"GEMINI_CLI_NO_RELAUNCH": "true"},
        state_variables={"GEMINI_CLI_HOME": "."},
        login_files={
            ".gemini/oauth_creds.json": ".gemini/oauth_creds.json",
            ".gemini/google_accounts.json": ".gemini/google_accounts.json",
        },
        models_by_tier={"fast": "gemini-2.5-flash", "strong": "gemini-2.5-pro"},
        project_settings=(".gemini", ".agents", "GEMINI.md"),
        replays_late=True,
    )

    def program(self, job: CliJob) -> Program:
        arguments = ["--acp"]
        if job.trusts_project:
            arguments.append("--skip-trust")  # without trust, gemini starts no MCP server, not even ours
        if job.model:
            arguments += ["--model", job.model]
        for folder in job.agent.folders:
            arguments += ["--include-directories", folder]
        env: dict[str, str] = {}
        if job.agent.prompt and job.agent.prompt_mode == "replace":
            env["GEMINI_SYSTEM_MD"] = job.write_file("system.md", job.agent.prompt)
        if home := job.env.get("GEMINI_CLI_HOME"):
            self._write_settings(job, Path(home) / ".gemini" / "settings.json")
            if job.resume:
                keep_session_record(Path(home), job.resume.session_id)
        return job.program(*arguments, env=env)

    def preamble(self, job: CliJob) -> str:
        prompt = "" if job.agent.prompt_mode == "replace" else job.agent.prompt
        return _with_output_schema(job, prompt)

    def _write_settings(self, job: CliJob, path: Path) -> None:
        """Write gemini's settings file, even if an earlier run of the agent tampered with its folder."""
        if path.parent.is_symlink():
            path.parent.unlink()  # an earlier run planted it, so that we would write elsewhere
        path.parent.mkdir(mode=0o700, exist_ok=True)
        draft = path.with_name(f"{path.name}.{job.folder.name}")
        draft.write_text(json.dumps(self._settings(job)), encoding="utf-8")
        draft.replace(path)  # atomic: another run of the agent may be reading the file

    def _settings(self, job: CliJob) -> dict[str, Any]:
        agent = job.agent
        excluded = [GEMINI_TOOLS.get(tool, tool) for tool in _denied_tools(job)]
        if not agent.spawns:
            excluded.append("invoke_agent")
        tools: dict[str, Any] = {"exclude": excluded}
        if agent.tools is not None:
            tools["core"] = [GEMINI_TOOLS.get(PermissionRule.parse(tool).tool, tool) for tool in agent.tools]
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
                "sessionRetention": {"enabled": False},  # it deletes resumed sessions as broken
            },
            "privacy": {"usageStatisticsEnabled": False},
            "advanced": {"ignoreLocalEnv": True},  # a project's .env could send the key elsewhere
            "tools": tools,
        }
        if agent.budget.steps is not None:
            settings["model"] = {"maxSessionTurns": agent.budget.steps}
        return settings


def keep_session_record(home: Path, session_id: str) -> None:
    """Rename gemini's record of a session so that gemini does not overwrite it when it resumes the session.

    A record is named by the minute and the first letters of the session's id:

        HOME/.gemini/tmp/PROJECT/chats/session-2026-01-31T12-00-0123abcd.jsonl

    Gemini opens a new record before it has loaded the old one. In the minute in which the session began, both
    have the same name, and the session is lost. The new name still looks like a record, but no minute
    produces it. Smaller records of the same session, which gemini left empty, are deleted.
    """
    short_id = session_id[:8]
    if not short_id.isalnum():
        return
    for chats in (home / ".gemini" / "tmp").glob("*/chats"):
        if not chats.resolve().is_relative_to(home.resolve()):
            continue  # a link that a run has planted
        kept = chats / f"session-kept-{short_id}.jsonl"
        records = sorted(chats.glob(f"session-*-{short_id}.jsonl"), key=lambda file: file.stat().st_size)
        if records and not kept.exists():
            records.pop().rename(kept)
        for record in records:
            if record != kept:
                record.unlink()


class OpencodeCli(AcpProgram):
    """Opencode, configured by environment variables."""

    traits = CliTraits(
        name="opencode",
        program="opencode",
        inherit=PROXY_VARIABLES,  # no keys: it has its own login, and its commands see all its variables
        env={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
        },
        state_variables={
            "XDG_DATA_HOME": "data",
            "XDG_CONFIG_HOME": "config",
            "XDG_STATE_HOME": "state",
            "XDG_CACHE_HOME": "cache",
        },
        login_files={".local/share/opencode/auth.json": "data/opencode/auth.json"},
    )

    def program(self, job: CliJob) -> Program:
        env = {"OPENCODE_CONFIG_CONTENT": json.dumps(self._config(job))}
        if "project" not in job.agent.settings:
            env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
        return job.program("acp", "--pure", env=env)

    def preamble(self, job: CliJob) -> str:
        prompt = job.agent.prompt if job.agent.prompt_mode == "append" else ""
        return _with_output_schema(job, prompt)

    def _config(self, job: CliJob) -> dict[str, Any]:
        agent = job.agent
        configured: dict[str, Any] = json.loads(job.env.get("OPENCODE_CONFIG_CONTENT", "{}"))
        ours: dict[str, Any] = {"mode": "primary", "permission": self._permissions(job)}
        if agent.prompt and agent.prompt_mode == "replace":
            ours["prompt"] = agent.prompt
        if agent.budget.steps is not None:
            ours["steps"] = agent.budget.steps
        config = {
            **configured,
            "autoupdate": False,
            "share": "disabled",
            "agent": {"retinue": ours},
            "default_agent": "retinue",
        }
        return config | ({"model": job.model} if job.model else {})

    def _permissions(self, job: CliJob) -> dict[str, str]:
        """Return opencode's permissions. Opencode does what none of them covers without asking."""
        agent = job.agent
        if agent.tools is None:
            rules = {"*": "ask", **dict.fromkeys(READING_TOOLS, "allow")}
        else:
            listed = [PermissionRule.parse(tool).tool.lower() for tool in agent.tools]
            rules = {"*": "deny", **{f"{server.name}_*": "ask" for server in job.servers}}
            rules |= {tool: "allow" if tool in READING_TOOLS else "ask" for tool in listed}
        rules["external_directory"] = "ask"
        if not agent.spawns:
            rules["task"] = "deny"
        return rules | {tool.lower(): "deny" for tool in _denied_tools(job)}


def _denied_tools(job: CliJob) -> list[str]:
    """Return the tools that are denied entirely. Rules for some uses of a tool apply when a CLI asks."""
    agent = job.agent
    rules = map(PermissionRule.parse, (*agent.permissions.deny, *agent.denied_tools))
    return [rule.tool for rule in rules if rule.subject is None]


def _with_output_schema(job: CliJob, preamble: str) -> str:
    """Add the output schema to the preamble, because ACP has no field for it. The answer is checked later."""
    if (schema := job.output_schema) is None:
        return preamble
    wanted = f"Answer with one JSON value and nothing else. It must match this JSON Schema:\n{schema}"
    return f"{preamble}\n\n{wanted}".strip()


def _mcp_tool(job: CliJob, title: str) -> str | None:
    """Return the rule name of an MCP tool that a CLI calls `tool (server MCP Server)` or `server_tool`."""
    if found := re.fullmatch(r"(?P<tool>.+) \((?P<server>.+) MCP Server\)", title):
        return f"mcp__{found['server']}__{found['tool']}"
    for server in job.servers:
        if title.startswith(f"{server.name}_"):
            return f"mcp__{server.name}__{title.removeprefix(f'{server.name}_')}"
    return None


def _edited_path(call: JsonObject) -> str:
    """Return the file that a call edits, from its locations or from its diff."""
    candidates = (*as_object_list(call.get("locations")), *as_object_list(call.get("content")))
    return next((as_text(each.get("path")) for each in candidates if each.get("path")), "")


def _relative_to(cwd: Path, path: str) -> str:
    """Return a path as rules name it: relative to the workspace, if it is inside."""
    try:
        return str(Path(path).relative_to(cwd))
    except ValueError:
        return path
