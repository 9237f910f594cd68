"""Gemini: what to start for a job, and how its session records are kept.

It is configured to ask before it changes or runs anything, so that the agent's rules decide, and to ignore
the settings of the project.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from retinue.core import Agent, Executor, JsonObject, PermissionRule, ToolRequest, as_text, toml_string
from retinue.executors.cli.acp_process import ACP_TASK, AcpExecutor
from retinue.executors.cli.acp_program import AcpProgram, denied_tools, with_output_schema
from retinue.executors.cli.cli_factory import make_cli_executor, preview_cli
from retinue.executors.cli.cli_job import PROXY_VARIABLES, CliJob, CliTraits
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.process import Program

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
"""Gemini's tool names for those of permission rules."""
FILE_TOOLS = ("read_file", "read_many_files", "write_file", "replace")
"""Tools that take the path of a file, and may show the model what is in it."""
WEB_SEARCH_TITLE = 'Searching the web for: "'
"""How gemini calls a search of the web. Its titles of other searches begin with a quotation mark."""
SPECIAL_IN_PATTERNS = re.compile(r"[\\^$.*+?()\[\]{}|]")
POLICY_PRIORITY = 999
"""The highest one in a policy file."""


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with Gemini."""
    return make_cli_executor(partial(AcpExecutor, GeminiCli()), agent, surroundings)


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return what a run of the agent would start."""
    return preview_cli(GeminiCli(), agent, surroundings, ACP_TASK)


class GeminiCli(AcpProgram):
    """Gemini, configured by flags and by a settings file in the agent's own state folder."""

    traits = CliTraits(
        name="gemini",
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
        reads_unasked=True,
        web_tools=(GEMINI_TOOLS["WebFetch"], GEMINI_TOOLS["WebSearch"]),
        hides_files=lambda job: True,
        cost_of_hiding="so is its grep_search, which would search them, too",
    )

    title_is_command = True

    def program(self, job: CliJob) -> Program:
        arguments = ["--acp"]
        if job.trusts_project:
            arguments.append("--skip-trust")  # without trust, gemini starts no MCP server, not even ours
        if job.model:
            arguments += ["--model", job.model]
        for folder in job.agent.folders:
            arguments += ["--include-directories", folder]
        arguments += ["--admin-policy", job.write_file("policy.toml", _policy(job))]
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
        return with_output_schema(job, prompt)

    def tool_request(self, job: CliJob, call: JsonObject) -> ToolRequest:
        """Tell searches of the web from those of files: ACP has one kind for both."""
        title = as_text(call.get("title"))
        if call.get("kind") == "search" and title.startswith(WEB_SEARCH_TITLE):
            query = title.removeprefix(WEB_SEARCH_TITLE).removesuffix('"')
            return ToolRequest.of("WebSearch", {"query": query}, str(job.cwd))
        return super().tool_request(job, call)

    def _write_settings(self, job: CliJob, path: Path) -> None:
        """Write gemini's settings file, safe from what earlier runs of the agent did to its folder."""
        if path.parent.is_symlink():
            path.parent.unlink()  # an earlier run planted it, so that we would write elsewhere
        path.parent.mkdir(mode=0o700, exist_ok=True)
        draft = path.with_name(f"{path.name}.{job.folder.name}")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(self._settings(job)), encoding="utf-8")
        draft.replace(path)  # atomic: another run of the agent may be reading the file

    def _settings(self, job: CliJob) -> dict[str, Any]:
        agent = job.agent
        tools: dict[str, Any] = {"exclude": _excluded(job)}
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


def _excluded(job: CliJob) -> list[str]:
    """Return the tools that gemini does not get, by its names."""
    excluded = [GEMINI_TOOLS.get(tool, tool) for tool in denied_tools(job)]
    return excluded if job.agent.spawns else [*excluded, GEMINI_TOOLS["Task"]]


def _policy(job: CliJob) -> str:
    """Return a policy that makes gemini ask before every command, and denies it some tools and secret files.

    The settings deny these tools, too, but a user's own settings file stays as it is. By default, gemini runs
    commands such as `cat` without asking; a rule with a pattern for the arguments prevents that. It always
    reads files without asking, so the policy denies secret files by their names, and searches of all files.
    """
    rules = [(tool, "", "deny") for tool in _excluded(job)]
    if not any(tool == "run_shell_command" for tool, _, _ in rules):
        rules.append(("run_shell_command", ".", "ask_user"))
    if job.secrets:
        names = "|".join(map(_name_pattern, sorted({path.name for path in job.secrets})))
        rules += [(tool, rf'(^|[/\\"])({names})([/\\"]|$)', "deny") for tool in FILE_TOOLS]
        rules.append(("grep_search", "", "deny"))
    return "\n".join(_policy_rule(*rule) for rule in rules)


def _policy_rule(tool: str, pattern: str, decision: str) -> str:
    fields = {"toolName": tool, "decision": decision} | ({"argsPattern": pattern} if pattern else {})
    lines = [f"{name} = {toml_string(value)}" for name, value in fields.items()]
    return "\n".join(("[[rule]]", *lines, f"priority = {POLICY_PRIORITY}", ""))


def _name_pattern(name: str) -> str:
    """Return a regular expression that finds a file name in JSON, in any case."""
    escaped = SPECIAL_IN_PATTERNS.sub(r"\\\g<0>", json.dumps(name, ensure_ascii=False)[1:-1])
    return re.sub("[A-Za-z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", escaped)


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
