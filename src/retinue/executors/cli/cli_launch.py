"""The surroundings of a CLI's run: its environment, its state, its servers, and the sandbox around it all."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from retinue.core import Agent, RunContext
from retinue.executors.cli import cli_state
from retinue.executors.cli.cli_job import Job, Launch, check, writes
from retinue.executors.cli.cli_mcp import RELAY, SOCKET, child_server, needs_ours, ready
from retinue.executors.cli.cli_traits import CERTIFICATES, CliTraits
from retinue.executors.cli.server_exits import WITNESS
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
    installation_folders,
)

UNGUARDED = "no sandbox held this run: its programs had the rights of the user"
UNREACHABLE = "in a container on this system our MCP server cannot be reached, so its tools were not there"
UNTRUSTED = "the project has settings for this CLI that could not be hidden, so its MCP servers were off"
GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """One run's surroundings, as long as it lasts."""

    job: Job
    command: tuple[str, ...]
    """The CLI's program, and whatever arguments the agent gives it before ours."""
    sandbox: Sandbox
    place: SandboxAccess
    notes: tuple[str, ...]
    door: FifoBridge | None = None
    """Through which it reaches us, where programs of this machine cannot be started."""

    @property
    def isolation(self) -> str:
        return self.sandbox.name

    def program(self, launch: Launch) -> Program:
        env = {name: value for name, value in self.job.env.items() if name not in launch.withheld}
        argv = (*self.command, *launch.arguments)
        bare = Program(argv, {**env, **launch.env}, self.job.cwd, GRACE_S, launch.handed)
        if self.sandbox.has_host_programs:
            bare.find_file()  # a sandbox would only say that it failed
        return self.sandbox.enclose(bare, self.place)

    def reachable(self) -> AbstractAsyncContextManager[None]:
        """While it lasts, the run can ask."""
        return nullcontext() if self.door is None else self.door.open()

    async def clear(self, program: Program) -> None:
        await self.sandbox.clear(program)


class Launches(Protocol):
    """Any CLI: how it is started for a job."""

    profile: CliTraits

    def launch(self, job: Job) -> Launch: ...


@dataclass(frozen=True, slots=True)
class Ready:
    """A CLI with nothing left to decide before it starts."""

    prepared: Prepared
    launch: Launch
    program: Program


@dataclass(frozen=True, slots=True)
class CliLauncher:
    """What runs of all CLIs have in common."""

    environment: Mapping[str, str]
    """The server's own, of which a CLI sees only what is allowed."""
    state_folder: Path
    """Where agents' CLIs keep their state."""
    hidden: tuple[Path, ...] = ()
    """Folders that no run may see."""
    sandbox: Sandbox = field(default_factory=NoSandbox)

    def command(self, agent: Agent, argv: tuple[str, ...], ctx: RunContext) -> Program:
        """A command of the agent's in the same sandbox, without any of its secrets."""
        env = child_environment(self.environment, run_id=ctx.run_id)
        place = SandboxAccess(
            workspace=ctx.cwd,
            network=True if agent.network is None else agent.network,
            visible=(*installation_folders(argv[0], env), *_git_folder(ctx.cwd)),
            changeable=tuple(map(Path, agent.folders)),
            hidden=self.hidden,
        )
        return self.sandbox.enclose(Program(argv, env, ctx.cwd, GRACE_S), place)

    @contextmanager
    def starting(self, cli: Launches, agent: Agent, ctx: RunContext) -> Generator[Ready]:
        """What a run starts, and what `agents show` tells."""
        with self.prepare(cli.profile, agent, ctx) as prepared:
            launch = cli.launch(prepared.job)
            yield Ready(prepared, launch, prepared.program(launch))

    @contextmanager
    def prepare(self, profile: CliTraits, agent: Agent, ctx: RunContext) -> Generator[Prepared]:
        check(agent, profile)
        home = Path(self.environment.get("HOME", str(Path.home())))
        state = (
            cli_state.of_the_user(profile, home)
            if "user" in agent.settings
            else cli_state.prepare(profile, agent.name, self.state_folder, home)
        )
        env = child_environment(
            self.environment,
            run_id=ctx.run_id,
            inherit=profile.inherit,
            explicit={**profile.env, **state.env, **agent.env},
        )
        given = (*agent.env.values(), *mcp_server_values(agent.mcp_servers))
        ctx.hide(collect_secrets(self.environment, given, profile.inherit))
        servers = ready(agent.mcp_servers, self.environment)
        command = agent.command or (profile.program,)
        with tempfile.TemporaryDirectory(prefix="retinue-run-") as folder:
            reach: Mapping[str, str] = ctx.env if needs_ours(agent, profile) else {}
            door = None if self.sandbox.has_host_programs else create_fifo_bridge(Path(folder), reach)
            ours = child_server(reach) if self.sandbox.has_host_programs else door and door.server
            if ours:
                servers = (*servers, ours)
            job = Job(
                agent=agent,
                model=profile.model(agent.model),
                cwd=ctx.cwd,
                folder=Path(folder),
                servers=servers,
                ours=ours,
                resume=ctx.resume,
                has_host_programs=self.sandbox.has_host_programs,
                enclosed=self.sandbox.name != "none",
                env=env,
                trusts_project="project" in agent.settings or self._is_silent(profile, ctx.cwd),
                can_hand=SUPPORTS_SECRET_FILES and self.sandbox.has_host_programs,
            )
            place = self._place(job, command[0], env, state.folders, ctx)
            if "project" not in agent.settings:
                place = replace(place, emptied=_project_settings(profile, ctx.cwd))
            if door:
                place = replace(place, bridge_script=door.script)
            yield Prepared(job, command, self.sandbox, place, self._notes(job, profile), door)

    def _place(
        self, job: Job, executable: str, env: Mapping[str, str], state: tuple[Path, ...], ctx: RunContext
    ) -> SandboxAccess:
        agent = job.agent
        folders = tuple(Path(folder) for folder in agent.folders)
        visible = [
            WITNESS,
            *_git_folder(ctx.cwd),
            *(Path(env[name]) for name in CERTIFICATES if env.get(name)),
        ]
        if self.sandbox.has_host_programs:
            visible += installation_folders(executable, env)
            for server in job.servers:
                visible += _needed(server.argv, env)
        if job.ours and self.sandbox.has_host_programs:
            visible += [RELAY, Path(sys.prefix), Path(sys.base_prefix), *_socket(ctx)]
        return SandboxAccess(
            workspace=ctx.cwd,
            writable=writes(agent),
            network=True if agent.network is None else agent.network,
            visible=(*visible, *(() if writes(agent) else folders)),
            changeable=(job.folder, *state, *(folders if writes(agent) else ())),
            hidden=self.hidden,
        )

    def _is_silent(self, profile: CliTraits, cwd: Path) -> bool:
        """Whether the project has no settings for the CLI, or the sandbox keeps them out of its sight."""
        return self.sandbox.name != "none" or not _project_settings(profile, cwd)

    def _notes(self, job: Job, profile: CliTraits) -> tuple[str, ...]:
        notes = [] if job.enclosed else [UNGUARDED]
        if not job.ours and needs_ours(job.agent, profile) and not self.sandbox.has_host_programs:
            notes.append(UNREACHABLE)
        if not job.trusts_project:
            notes.append(UNTRUSTED)
        missing = [folder for folder in job.agent.folders if not Path(folder).is_dir()]
        return (*notes, *(f"its folder {folder} is not there" for folder in missing))


def _git_folder(cwd: Path) -> Iterator[Path]:
    """A worktree keeps its history in its repository: to be read, for nobody may plant hooks there."""
    for folder in (cwd, *cwd.parents):
        link = folder / ".git"
        if link.is_file():
            yield Path(link.read_text(encoding="utf-8").removeprefix("gitdir: ").strip()).parent.parent
            return


def _project_settings(profile: CliTraits, cwd: Path) -> tuple[Path, ...]:
    """In the folder, and above it as far as its repository reaches."""
    above = [folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()]
    folders = [cwd, *(each for each in cwd.parents if above and each.is_relative_to(above[0]))]
    places = (folder / name for folder in folders for name in profile.project_settings)
    return tuple(place for place in places if place.exists())


def _socket(ctx: RunContext) -> Iterator[Path]:
    if SOCKET in ctx.env:
        yield Path(ctx.env[SOCKET])


def _needed(argv: tuple[str, ...], env: Mapping[str, str]) -> Iterator[Path]:
    """What a server needs to start: its program, and the files that its arguments name."""
    if argv:
        yield from installation_folders(argv[0], env)
    for argument in argv[1:]:
        if argument.startswith("/") and Path(argument).is_file():
            yield Path(argument)
