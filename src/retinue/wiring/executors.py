"""Every way there is to perform an agent's tasks, with its concrete classes."""

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


NATIVE = ("claude", "codex")
CLIS = (*NATIVE, "gemini", "opencode", "acp")


def executors(
    settings: Settings, roots: Sequence[Root], clean: Redactor, models: Models
) -> Mapping[str, Callable[[Agent], Executor]]:
    """Every way there is to perform an agent's tasks: a new one is a line here and one in `honoured`."""
    local = {"local": partial(_local_executor, settings, roots, clean, models)}
    clis = dict.fromkeys(CLIS, partial(cli_executor, settings.data_dir))
    command = partial(command_executor, settings.data_dir)
    return {"command": command, **clis, **(local if models.plan.configured else {})}


def check_executor(settings: Settings) -> Callable[[Agent], Executor]:
    """What runs a project's own checks: in a sandbox where there is one, unless the user wants none."""

    def of(agent: Agent) -> Executor:
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

    return of


def command_executor(data_dir: Path, agent: Agent) -> Executor:
    return _validated(partial(_command, data_dir), agent)


def _validated(perform: Callable[[Agent], Executor], agent: Agent) -> Executor:
    """What performs the agent's tasks, and holds its answers to what it promises."""
    if not agent.answers_json:
        return perform(agent)
    from retinue.executors import WithValidation

    return WithValidation(perform, agent)


def _command(data_dir: Path, agent: Agent) -> Executor:
    from retinue.executors import WithPreamble

    return WithPreamble(agent.prompt, command_of(data_dir, agent))


def command_of(data_dir: Path, agent: Agent) -> CommandExecutor | InContainer:
    """What starts an agent's own program."""
    from retinue.executors import CommandConfig, CommandExecutor, InContainer, Template

    make = partial(CommandExecutor, CommandConfig(Template(agent.command), env=agent.env), os.environ)
    return InContainer(make, agent, _sandbox(agent), data_dir.resolve()) if agent.container else make()


def cli_executor(data_dir: Path, agent: Agent) -> Executor:
    """A coding CLI in its sandbox, its worktree if it has one, and the commands that check its work."""
    from retinue.executors import WithAcceptance, WithSession, WithWorktree, session_folder

    setting = cli_setting(data_dir, agent)
    sessions = session_folder(setting.state_folder, agent.executor, agent.name)
    executor = _validated(partial(_cli, setting), agent)
    if agent.acceptance:
        commands = partial(setting.command, agent)
        executor = WithAcceptance(executor, agent.acceptance, commands, setting.sandbox.clear)
    if agent.isolation == "worktree":
        name = partial(_session_name, sessions) if agent.session else None
        executor = WithWorktree(executor, data_dir.resolve() / "worktrees", os.environ, name)
    return WithSession(executor, sessions) if agent.session else executor


def _session_name(sessions: Path, ctx: RunContext) -> str:
    """Of the session that a run goes on with, for what must be at the same place again."""
    from retinue.store import SessionFile

    return SessionFile.for_agent(sessions, ctx.cwd).key


def cli_setting(data_dir: Path, agent: Agent) -> CliLauncher:
    """The surroundings of an agent's coding CLI."""
    from retinue.executors import CliLauncher

    return CliLauncher(os.environ, cli_state_folder(data_dir), (data_dir.resolve(),), _sandbox(agent))


def cli_state_folder(data_dir: Path) -> Path:
    """Where coding CLIs keep their state when agents use them."""
    return data_dir.resolve() / "clis"


def _cli(setting: CliLauncher, agent: Agent) -> Executor:
    from retinue.executors import JSON_ALONE, AcpExecutor, CliExecutor, WithPreamble

    executor: Executor
    if agent.executor in NATIVE:
        executor = CliExecutor(_native(agent), agent, setting)
    else:
        executor = AcpExecutor(_spoken(agent), agent, setting)
    is_told = agent.output_schema is not None or not agent.answers_json
    return executor if is_told else WithPreamble(JSON_ALONE, executor)


def cli_of(agent: Agent) -> CodingCli:
    """The coding CLI that an agent's executor names."""
    return _native(agent) if agent.executor in NATIVE else _spoken(agent)


def _native(agent: Agent) -> EventStreamCli:
    from retinue.executors import ClaudeCli, CodexCli

    return ClaudeCli() if agent.executor == "claude" else CodexCli()


def _spoken(agent: Agent) -> AcpCli:
    from retinue.executors import AcpProgram, GeminiCli, OpencodeCli

    return {"gemini": GeminiCli, "opencode": OpencodeCli}.get(agent.executor, AcpProgram)()


def _sandbox(agent: Agent) -> Sandbox:
    """What the agent asks for; bubblewrap where it says nothing and the machine has it."""
    from retinue.executors import NoSandbox, demand_bubblewrap, find_bubblewrap, find_container_engine

    if agent.container:
        return find_container_engine(agent.container, os.environ)
    if agent.sandbox == "bwrap":
        return demand_bubblewrap(os.environ)
    found = None if agent.sandbox == "none" else find_bubblewrap(os.environ)
    return found or NoSandbox()


def _local_executor(
    settings: Settings, roots: Sequence[Root], clean: Redactor, models: Models, agent: Agent
) -> Executor:
    from retinue.codebase import Codebase
    from retinue.executors import LocalExecutor
    from retinue.service import policy_of

    model = models.named(agent.model or "default")
    return LocalExecutor(
        agent=agent,
        model=model,
        codebase=Codebase(roots, policy_of(settings)),
        redactor=clean,
        estimator=model.tokens,
        environment=os.environ,
    )


# MERGED starts: What each agent's runs start, by the same classes that perform them.

IN_WORKTREE = "each run works in a git worktree of its own instead of this folder"
IN_PROCESS = "nothing is started: the server itself asks the model"
LOCAL_LIMITS = (
    f"its own limits: {MAX_STEPS} steps, and {MAX_TOKENS} tokens a request or {CONTEXT_SHARE:.0%} of what "
    "the model holds, whichever is less"
)


def starts(data_dir: Path, cwd: Path, clean: Redactor, models: Models) -> Callable[[Agent], LaunchPreview]:
    ways = {DATA_DIR: str(data_dir)}

    def of(agent: Agent) -> LaunchPreview:
        from retinue.executors import LaunchPreview, preview_cli, preview_command, preview_context

        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # as before any run: sandboxes hide it
        if agent.executor in CLIS:
            from retinue.executors import session_folder
            from retinue.store import SessionFile

            notes = session_folder(cli_state_folder(data_dir), agent.executor, agent.name)
            resume = SessionFile.for_agent(notes, cwd).read() if agent.session else None
            task = "on stdin" if agent.executor in NATIVE else "through ACP, on stdin"
            with preview_context(cwd, ways, clean.hide, resume) as ctx:
                start = preview_cli(cli_setting(data_dir, agent), cli_of(agent), agent, ctx, task)
            worktree = (IN_WORKTREE,) if agent.isolation == "worktree" else ()
            return replace(start, notes=(*start.notes, *worktree))
        if agent.executor == "command":
            with preview_context(cwd, ways, clean.hide) as ctx:
                return preview_command(command_of(data_dir, agent), ctx)
        if agent.executor != "local":
            raise Unavailable(f"nothing starts for the executor {agent.executor}")
        server, model = models.plan.choose(agent.model or "default")
        where = f"in requests to {server.url}"
        return LaunchPreview(folder=str(cwd), model=model, task=where, notes=(IN_PROCESS, LOCAL_LIMITS))

    return of
