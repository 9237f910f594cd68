"""Runs Codex: builds its command line and reads its events (`codex exec --json`)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from retinue.core import (
    WEB_SEARCH,
    Agent,
    Executor,
    LimitExceeded,
    ModelFailed,
    RunContext,
    ToolRequest,
    as_int,
    as_object,
    as_text,
    clip,
    toml_string,
)
from retinue.executors.cli.cli_factory import make_cli_executor, preview_cli
from retinue.executors.cli.cli_job import PROXY_VARIABLES, CliJob, CliTraits
from retinue.executors.cli.cli_launch import can_write
from retinue.executors.cli.cli_output import CliReport, limit_error, log_lines
from retinue.executors.cli.cli_process import CliExecutor
from retinue.executors.cli.mcp_servers import RETINUE_SERVER, ReadyServer, secret_variables
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.process import Program
from retinue.tools import canonical_name

TomlValue: TypeAlias = "str | int | bool | Sequence[str] | Mapping[str, TomlValue]"
TOOL_TIMEOUT_S = 24 * 60 * 60
"""Long enough for a question to a person: Retinue, not the CLI, decides when to stop waiting."""
PROFILE = "retinue"
"""The name of the permission profile that hides secret files."""
SPECIAL_IN_PATTERNS = re.compile(r"[*?\[\]{}]")
STEP_ITEMS = ("command_execution", "mcp_tool_call", "file_change", "web_search")
"""The kinds of items that count as steps."""


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with Codex."""
    return make_cli_executor(partial(CliExecutor, CodexCli()), agent, surroundings)


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return what a run of the agent would start."""
    return preview_cli(CodexCli(), agent, surroundings)


class CodexCli:
    """Codex never asks for permission, so it only sees the MCP tools that a rule allows."""

    traits = CliTraits(
        name="codex",
        inherit=("OPENAI_API_KEY", "OPENAI_BASE_URL", *PROXY_VARIABLES),
        state_variables={"CODEX_HOME": "."},
        login_files={".codex/auth.json": "auth.json"},
        always_gets_retinue_server=False,
        asks_permission=False,
        hides_files=lambda job: _has_profile(job),
        web_tools=(WEB_SEARCH,),
    )

    def program(self, job: CliJob) -> Program:
        settings = [("-c", f"{name}={to_toml(value)}") for name, value in _settings(job)]
        prompt = ("resume", job.resume.session_id, "-") if job.resume else ("-",)
        return job.program(
            "exec",
            *_basic_flags(job),
            *(flag for setting in settings for flag in setting),
            *prompt,
            env=secret_variables(job.servers),
        )

    def events(self, job: CliJob) -> CodexEvents:
        events = CodexEvents(
            model=job.model,
            max_steps=job.agent.budget.steps,
            earlier_tokens=job.resume.tokens if job.resume else 0,
        )
        for server in job.servers:
            if _allowed_tools(job, server) == []:
                events.report.note(
                    f"no rule allows the tools of the MCP server {server.name}, so it was left out"
                )
        return events

    def dialogue(self, ctx: RunContext) -> None:
        """Return None, because codex reads its prompt and nothing else."""


def _basic_flags(job: CliJob) -> Iterator[str]:
    yield from ("--json", "--skip-git-repo-check", "--disable", "plugins", "--disable", "apps")
    if not job.agent.spawns:
        yield from ("--disable", "multi_agent")
    if "user" not in job.agent.settings:
        yield "--ignore-user-config"
    if job.model:
        yield from ("-m", job.model)
    if not _has_profile(job):
        yield from ("-s", _codex_sandbox(job))
    yield from ("-C", str(job.cwd))
    for folder in job.agent.folders:
        yield from ("--add-dir", folder)
    if schema := job.output_schema:
        yield from ("--output-schema", job.write_file("schema.json", schema))


def _codex_sandbox(job: CliJob) -> str:
    """Return codex's own sandbox mode. Inside our sandbox it needs none, and could not create one."""
    if job.sandboxed:
        return "danger-full-access"
    return "workspace-write" if can_write(job.agent) else "read-only"


def _has_profile(job: CliJob) -> bool:
    """Return whether codex's sandbox is set up by a permission profile: the only way to hide files from it.

    On Windows, its usual sandbox cannot hide any.
    """
    return bool(job.secrets) and sys.platform != "win32"


def _settings(job: CliJob) -> Iterator[tuple[str, TomlValue]]:
    yield "analytics.enabled", False
    if _has_profile(job):
        base = ":workspace" if can_write(job.agent) else ":read-only"
        denied = {SPECIAL_IN_PATTERNS.sub("?", str(path)): "deny" for path in job.secrets}
        yield "default_permissions", PROFILE
        yield "permissions", {PROFILE: {"extends": base, "filesystem": denied}}
    yield "shell_environment_policy.inherit", "core"  # keeps keys from the commands that codex runs
    if not _may_search_web(job.agent):
        yield WEB_SEARCH, "disabled"
    if "project" not in job.agent.settings:
        yield "project_doc_max_bytes", 0
        yield "skills.include_instructions", False  # Retinue tells the agent of skills that are approved
    if job.agent.prompt:
        if job.agent.prompt_mode == "replace":
            yield "model_instructions_file", job.write_file("instructions.md", job.agent.prompt)
        else:
            yield "developer_instructions", job.agent.prompt
    if job.servers:
        # One table for all: codex splits the keys of `-c` at dots, even inside quotes.
        allowed = [(server, _allowed_tools(job, server)) for server in job.servers]
        yield (
            "mcp_servers",
            {server.name: _server_entry(server, tools) for server, tools in allowed if tools != []},
        )


def _may_search_web(agent: Agent) -> bool:
    """Return whether codex gets its search, which is its only tool for the web."""
    if WEB_SEARCH in agent.denied_tools:
        return False
    return agent.tools is None or any(canonical_name(tool) == WEB_SEARCH for tool in agent.tools)


def _server_entry(server: ReadyServer, tools: list[str] | None) -> dict[str, TomlValue]:
    """Return a server's settings. Codex approves every tool that it sees, so it sees only `tools`."""
    entry: dict[str, TomlValue] = {
        "required": True,  # else codex begins without the tools of a server that starts slowly
        "tool_timeout_sec": TOOL_TIMEOUT_S,
        "default_tools_approval_mode": "approve",
    }
    if server.url is not None:
        headers = {name: server.header_variable(name) for name in server.headers}
        entry |= {"url": server.url, "env_http_headers": headers}
    else:
        public = {name: value for name, value in server.env.items() if name not in server.secret}
        entry |= {"command": server.argv[0], "args": list(server.argv[1:])}
        entry |= {"env": public, "env_vars": sorted(server.secret)}
    if tools is not None:
        entry["enabled_tools"] = tools
    return entry


def _allowed_tools(job: CliJob, server: ReadyServer) -> list[str] | None:
    """Return the tools of a server that a rule allows, or None for all."""
    prefix = f"mcp__{server.name}"
    rules = job.agent.permissions.allow
    if server.name == RETINUE_SERVER or prefix in rules or f"{prefix}__*" in rules:
        return None if server.tools is None else list(server.tools)
    named = [rule.removeprefix(f"{prefix}__") for rule in rules if rule.startswith(f"{prefix}__")]
    return [tool for tool in named if server.tools is None or tool in server.tools]


def to_toml(value: TomlValue) -> str:
    """Return a value as TOML, with tables inline: that is how codex takes them in `-c`."""
    match value:
        case str():
            return toml_string(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Mapping():
            items = (f"{to_toml(name)} = {to_toml(each)}" for name, each in value.items())
            return "{" + ", ".join(items) + "}"
        case _:
            return "[" + ", ".join(map(to_toml, value)) + "]"


class CodexEvents:
    """Reads codex's events into a report.

    Codex does not count model calls, so each of its actions is a step, and the answer is another. Its `error`
    events can also mean "trying again", so only the end of the turn counts as a failure.
    """

    def __init__(
        self, *, model: str | None = None, max_steps: int | None = None, earlier_tokens: int = 0
    ) -> None:
        """`earlier_tokens` are the session's tokens before this run; codex reports the total."""
        self.report = CliReport(model=model)
        self._max_steps = max_steps
        self._earlier_tokens = earlier_tokens

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Add an event to the report and yield the lines that show it in the log."""
        report = self.report
        match event.get("type"):
            case "thread.started":
                report.session_id = as_text(event.get("thread_id")) or None
                yield "codex: started"
            case "item.started":
                self._count_step(as_object(event.get("item")))
            case "item.completed":
                yield from self._take_item(as_object(event.get("item")))
            case "turn.completed":
                usage = as_object(event.get("usage"))
                total = as_int(usage.get("input_tokens")) + as_int(usage.get("output_tokens"))
                report.ended = True
                report.error = None
                report.steps += 1
                report.tokens = max(0, total - self._earlier_tokens)
                yield "codex: ended"
            case "turn.failed":
                report.ended = True
                said = _message(event.get("error"))
                message = clip(said, 300)
                report.error = limit_error("codex", said) or ModelFailed(f"codex failed: {message}")
                yield f"codex: failed, {message}"
            case "error":
                yield f"codex: {clip(_message(event), 300)}"
            case _:
                return

    def _count_step(self, item: Mapping[str, Any]) -> None:
        if item.get("type") not in STEP_ITEMS:
            return
        self.report.steps += 1
        if self._max_steps is not None and self.report.steps >= self._max_steps:
            raise LimitExceeded("steps", self.report.steps + 1, self._max_steps)

    def _take_item(self, item: Mapping[str, Any]) -> Iterator[str]:
        match item.get("type"):
            case "agent_message":
                self.report.answer = as_text(item.get("text"))
                yield from log_lines("codex", self.report.answer)
            case "command_execution":
                self._record_command(item)
                yield from log_lines("uses", f"{item.get('command')} -> exit code {item.get('exit_code')}")
                yield from log_lines("tool", as_text(item.get("aggregated_output")))
            case "mcp_tool_call":
                call = f"{item.get('server')}.{item.get('tool')} {json.dumps(item.get('arguments'))}"
                failed = item.get("status") == "failed"
                name = f"mcp__{item.get('server')}__{item.get('tool')}"
                self.report.activity.call(name, failed=failed)
                yield from log_lines("uses", f"{call} -> {item.get('status')}")
            case "error":
                self.report.note(clip(_message(item), 300))
                yield from log_lines("codex", _message(item))
            case kind:
                if kind in STEP_ITEMS:
                    failed = item.get("status") == "failed"
                    self.report.activity.call("Edit" if kind == "file_change" else str(kind), failed=failed)
                yield f"codex: {kind}"

    def _record_command(self, item: Mapping[str, Any]) -> None:
        """Record a command, unless codex declined to run it."""
        exit_code = item.get("exit_code")
        if item.get("status") != "declined":
            request = ToolRequest("Bash", as_text(item.get("command")))
            known = exit_code if isinstance(exit_code, int) else None
            self.report.activity.request(request, exit_code=known)


def _message(error: object) -> str:
    """Return the text of an error, which is a string or an object with a `message`."""
    return as_text(error) or as_text(as_object(error).get("message"))
