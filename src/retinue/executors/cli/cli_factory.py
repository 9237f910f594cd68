"""Builds the executor of a coding CLI: its launcher, and the wrappers that the agent asks for.

Knows no particular CLI. The module of each CLI calls these functions from its own `make` and `preview`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from retinue.core import Agent, Executor, RunContext
from retinue.executors.cli.cli_job import CodingCli
from retinue.executors.cli.cli_launch import CliLauncher, session_folder
from retinue.executors.command import WithPreamble
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.launch_preview import describe_program, preview_context
from retinue.executors.sandbox import AgentCommands
from retinue.executors.wrappers import (
    JSON_ONLY_PROMPT,
    WithAcceptance,
    WithSession,
    WithWorktree,
    WorktreePreparation,
    validate_answers,
)
from retinue.store import SessionFile

WORKTREE_NOTE = "each run works in a git worktree of its own instead of this folder"

MakeCliExecutor = Callable[[Agent, CliLauncher], Executor]


def make_cli_executor(make: MakeCliExecutor, agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks: the CLI in its sandbox, inside the wrappers that it needs.

    `make` returns the executor of the CLI alone.
    """
    launcher = _make_launcher(agent, surroundings)
    sessions = _sessions(agent, surroundings)

    def without_validation(agent: Agent) -> Executor:
        executor = make(agent, launcher)
        # If there is a schema, the CLI's own module passes it on.
        needs_prompt = agent.answers_json and agent.output_schema is None
        return WithPreamble(JSON_ONLY_PROMPT, executor) if needs_prompt else executor

    executor = validate_answers(without_validation, agent)
    commands = AgentCommands(launcher.environment, launcher.sandbox, launcher.hidden, launcher.policy)
    make_program = partial(commands.program, agent)
    if agent.acceptance:
        executor = WithAcceptance(executor, agent.acceptance, make_program, launcher.sandbox.clear)
    if agent.isolation == "worktree":
        folder = surroundings.data_dir.resolve() / "worktrees"
        name = partial(_session_name, sessions) if agent.session else None
        set_up = replace(commands, policy=None)
        preparation = WorktreePreparation.of(agent, partial(set_up.program, agent), launcher.sandbox.clear)
        executor = WithWorktree(
            executor,
            folder,
            surroundings.environment,
            name,
            surroundings.project_folders,
            preparation,
            keep=agent.keep_changes,
        )
    return WithSession(executor, sessions) if agent.session else executor


def preview_cli(
    cli: CodingCli, agent: Agent, surroundings: Surroundings, task: str = "on stdin"
) -> LaunchPreview:
    """Return what a run of the agent would start. `task` says how the CLI gets its task."""
    note = SessionFile.for_agent(_sessions(agent, surroundings), surroundings.cwd)
    with (
        preview_context(surroundings, note.read() if agent.session else None) as ctx,
        _make_launcher(agent, surroundings).prepare(cli, agent, ctx) as prepared,
    ):
        worktree = (WORKTREE_NOTE,) if agent.isolation == "worktree" else ()
        return replace(
            describe_program(prepared.program, ctx, prepared.job.folder),
            isolation=prepared.sandbox.name,
            model=prepared.job.model,
            task=task,
            notes=(*prepared.notes, *worktree),
        )


def _make_launcher(agent: Agent, surroundings: Surroundings) -> CliLauncher:
    return CliLauncher(
        surroundings.environment,
        surroundings.cli_state_folder,
        (surroundings.data_dir.resolve(),),
        surroundings.project_folders,
        surroundings.choose_sandbox(agent),
        surroundings.policy(),
        surroundings.web_access,
    )


def _sessions(agent: Agent, surroundings: Surroundings) -> Path:
    return session_folder(surroundings.cli_state_folder, agent.executor, agent.name)


def _session_name(sessions: Path, ctx: RunContext) -> str:
    """Return the same name for every run that continues a session, so that they use the same worktree."""
    return SessionFile.for_agent(sessions, ctx.cwd).key
