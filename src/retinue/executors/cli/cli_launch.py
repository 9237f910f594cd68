"""Prepares the start of a coding CLI: its environment, state folder, MCP servers and sandbox.

A CLI turns a `CliJob` into a `Program`, and `PreparedCli` is that program inside its sandbox, ready to start.
Knows no particular CLI and starts nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.core import (
    ASK_PARENT,
    Agent,
    Permit,
    RunContext,
)
from retinue.executors.cli.cli_job import CERTIFICATE_VARIABLES, CliJob, CliTraits, CodingCli
from retinue.executors.cli.cli_restrictions import (
    check_enforceable,
    deny_secrets,
    deny_web,
    reading_rule,
    secret_notes,
    web_notes,
    without_web,
)
from retinue.executors.cli.mcp_servers import (
    EXIT_RECORDER,
    RELAY,
    RETINUE_SERVER,
    SOCKET_VARIABLE,
    fill_in_secrets,
    retinue_server,
)
from retinue.executors.executor_module import WebAccess
from retinue.executors.process import (
    SUPPORTS_SECRET_FILES,
    Program,
    child_environment,
    collect_secrets,
    mcp_server_values,
)
from retinue.executors.sandbox import (
    FifoBridge,
    NoSandbox,
    Sandbox,
    SandboxAccess,
    create_fifo_bridge,
    find_secrets,
    installation_folders,
    repository_of_worktree,
)
from retinue.store import SESSION_SUFFIX, temporary_folder

if TYPE_CHECKING:  # slow to load
    from retinue.codebase import Policy, SecretFiles

WRITING_TOOLS = frozenset({"bash", "edit", "multiedit", "write", "notebookedit", "shell", "apply_patch"})

NO_SANDBOX_NOTE = "no sandbox: the run's programs had all rights of your user"
UNREACHABLE_NOTE = (
    "Retinue's MCP server cannot be reached from a container on this system: its tools were off"
)
UNTRUSTED_NOTE = "the project has settings for this CLI that could not be hidden, so its MCP servers were off"

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PreparedCli:
    """A coding CLI that is ready to start. Its files exist until the run ends."""

    job: CliJob
    program: Program
    """What is started: the CLI, inside its sandbox."""
    argv: tuple[str, ...]
    """The command line of the CLI itself."""
    sandbox: Sandbox
    notes: tuple[str, ...]
    """Sentences about this run's environment that the user should know."""
    permit: Permit
    """Decides on tool calls of the run. Denies reading secret files."""
    bridge: FifoBridge | None = None
    """Connects a container to the Retinue server. None if the run needs no bridge."""

    def connected(self) -> AbstractAsyncContextManager[None]:
        """Keep the bridge open while the CLI runs."""
        return nullcontext() if self.bridge is None else self.bridge.open()


@dataclass(frozen=True, slots=True)
class CliLauncher:
    """Prepares runs of any coding CLI."""

    environment: Mapping[str, str]
    """The server's own environment. A CLI sees only the allowed part."""
    state_folder: Path
    """Where the CLIs keep their state for our agents."""
    hidden: tuple[Path, ...] = ()
    """Folders that no run may see."""
    outside: tuple[Path, ...] = ()
    """Folders of projects. A CLI is never taken from there, even if they are on PATH."""
    sandbox: Sandbox = field(default_factory=NoSandbox)
    policy: Policy = field(default_factory=lambda: _default_policy())
    """What agents may read. What it hides is kept from a CLI as far as possible."""
    web_access: WebAccess = field(default_factory=WebAccess)
    """Whether CLIs may use their own tools for the web."""

    async def find_secrets(self, agent: Agent, ctx: RunContext) -> SecretFiles:
        """Find the files that a run must not read, in its folder and in the agent's other folders."""

        return await find_secrets(agent, ctx, self.policy)

    @contextmanager
    def prepare(
        self, cli: CodingCli, agent: Agent, ctx: RunContext, secrets: SecretFiles | None = None
    ) -> Generator[PreparedCli]:
        """Prepare everything for one run, without starting it. `agents show` uses this too.

        Keeps the CLI from the `secrets`: by empty mounts in a sandbox, by rules, or by its own settings. If
        none of them is possible, a note says so. Takes the CLI's own tools for the web away if the user has
        not switched the web on.
        """
        check_enforceable(agent, cli.traits)
        lacking = tuple(web_notes(agent, cli.traits, self.web_access))
        agent = without_web(agent, cli.traits, self.web_access)
        paths = secrets.paths if secrets else ()
        rules = tuple(map(reading_rule, paths)) if cli.traits.asks_permission else ()
        if cli.traits.denies_reading:
            permissions = replace(agent.permissions, deny=(*agent.permissions.deny, *rules))
            agent = replace(agent, permissions=permissions)
        with temporary_folder("run-") as folder:
            job, access, bridge = self._build_job(cli.traits, agent, ctx, folder)
            access = replace(access, emptied=(*access.emptied, *paths))
            job = replace(job, secrets=() if job.sandboxed else paths)
            program = cli.program(job)
            if job.has_host_programs:
                program.find_file()  # raises if it is missing; a sandbox would only report that it failed
            notes = (
                *_environment_notes(job, cli.traits),
                *secret_notes(job, cli.traits, secrets),
                *lacking,
            )
            enclosed = self.sandbox.enclose(program, access)
            permit = deny_secrets(ctx.permit, rules) if rules else ctx.permit
            if reason := self.web_access.closed_to_clis:
                permit = deny_web(permit, reason)
            yield PreparedCli(job, enclosed, program.argv, self.sandbox, notes, permit, bridge)

    def state_of(self, traits: CliTraits, agent: Agent) -> CliState:
        """Return where the CLI keeps its state for this agent."""
        home = Path(self.environment.get("HOME", str(Path.home())))
        if "user" in agent.settings:
            return user_state(traits, home)
        return prepare_state(traits, agent.name, self.state_folder, home)

    def _build_job(
        self, traits: CliTraits, agent: Agent, ctx: RunContext, folder: Path
    ) -> tuple[CliJob, SandboxAccess, FifoBridge | None]:
        """Return the job, what its sandbox shows, and the bridge to the Retinue server if it needs one."""
        state = self.state_of(traits, agent)
        env = child_environment(
            self.environment,
            run_id=ctx.run_id,
            inherit=traits.inherit,
            explicit={**traits.env, **state.env, **agent.env},
        )
        templates = (*agent.env.values(), *mcp_server_values(agent.mcp_servers))
        ctx.hide(collect_secrets(self.environment, templates, traits.inherit))
        servers = fill_in_secrets(agent.mcp_servers, self.environment)

        has_host_programs = self.sandbox.has_host_programs
        reads_skills = ctx.skills is not None and bool(ctx.skills.index)
        wants_server = reads_skills or needs_retinue_server(agent, traits)
        connection: Mapping[str, str] = ctx.env if wants_server else {}
        bridge = None if has_host_programs else create_fifo_bridge(folder, connection)
        own_server = retinue_server(connection) if has_host_programs else bridge and bridge.server
        job = CliJob(
            agent=agent,
            model=traits.model_name(agent.model),
            command=self._command_line(agent, traits, env, ctx.cwd),
            cwd=ctx.cwd,
            folder=folder,
            servers=(*servers, own_server) if own_server else servers,
            sandboxed=self.sandbox.name != "none",
            has_host_programs=has_host_programs,
            env=env,
            can_read_secret_files=SUPPORTS_SECRET_FILES and has_host_programs,
            trusts_project="project" in agent.settings or self._hides_project(traits, ctx.cwd),
            resume=ctx.resume,
        )
        emptied = () if "project" in agent.settings else _project_settings(traits, ctx.cwd)
        return job, self._sandbox_access(job, state, ctx, emptied, bridge), bridge

    def _sandbox_access(
        self,
        job: CliJob,
        state: CliState,
        ctx: RunContext,
        emptied: tuple[Path, ...],
        bridge: FifoBridge | None,
    ) -> SandboxAccess:
        """Return what the sandbox shows the CLI and lets it change."""
        agent, env = job.agent, job.env
        folders = tuple(Path(folder) for folder in agent.folders)
        writable = can_write(agent)
        visible = [
            EXIT_RECORDER,
            *repository_of_worktree(ctx.cwd),
            *(Path(env[name]) for name in CERTIFICATE_VARIABLES if env.get(name)),
        ]
        if job.has_host_programs:
            visible += installation_folders(job.command[0], env)
            for server in job.servers:
                visible += _files_of_server(server.argv, env)
            if job.has_retinue_server:
                visible += [RELAY, Path(sys.prefix), Path(sys.base_prefix)]
                if SOCKET_VARIABLE in ctx.env:
                    visible.append(Path(ctx.env[SOCKET_VARIABLE]))
        return SandboxAccess(
            workspace=ctx.cwd,
            writable=writable,
            network=True if agent.network is None else agent.network,
            visible=(*visible, *(() if writable else folders)),
            changeable=(job.folder, *state.folders, *(folders if writable else ())),
            hidden=self.hidden,
            emptied=emptied,
            bridge_script=bridge.script if bridge else None,
        )

    def _command_line(
        self, agent: Agent, traits: CliTraits, env: Mapping[str, str], cwd: Path
    ) -> tuple[str, ...]:
        """Return the CLI's program, found outside the folder it works in, and the agent's own arguments."""
        name, *arguments = agent.command or (traits.name,)
        if not self.sandbox.has_host_programs or os.path.dirname(name):  # noqa: PTH120
            return (name, *arguments)
        return (Program((name,), env, cwd).find_file((cwd, *self.outside)), *arguments)

    def _hides_project(self, traits: CliTraits, cwd: Path) -> bool:
        """Return whether the project has no settings for the CLI, or the sandbox hides them."""
        return self.sandbox.name != "none" or not _project_settings(traits, cwd)


def can_write(agent: Agent) -> bool:
    """Return whether the agent may change its workspace: always, unless it lists no tool that writes."""
    return agent.tools is None or any(tool.lower() in WRITING_TOOLS for tool in agent.tools)


def needs_retinue_server(agent: Agent, traits: CliTraits) -> bool:
    """Return whether a run gets Retinue's MCP server: for notes, memories, subagents, or questions."""
    if traits.always_gets_retinue_server or agent.session or agent.memory or agent.spawns:
        return True
    named = (*(agent.tools or ()), *agent.permissions.allow)
    asks = ASK_PARENT in named and not traits.has_question_tool
    return asks or any(name.startswith(f"mcp__{RETINUE_SERVER}") for name in named)


@dataclass(frozen=True, slots=True)
class CliState:
    """Where a CLI keeps its settings, memories and sessions."""

    env: Mapping[str, str]
    """Variables that tell the CLI where its state is."""
    folders: tuple[Path, ...]
    """Paths that the CLI must be able to change: its state, and the login, which it renews at times."""


def prepare_state(traits: CliTraits, agent: str, state_folder: Path, home: Path) -> CliState:
    """Create an agent's own state folder. From the user's state it links only the login."""
    folder = state_folder / traits.name / _file_name(agent)
    env: dict[str, str] = {}
    for variable, relative in traits.state_variables.items():
        path = folder / relative
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        env[variable] = str(path)
    linked: list[Path] = []
    for path, relative in traits.login_files.items():
        login, link = home / path, folder / relative
        if login.is_file():
            linked.append(login)
            if not link.exists():
                link.unlink(missing_ok=True)
                link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                link.symlink_to(login)
    return CliState(env, (folder, *linked))


def user_state(traits: CliTraits, home: Path) -> CliState:
    """Return the user's own state, for agents that use the user's settings."""
    folders = {home / Path(path).parts[0] for path in traits.login_files}
    return CliState({}, tuple(sorted(folders)))


def session_folder(state_folder: Path, cli: str, agent: str) -> Path:
    """Return the folder that records which sessions an agent can resume."""
    return state_folder / cli / f"{_file_name(agent)}{SESSION_SUFFIX}"


def _file_name(agent: str) -> str:
    """Turn an agent's name, which may contain any character, into a safe folder name."""
    return agent if _PLAIN_NAME.fullmatch(agent) else hashlib.sha256(agent.encode()).hexdigest()[:16]


def _environment_notes(job: CliJob, traits: CliTraits) -> Iterator[str]:
    """Yield what the user should know about the environment of this run."""
    if not job.sandboxed:
        yield NO_SANDBOX_NOTE
    wanted = needs_retinue_server(job.agent, traits)
    if wanted and not job.has_retinue_server and not job.has_host_programs:
        yield UNREACHABLE_NOTE
    if not job.trusts_project:
        yield UNTRUSTED_NOTE
    for folder in job.agent.folders:
        if not Path(folder).is_dir():
            yield f"the agent's folder {folder} does not exist"


def _default_policy() -> Policy:
    from retinue.codebase import Policy  # here, so that servers start sooner

    return Policy()


def _project_settings(traits: CliTraits, cwd: Path) -> tuple[Path, ...]:
    """Return the CLI's settings in the working directory and above, up to the top of its repository."""
    repositories = [folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()]
    above = [folder for folder in cwd.parents if repositories and folder.is_relative_to(repositories[0])]
    paths = (folder / name for folder in (cwd, *above) for name in traits.project_settings)
    return tuple(path for path in paths if path.exists())


def _files_of_server(argv: tuple[str, ...], env: Mapping[str, str]) -> Iterator[Path]:
    """Yield what an MCP server needs to start: its program, and files that its arguments name."""
    if argv:
        yield from installation_folders(argv[0], env)
    for argument in argv[1:]:
        if argument.startswith("/") and Path(argument).is_file():
            yield Path(argument)
