"""How coding CLIs differ (`CliTraits`), and what one has to do in a run (`CliJob`).

A CLI turns a job into a `Program`. Knows no particular CLI.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from retinue.core import Agent, Resumed
from retinue.executors.cli.mcp_servers import RETINUE_SERVER, ReadyServer
from retinue.executors.process import Program

CERTIFICATE_VARIABLES = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name files; a sandbox must show these files."""
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", *CERTIFICATE_VARIABLES)
MODEL_TIERS = ("fast", "default", "medium", "strong")
GRACE_S = 2.0
"""Seconds between asking a CLI to stop and killing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CliTraits:
    """How one coding CLI differs from the others, as data."""

    name: str
    """The name of its executor and of its program."""
    inherit: tuple[str, ...]
    """Variables of the server's environment that the CLI needs: the address of its API, keys, proxies."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that stop it from updating itself and from sending telemetry."""
    state_variables: Mapping[str, str]
    """Variables that move the CLI's state into the agent's own folder, with the path inside that folder."""
    login_files: Mapping[str, str] = field(default_factory=dict[str, str])
    """The user's login files, relative to the home folder, with their paths inside the agent's folder."""
    models_by_tier: Mapping[str, str] = field(default_factory=dict[str, str])
    """The CLI's models for our tiers. A missing tier means the CLI's default model."""
    project_settings: tuple[str, ...] = ()
    """Project files with settings or instructions that the CLI always reads: no option turns that off."""
    always_gets_retinue_server: bool = True
    """Whether every agent gets Retinue's MCP server. Starting it takes a tenth of a fast CLI's time, so some
    CLIs get it only for agents that need it."""
    has_question_tool: bool = False
    """Whether the CLI can ask its user a question without any MCP server."""
    asks_permission: bool = True
    """Whether it asks before it does something that no rule allows."""
    denies_reading: bool = False
    """Whether it takes rules that deny reading some files, and applies them without asking about others."""
    hides_files: Callable[[CliJob], bool] = lambda job: False
    """Whether its own settings keep the secrets of a job from its tools. Its commands are judged by rules, or
    see only what its own sandbox shows."""
    cost_of_hiding: str = ""
    """What it cannot do while its settings hide files, for a note."""
    reads_unasked: bool = False
    """Whether it always reads files without asking, so that no rule can deny it some of them."""
    has_permission_modes: bool = False
    """Whether it knows permission modes, such as `plan`."""
    replays_late: bool = False
    """Whether it still replays a loaded session after it has reported the session as loaded."""
    reports_cost: bool = False
    """Whether it reports what it spends, so that a cost limit can be enforced."""
    web_tools: tuple[str, ...] = ()
    """Its own tools that read the web, by its own names. It does without those that are denied."""

    def model_name(self, requested: str | None) -> str | None:
        """Return the model to request from the CLI, or None for its default."""
        return self.models_by_tier.get(requested) if requested in MODEL_TIERS else requested


@dataclass(frozen=True, slots=True, kw_only=True)
class CliJob:
    """The work of a coding CLI in one run. A CLI turns it into a `Program`."""

    agent: Agent
    model: str | None
    command: tuple[str, ...]
    """The CLI's program, followed by the agent's own arguments."""
    cwd: Path
    folder: Path
    """A temporary folder of this run, for files that the CLI reads. It is on disk: write no secrets here."""
    servers: tuple[ReadyServer, ...]
    """The MCP servers, including Retinue's own if the run gets it."""
    sandboxed: bool
    """Whether one of our sandboxes already confines the CLI."""
    has_host_programs: bool
    """Whether programs of this machine can be started where the CLI runs."""
    env: Mapping[str, str] = field(repr=False)
    """The environment, before the CLI adds its own variables."""
    can_read_secret_files: bool
    """Whether secrets can be passed as open files instead of environment variables."""
    trusts_project: bool
    """Whether the agent uses the project's settings, or the CLI cannot see any."""
    resume: Resumed | None = None
    """The session to continue."""
    secrets: tuple[Path, ...] = ()
    """Files and folders that the CLI must not read and that no sandbox hides."""

    @property
    def has_retinue_server(self) -> bool:
        return any(server.name == RETINUE_SERVER for server in self.servers)

    @property
    def output_schema(self) -> str | None:
        """The agent's output schema as JSON."""
        schema = self.agent.output_schema
        return None if schema is None else json.dumps(schema)

    def write_file(self, name: str, text: str) -> str:
        """Write a file for the CLI to read and return its path."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def program(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        without: frozenset[str] = frozenset(),
        secret_files: tuple[bytes, ...] = (),
    ) -> Program:
        """Return the CLI's program with these arguments.

        `env` adds variables and `without` removes some. The program reads `secret_files` from open files; the
        descriptor of the first is `secret_file_descriptor(0)`.
        """
        kept = {name: value for name, value in self.env.items() if name not in without}
        argv = (*self.command, *arguments)
        return Program(argv, {**kept, **(env or {})}, self.cwd, GRACE_S, secret_files)


class CodingCli(Protocol):
    """Any coding CLI."""

    traits: CliTraits

    def program(self, job: CliJob) -> Program:
        """Return what to start for a job."""
        ...
