"""Claude Code, as it is started for one job. What it answers is read by `claude_events`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from retinue.core import ASK_PARENT, PermissionRule, RunContext
from retinue.executors.cli.claude_dialogue import QUESTION_TOOL, ClaudeDialogue
from retinue.executors.cli.claude_events import ClaudeEvents
from retinue.executors.cli.cli_job import Job, Launch
from retinue.executors.cli.cli_mcp import OURS, ReadyServer, carried
from retinue.executors.cli.cli_traits import CLAUDE
from retinue.executors.process import secret_file_descriptor

KEY = "ANTHROPIC_API_KEY"
KEY_DESCRIPTOR = "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"
SUBAGENTS = ("Task", "Agent", "Workflow")
"""Its tools that start further agents."""
LONGEST_ASKING_MS = str(24 * 60 * 60 * 1000)
"""Questions to people take their time; whoever gives up first decides, and that must not be the CLI."""


class ClaudeCli:
    profile = CLAUDE

    def launch(self, job: Job) -> Launch:
        """Its commands inherit its environment, so where possible no secret is in there."""
        arguments = (*_basics(job), *_prompt(job), *_permissions(job), *_limits(job), "--strict-mcp-config")
        env = {"MCP_TOOL_TIMEOUT": LONGEST_ASKING_MS} if job.ours else dict[str, str]()
        if job.enclosed:
            env["IS_SANDBOX"] = "1"  # as root it refuses to skip questions outside of one
        servers = _servers(job)
        if not job.can_hand:
            return Launch((*arguments, "--mcp-config", servers), {**env, **carried(job.servers)})
        handed = [servers.encode()]
        arguments = (*arguments, "--mcp-config", f"/proc/self/fd/{secret_file_descriptor(0)}")
        if key := job.env.get(KEY):
            handed.append(key.encode())
            env[KEY_DESCRIPTOR] = str(secret_file_descriptor(1))
        return Launch(arguments, env, frozenset({KEY}), tuple(handed))

    def dialogue(self, ctx: RunContext) -> ClaudeDialogue:
        return ClaudeDialogue(ctx.permit, ctx.ask)

    def events(self, job: Job) -> ClaudeEvents:
        budget = job.agent.budget
        spent = job.resume.cost_micros if job.resume else 0
        return ClaudeEvents(
            max_steps=budget.steps,
            max_cost_micros=budget.cost_micros,
            max_tokens=budget.tokens,
            spent_before=spent,
        )


def _basics(job: Job) -> Iterator[str]:
    yield from ("-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
    yield from ("--permission-prompt-tool", "stdio")
    yield from ("--setting-sources", ",".join(job.agent.settings))
    if job.model:
        yield from ("--model", job.model)
    for folder in job.agent.folders:
        yield from ("--add-dir", folder)
    if job.resume:
        yield from ("--resume", job.resume.session_id, "--system-prompt-snapshot", "off")
    elif not (job.agent.session or job.agent.answers_json):  # an answer may go back to it
        yield "--no-session-persistence"


def _prompt(job: Job) -> Iterator[str]:
    if job.agent.prompt:
        kind = "--system-prompt-file" if job.agent.prompt_mode == "replace" else "--append-system-prompt-file"
        yield from (kind, job.write("system-prompt.md", job.agent.prompt))
    if schema := job.schema():
        yield from ("--json-schema", schema)


def _permissions(job: Job) -> Iterator[str]:
    agent = job.agent
    if agent.tools is not None:
        yield from ("--tools", ",".join(_own(tool) for tool in agent.tools if not tool.startswith("mcp__")))
    allowed = [str(PermissionRule.parse(rule)) for rule in agent.permissions.allow]
    if job.ours:
        allowed += [f"mcp__{OURS}"]
    if allowed:
        yield from ("--allowedTools", ",".join(allowed))
    denied = [
        str(PermissionRule.parse(_own(rule))) for rule in (*agent.permissions.deny, *agent.denied_tools)
    ]
    if not agent.spawns:
        denied += SUBAGENTS
    if denied:
        yield from ("--disallowedTools", ",".join(denied))
    if agent.permissions.mode:
        yield from ("--permission-mode", agent.permissions.mode)


def _own(tool: str) -> str:
    """Its own name for the tool."""
    return QUESTION_TOOL if tool == ASK_PARENT else tool


def _servers(job: Job) -> str:
    entry = _whole_entry if job.can_hand else _entry_with_references
    return json.dumps({"mcpServers": {server.name: entry(server) for server in job.servers}})


def _whole_entry(server: ReadyServer) -> dict[str, Any]:
    if server.url is not None:
        return {"type": "http", "url": server.url, "headers": dict(server.headers)}
    return {"command": server.argv[0], "args": list(server.argv[1:]), "env": dict(server.env)}


def _entry_with_references(server: ReadyServer) -> dict[str, Any]:
    """It fills in `${NAME}` from its own environment."""
    headers = {name: f"${{{server.header_variable(name)}}}" for name in server.headers}
    env = {name: f"${{{name}}}" if name in server.secret else value for name, value in server.env.items()}
    return _whole_entry(replace(server, headers=headers, env=env))


def _limits(job: Job) -> Iterator[str]:
    budget = job.agent.budget
    if budget.steps is not None:
        yield from ("--max-turns", str(budget.steps))
    if budget.cost_micros is not None:
        yield from ("--max-budget-usd", f"{budget.cost_micros / 1_000_000:f}")
