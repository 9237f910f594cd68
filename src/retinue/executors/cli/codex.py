"""Codex, as it is started for one job. What it answers is read by `codex_events`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from retinue.core import RunContext
from retinue.executors.cli.cli_job import Job, Launch
from retinue.executors.cli.cli_mcp import OURS, ReadyServer, carried
from retinue.executors.cli.cli_traits import CODEX
from retinue.executors.cli.codex_events import CodexEvents

Toml: TypeAlias = "str | int | bool | Sequence[str] | Mapping[str, Toml]"
LONGEST_ASKING_S = 24 * 60 * 60


class CodexCli:
    """It never asks: a tool of an MCP server that no rule allows is refused by itself."""

    profile = CODEX

    def launch(self, job: Job) -> Launch:
        flags = [*_basics(job)]
        for name, value in _settings(job):
            flags += ("-c", f"{name}={toml(value)}")
        ending = ("resume", job.resume.session_id, "-") if job.resume else ("-",)
        return Launch(("exec", *flags, *ending), carried(job.servers))

    def dialogue(self, ctx: RunContext) -> None:
        """It hears nothing but its prompt."""

    def events(self, job: Job) -> CodexEvents:
        events = CodexEvents(
            model=job.model,
            max_steps=job.agent.budget.steps,
            used_before=job.resume.tokens if job.resume else 0,
        )
        for server in job.servers:
            if _allowed_tools(job, server) == []:
                events.report.note(f"no rule allows the tools of the MCP server {server.name}: left out")
        return events


def _basics(job: Job) -> Iterator[str]:
    yield from ("--json", "--skip-git-repo-check", "--disable", "plugins", "--disable", "apps")
    if not job.agent.spawns:
        yield from ("--disable", "multi_agent")
    if "user" not in job.agent.settings:
        yield "--ignore-user-config"
    if job.model:
        yield from ("-m", job.model)
    yield from ("-s", _own_sandbox(job), "-C", str(job.cwd))
    for folder in job.agent.folders:
        yield from ("--add-dir", folder)
    if schema := job.schema():
        yield from ("--output-schema", job.write("schema.json", schema))


def _own_sandbox(job: Job) -> str:
    """Inside ours it needs none of its own, and could not make one."""
    if job.enclosed:
        return "danger-full-access"
    return "workspace-write" if job.writable else "read-only"


def _settings(job: Job) -> Iterator[tuple[str, Toml]]:
    yield "analytics.enabled", False
    yield "shell_environment_policy.inherit", "core"  # keeps keys from the commands it runs
    if "project" not in job.agent.settings:
        yield "project_doc_max_bytes", 0
    if job.agent.prompt:
        if job.agent.prompt_mode == "replace":
            path = job.write("instructions.md", job.agent.prompt)
            yield "model_instructions_file", path
        else:
            yield "developer_instructions", job.agent.prompt
    if job.servers:
        yield "mcp_servers", _servers(job)


def _servers(job: Job) -> Mapping[str, Toml]:
    """As one table: the keys of its `-c` flags are split at dots, quoted or not."""
    allowed = [(server, _allowed_tools(job, server)) for server in job.servers]
    return {server.name: _entry(server, tools) for server, tools in allowed if tools != []}


def _entry(server: ReadyServer, allowed: list[str] | None) -> dict[str, Toml]:
    """Outside a sandbox of its own it approves whatever it sees, so it sees only what is allowed."""
    entry: dict[str, Toml] = {
        "required": True,  # else it begins without the tools of a server that is slow to start
        "tool_timeout_sec": LONGEST_ASKING_S,
        "default_tools_approval_mode": "approve",
    }
    if server.url is not None:
        headers = {name: server.header_variable(name) for name in server.headers}
        entry |= {"url": server.url, "env_http_headers": headers}
    else:
        plain = {name: value for name, value in server.env.items() if name not in server.secret}
        entry |= {"command": server.argv[0], "args": list(server.argv[1:])}
        entry |= {"env": plain, "env_vars": sorted(server.secret)}
    if allowed is not None:
        entry["enabled_tools"] = allowed
    return entry


def _allowed_tools(job: Job, server: ReadyServer) -> list[str] | None:
    """Those of a server's tools that may be called; None for all of them."""
    whole = f"mcp__{server.name}"
    rules = job.agent.permissions.allow
    if server.name == OURS or whole in rules or f"{whole}__*" in rules:
        return None if server.tools is None else list(server.tools)
    named = [rule.removeprefix(f"{whole}__") for rule in rules if rule.startswith(f"{whole}__")]
    return [tool for tool in named if server.tools is None or tool in server.tools]


def toml(value: Toml) -> str:
    """A value as TOML writes it; its strings are JSON's."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Mapping():
            return "{" + ", ".join(f"{toml(name)} = {toml(each)}" for name, each in value.items()) + "}"
        case _:
            return "[" + ", ".join(map(toml, value)) + "]"
