"""Describes the program that a run would start, without starting it. Serves `retinue agents show`.

The same code builds the command line as for a run. Values that only a run has (its id, folder, socket and
token) appear as names in braces. The preview contains the names of variables, not their values (P6).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from retinue.config import DATA_DIR
from retinue.core import OutputLine, ProcessIdentity, Resumed, RunContext
from retinue.executors.cli import SOCKET_VARIABLE, TOKEN_VARIABLE
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.process import Program
from retinue.store import temporary_folder

RUN_ID, RUN_FOLDER, PROMPT = "{run_id}", "{run_folder}", "{prompt}"


@contextmanager
def preview_context(surroundings: Surroundings, resume: Resumed | None = None) -> Generator[RunContext]:
    """Yield the context of a run that never starts.

    Its socket is an empty file in a temporary folder, because a sandbox mounts only files that exist.
    """

    async def emit(line: OutputLine) -> None:
        """Ignore output: there is none."""

    async def started(identity: ProcessIdentity) -> None:
        """Ignore the start: nothing starts."""

    with temporary_folder() as folder:
        socket = folder / "s"
        socket.touch()
        connection = {
            DATA_DIR: str(surroundings.data_dir),
            TOKEN_VARIABLE: "{token}",
            SOCKET_VARIABLE: str(socket),
        }
        hide = surroundings.redactor.hide
        yield RunContext(RUN_ID, surroundings.cwd, None, emit, started, connection, resume=resume, hide=hide)


def describe_program(program: Program, ctx: RunContext, run_folder: Path | None) -> LaunchPreview:
    """Describe a program that a run would start. `run_folder` is the temporary folder of the run."""
    names = {ctx.env[SOCKET_VARIABLE]: "{socket}"}
    if run_folder is not None:
        names[str(run_folder)] = RUN_FOLDER

    def with_names(argument: str) -> str:
        for value, name in names.items():
            argument = argument.replace(str(Path(value).resolve()), name).replace(value, name)
        return argument

    return LaunchPreview(
        command=tuple(map(with_names, program.argv)),
        env=tuple(sorted(program.env)),
        folder=str(ctx.cwd),
        secret_files=len(program.secret_files),
    )
