"""What a run of an agent would start, told without starting it: the command line is made as for a run.

What only a run has (its id, its folder, its socket and its token) stands there by name, in braces. Of its
environment only the names are told (P6).
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.core import Agent, HideSecrets, OutputLine, ProcessIdentity, Resumed, RunContext
from retinue.executors.cli import SOCKET, TOKEN, CliLauncher, Launches
from retinue.executors.command import CommandExecutor
from retinue.executors.process import Program
from retinue.executors.sandbox import InContainer

RUN_ID, RUN_FOLDER, PROMPT = "{run_id}", "{run_folder}", "{prompt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPreview:
    command: tuple[str, ...] = ()
    """As the keeper starts it, the sandbox included; empty where nothing is started."""
    env: tuple[str, ...] = ()
    """Names of all variables that it gets."""
    folder: str
    """Where it works."""
    isolation: str = "none"
    model: str | None = None
    """The one that is asked for; None for a program's own choice."""
    task: str = "on stdin"
    """How it is told what to do."""
    handed: int = 0
    """Secrets that it reads from open files."""
    notes: tuple[str, ...] = ()


@contextmanager
def preview_context(
    cwd: Path, env: Mapping[str, str], hide: HideSecrets, resume: Resumed | None = None
) -> Generator[RunContext]:
    """The context of a run that never begins; `env` is what leads its processes to us.

    Its socket is a file in the same kind of place, because a sandbox is only given what is there.
    """

    async def emit(line: OutputLine) -> None:
        """Nothing is said."""

    async def started(identity: ProcessIdentity) -> None:
        """Nothing is started."""

    with tempfile.TemporaryDirectory(prefix="retinue-") as folder:
        socket = Path(folder) / "s"
        socket.touch()
        ways = {**env, TOKEN: "{token}", SOCKET: str(socket)}
        yield RunContext(RUN_ID, cwd, None, emit, started, ways, resume=resume, hide=hide)


def preview_command(executor: CommandExecutor | InContainer, ctx: RunContext) -> LaunchPreview:
    with executor.starting(PROMPT, ctx) as (program, folder):
        task = "as an argument" if PROMPT in "".join(program.argv) else "on stdin"
        start = _start(program, ctx, {} if folder is None else {str(folder): RUN_FOLDER})
        return replace(start, isolation=executor.isolation, task=task)


def preview_cli(
    setting: CliLauncher, cli: Launches, agent: Agent, ctx: RunContext, task: str
) -> LaunchPreview:
    with setting.starting(cli, agent, ctx) as ready:
        job = ready.prepared.job
        start = _start(ready.program, ctx, {str(job.folder): RUN_FOLDER})
        isolation, notes = ready.prepared.isolation, ready.prepared.notes
        return replace(start, isolation=isolation, model=job.model, task=task, notes=notes)


def _start(program: Program, ctx: RunContext, places: Mapping[str, str]) -> LaunchPreview:
    def named(argument: str) -> str:
        for value, name in {**places, ctx.env[SOCKET]: "{socket}"}.items():
            argument = argument.replace(str(Path(value).resolve()), name).replace(value, name)
        return argument

    return LaunchPreview(
        command=tuple(map(named, program.argv)),
        env=tuple(sorted(program.env)),
        folder=str(ctx.cwd),
        handed=len(program.handed),
    )
