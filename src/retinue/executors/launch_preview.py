"""Shows what a run of an agent would start, without starting it. Serves `retinue agents show`.

The same code builds the command line as for a run. Values that only a run has (its id, folder, socket and
token) appear as names in braces. The preview contains the names of variables, not their values (P6).
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.core import Agent, Hide, OutputLine, ProcessIdentity, Resumed, RunContext
from retinue.executors.cli import SOCKET_VARIABLE, TOKEN_VARIABLE, CliLauncher, CodingCli
from retinue.executors.command import CommandExecutor
from retinue.executors.process import Program
from retinue.executors.sandbox import CommandInContainer

RUN_ID, RUN_FOLDER, PROMPT = "{run_id}", "{run_folder}", "{prompt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPreview:
    """What a run would start, and how."""

    command: tuple[str, ...] = ()
    """The whole command line, including the sandbox. Empty if the executor starts no program."""
    env: tuple[str, ...] = ()
    """The names of all variables that the program gets."""
    folder: str
    """The working directory."""
    isolation: str = "none"
    model: str | None = None
    """The requested model; None if the program chooses."""
    task: str = "on stdin"
    """How the program gets the task."""
    secret_files: int = 0
    """How many secrets the program reads from files in memory."""
    notes: tuple[str, ...] = ()


@contextmanager
def preview_context(
    cwd: Path, env: Mapping[str, str], hide: Hide, resume: Resumed | None = None
) -> Generator[RunContext]:
    """Yield the context of a run that never starts.

    `env` contains the variables that connect its processes to this server. The socket is an empty file in a
    temporary folder, because a sandbox mounts only files that exist.
    """

    async def emit(line: OutputLine) -> None:
        """Ignore output: there is none."""

    async def started(identity: ProcessIdentity) -> None:
        """Ignore the start: nothing starts."""

    with tempfile.TemporaryDirectory(prefix="retinue-") as folder:
        socket = Path(folder) / "s"
        socket.touch()
        connection = {**env, TOKEN_VARIABLE: "{token}", SOCKET_VARIABLE: str(socket)}
        yield RunContext(RUN_ID, cwd, None, emit, started, connection, resume=resume, hide=hide)


def preview_command(executor: CommandExecutor | CommandInContainer, ctx: RunContext) -> LaunchPreview:
    """Return the preview of an agent that runs its own command."""
    with executor.preview_program(PROMPT, ctx) as (program, folder):
        task = "as an argument" if PROMPT in "".join(program.argv) else "on stdin"
        preview = _describe(program, ctx, {} if folder is None else {str(folder): RUN_FOLDER})
        return replace(preview, isolation=executor.isolation, task=task)


def preview_cli(
    launcher: CliLauncher, cli: CodingCli, agent: Agent, ctx: RunContext, task: str
) -> LaunchPreview:
    """Return the preview of an agent that runs a coding CLI. `task` says how the CLI gets the task."""
    with launcher.prepare(cli, agent, ctx) as prepared:
        job = prepared.job
        preview = _describe(prepared.program, ctx, {str(job.folder): RUN_FOLDER})
        isolation = prepared.sandbox.name
        return replace(preview, isolation=isolation, model=job.model, task=task, notes=prepared.notes)


def _describe(program: Program, ctx: RunContext, names: Mapping[str, str]) -> LaunchPreview:
    """Describe a program, with names in braces for the values that only a run has."""

    def with_names(argument: str) -> str:
        for value, name in {**names, ctx.env[SOCKET_VARIABLE]: "{socket}"}.items():
            argument = argument.replace(str(Path(value).resolve()), name).replace(value, name)
        return argument

    return LaunchPreview(
        command=tuple(map(with_names, program.argv)),
        env=tuple(sorted(program.env)),
        folder=str(ctx.cwd),
        secret_files=len(program.secret_files),
    )
