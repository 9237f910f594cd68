"""Builds the executor of an agent, and previews what its runs would start.

To add an executor, add it to `build_executors` and to `definitions/supported_fields.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.config import DATA_DIR, Settings
from retinue.core import Agent, Executor, Redactor, Root, RunContext, Unavailable
from retinue.executors import CONTEXT_SHARE, MAX_STEPS, MAX_TOKENS

if TYPE_CHECKING:
    from retinue.executors import (
        AcpCli,
        CliLauncher,
        CodingCli,
        CommandExecutor,
        EventStreamCli,
        InContainer,
        LaunchPreview,
        Sandbox,
    )
    from retinue.models import Models

EVENT_STREAM_CLIS = ("claude", "codex")
CLIS = (*EVENT_STREAM_CLIS, "gemini", "opencode", "acp")

IN_WORKTREE = "each run works in its own git worktree instead of this folder"
IN_PROCESS = "no program is started: the server itself calls the model"
LOCAL_LIMITS = (
    f"built-in limits: {MAX_STEPS} steps, and per request the smaller of {MAX_TOKENS} tokens and "
    f"{CONTEXT_SHARE:.0%} of the model's context"
)


def build_executors(
    settings: Settings, roots: Sequence[Root], redactor: Redactor, models: Models
) -> Mapping[str, Callable[[Agent], Executor]]:
    """All executors by name, each as a function that creates the executor of an agent."""
    local = {"local": partial(_local_executor, settings, roots, redactor, models)}
    clis = dict.fromkeys(CLIS, partial(cli_executor, settings.data_dir))
    command = partial(command_executor, settings.data_dir)
    return {"command": command, **clis, **(local if models.plan.configured else {})}


def command_executor(data_dir: Path, agent: Agent) -> Executor:
    return _validated(partial(_bare_command_executor, data_dir), agent)


def _bare_command_executor(data_dir: Path, agent: Agent) -> Executor:
    from retinue.executors import WithPreamble

    return WithPreamble(agent.prompt, build_command(data_dir, agent))


def build_command(data_dir: Path, agent: Agent) -> CommandExecutor | InContainer:
    """The executor that starts an agent's program, in a container if the agent names one."""
    from retinue.executors import CommandConfig, CommandExecutor, InContainer, Template

    make = partial(CommandExecutor, CommandConfig(Template(agent.command), env=agent.env), os.environ)
    return InContainer(make, agent, _choose_sandbox(agent), data_dir.resolve()) if agent.container else make()


def cli_executor(data_dir: Path, agent: Agent) -> Executor:
    """The executor of a coding CLI, with its sandbox, worktree, session and acceptance commands."""
    from retinue.executors import WithAcceptance, WithSession, WithWorktree, session_folder

    setting = cli_launcher(data_dir, agent)
    sessions = session_folder(setting.state_folder, agent.executor, agent.name)
    executor = _validated(partial(_bare_cli_executor, setting), agent)
    if agent.acceptance:
        commands = partial(setting.command, agent)
        executor = WithAcceptance(executor, agent.acceptance, commands, setting.sandbox.clear)
    if agent.isolation == "worktree":
        name = partial(_session_name, sessions) if agent.session else None
        executor = WithWorktree(executor, data_dir.resolve() / "worktrees", os.environ, name)
    return WithSession(executor, sessions) if agent.session else executor


def _bare_cli_executor(setting: CliLauncher, agent: Agent) -> Executor:
    from retinue.executors import JSON_ALONE, AcpExecutor, CliExecutor, WithPreamble

    executor: Executor
    if agent.executor in EVENT_STREAM_CLIS:
        executor = CliExecutor(_event_stream_cli(agent), agent, setting)
    else:
        executor = AcpExecutor(_acp_cli(agent), agent, setting)
    knows_format = agent.output_schema is not None or not agent.answers_json
    return executor if knows_format else WithPreamble(JSON_ALONE, executor)


def _session_name(sessions: Path, ctx: RunContext) -> str:
    """The key of the session that a run resumes, so that it gets the same worktree again."""
    from retinue.store import SessionFile

    return SessionFile.for_agent(sessions, ctx.cwd).key


def cli_launcher(data_dir: Path, agent: Agent) -> CliLauncher:
    """Prepares the environment, state and sandbox of an agent's coding CLI."""
    from retinue.executors import CliLauncher

    return CliLauncher(os.environ, cli_state_folder(data_dir), (data_dir.resolve(),), _choose_sandbox(agent))


def cli_state_folder(data_dir: Path) -> Path:
    """The folder in which the agents' coding CLIs keep their state."""
    return data_dir.resolve() / "clis"


def coding_cli(agent: Agent) -> CodingCli:
    """The coding CLI that an agent's executor names."""
    return _event_stream_cli(agent) if agent.executor in EVENT_STREAM_CLIS else _acp_cli(agent)


def _event_stream_cli(agent: Agent) -> EventStreamCli:
    from retinue.executors import ClaudeCli, CodexCli

    return ClaudeCli() if agent.executor == "claude" else CodexCli()


def _acp_cli(agent: Agent) -> AcpCli:
    from retinue.executors import AcpProgram, GeminiCli, OpencodeCli

    return {"gemini": GeminiCli, "opencode": OpencodeCli}.get(agent.executor, AcpProgram)()


def _choose_sandbox(agent: Agent) -> Sandbox:
    """The sandbox that the agent asks for. Without a wish, bubblewrap if it is installed."""
    from retinue.executors import NoSandbox, demand_bubblewrap, find_bubblewrap, find_container_engine

    if agent.container:
        return find_container_engine(agent.container, os.environ)
    if agent.sandbox == "bwrap":
        return demand_bubblewrap(os.environ)
    found = None if agent.sandbox == "none" else find_bubblewrap(os.environ)
    return found or NoSandbox()


def _local_executor(
    settings: Settings, roots: Sequence[Root], redactor: Redactor, models: Models, agent: Agent
) -> Executor:
    from retinue.codebase import Codebase
    from retinue.executors import LocalExecutor
    from retinue.service import policy_of

    model = models.named(agent.model or "default")
    return LocalExecutor(
        agent=agent,
        model=model,
        codebase=Codebase(roots, policy_of(settings)),
        redactor=redactor,
        estimator=model.tokens,
        environment=os.environ,
    )


def _validated(create: Callable[[Agent], Executor], agent: Agent) -> Executor:
    """The agent's executor, wrapped to validate its answers if it promises JSON."""
    if not agent.answers_json:
        return create(agent)
    from retinue.executors import WithValidation

    return WithValidation(create, agent)


def check_executor(settings: Settings) -> Callable[[Agent], Executor]:
    """The executor of a project's checks: in a sandbox if there is one, unless the user has turned it off."""

    def create(agent: Agent) -> Executor:
        from retinue.executors import (
            CommandConfig,
            CommandExecutor,
            Template,
            find_bubblewrap,
            sandboxed_check,
        )

        sandbox = find_bubblewrap(os.environ) if settings.workflows.sandbox == "auto" else None
        enclosed = sandbox and partial(sandboxed_check, sandbox, Path.home(), settings.data_dir.resolve())
        return CommandExecutor(CommandConfig(Template(agent.command)), os.environ, enclosed)

    return create


def launch_previewer(
    data_dir: Path, cwd: Path, redactor: Redactor, models: Models
) -> Callable[[Agent], LaunchPreview]:
    """A function that previews what an agent's runs would start, made with the classes that perform them."""
    environment = {DATA_DIR: str(data_dir)}

    def preview(agent: Agent) -> LaunchPreview:
        from retinue.executors import LaunchPreview, preview_cli, preview_command, preview_context

        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # sandboxes hide it, so it must exist
        if agent.executor in CLIS:
            from retinue.executors import session_folder
            from retinue.store import SessionFile

            sessions = session_folder(cli_state_folder(data_dir), agent.executor, agent.name)
            resume = SessionFile.for_agent(sessions, cwd).read() if agent.session else None
            task = "on stdin" if agent.executor in EVENT_STREAM_CLIS else "through ACP, on stdin"
            with preview_context(cwd, environment, redactor.hide, resume) as ctx:
                launch = preview_cli(cli_launcher(data_dir, agent), coding_cli(agent), agent, ctx, task)
            worktree = (IN_WORKTREE,) if agent.isolation == "worktree" else ()
            return replace(launch, notes=(*launch.notes, *worktree))
        if agent.executor == "command":
            with preview_context(cwd, environment, redactor.hide) as ctx:
                return preview_command(build_command(data_dir, agent), ctx)
        if agent.executor != "local":
            raise Unavailable(f"there is no executor {agent.executor}")
        server, model = models.plan.choose(agent.model or "default")
        where = f"in requests to {server.url}"
        return LaunchPreview(folder=str(cwd), model=model, task=where, notes=(IN_PROCESS, LOCAL_LIMITS))

    return preview
