"""What a coding CLI is to do in one run, and what it is started with. Knows no particular CLI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from retinue.core import Agent, ConfigInvalid, PermissionRule, Resumed, RunContext
from retinue.executors.cli.cli_mcp import ReadyServer
from retinue.executors.cli.cli_report import CliEvents
from retinue.executors.cli.cli_traits import CliTraits

WRITING = frozenset({"bash", "edit", "multiedit", "write", "notebookedit", "shell", "apply_patch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    agent: Agent
    model: str | None
    cwd: Path
    folder: Path
    """Of this run alone, for files that the CLI is to read. Nothing secret: it is on disk."""
    servers: tuple[ReadyServer, ...]
    ours: ReadyServer | None
    """The server through which the run reaches us; among `servers` too."""
    has_host_programs: bool
    """Whether programs of this machine can be started where it runs."""
    enclosed: bool
    """Whether a sandbox of ours already holds it."""
    env: Mapping[str, str] = field(repr=False)
    """Its environment, before the CLI's own additions."""
    can_hand: bool
    """Whether it can be handed secrets as open files."""
    trusts_project: bool
    """Whether the agent wants the project's settings, or the CLI cannot see any."""
    resume: Resumed | None = None
    """The session to go on with."""

    @property
    def writable(self) -> bool:
        return writes(self.agent)

    def write(self, name: str, text: str) -> str:
        """A file for the CLI to read; its path."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def schema(self) -> str | None:
        schema = self.agent.output_schema
        return None if schema is None else json.dumps(schema)


@dataclass(frozen=True, slots=True)
class Launch:
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables in addition to the job's."""
    withheld: frozenset[str] = frozenset()
    """Variables of the job's that it gets in another way."""
    handed: tuple[bytes, ...] = field(default=(), repr=False)
    """Secrets that it reads from open files."""
    preamble: str = ""
    """What it is to be told before the task, where it has no system prompt that could be set."""


class Dialogue(Protocol):
    """What is said to a CLI on its stdin while it works."""

    def begin(self, stdin: asyncio.StreamWriter, prompt: str) -> None: ...

    def hear(self, event: Mapping[str, Any]) -> None: ...

    async def end(self) -> None: ...


class Cli(Protocol):
    """One coding CLI: how it is started for a job, who reads what it says, and who answers."""

    profile: CliTraits

    def launch(self, job: Job) -> Launch: ...

    def events(self, job: Job) -> CliEvents: ...

    def dialogue(self, ctx: RunContext) -> Dialogue | None:
        """None for one that is told its prompt and nothing else."""
        ...


def writes(agent: Agent) -> bool:
    """Whether the agent may change its workspace: unless it was given tools, and none that could."""
    return agent.tools is None or any(tool.lower() in WRITING for tool in agent.tools)


def check(agent: Agent, profile: CliTraits) -> None:
    """Refuse a limit or a rule that nobody could hold (P7)."""
    if agent.permissions.mode and not profile.has_modes:
        raise ConfigInvalid(f"{agent.source}: {profile.name} has no permission modes", hint="take it out")
    if not profile.asks:
        for text in (*agent.permissions.allow, *agent.permissions.deny):
            _check_unasked(text, agent, profile)
    if agent.budget.cost_micros is not None and not profile.tells_cost:
        raise ConfigInvalid(
            f"{agent.source}: {profile.name} does not tell what it spends, so a limit of cost cannot be held",
            hint="limit its steps or its time instead",
        )


def _check_unasked(text: str, agent: Agent, profile: CliTraits) -> None:
    """A CLI that never asks can only be told which tools of MCP servers it may call."""
    if not PermissionRule.parse(text).tool.startswith("mcp__") or text in agent.permissions.deny:
        raise ConfigInvalid(
            f"{agent.source}: {profile.name} never asks, so the rule {text} cannot be held",
            hint="what its sandbox allows is allowed; only MCP tools can be allowed by rule",
        )
