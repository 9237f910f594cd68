"""The `command` executor: any program performs the task, started without a shell, perhaps in a container.

Knows no particular CLI and no particular container engine. In a container, `retinue child` connects to the
server that started the run (`sandbox/fifo_bridge.py`), as it does outside.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.core import (
    Agent,
    Executor,
    Outcome,
    ProgramFailed,
    QuotaSpent,
    RunContext,
    Task,
    clip,
    find_limit_notice,
)
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.launch_preview import PROMPT, describe_program, preview_context
from retinue.executors.process import (
    MAX_OUTPUT_BYTES,
    CleanUp,
    CommandTemplate,
    Program,
    ProgramRun,
    Transcript,
    child_environment,
    collect_secrets,
)
from retinue.executors.sandbox import FifoBridge, Sandbox, SandboxAccess, create_fifo_bridge
from retinue.executors.wrappers import validate_answers
from retinue.store import temporary_folder

WrapProgram = Callable[[Program], Program]
"""Puts a program into a sandbox."""


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with its own program."""

    def without_validation(agent: Agent) -> Executor:
        return WithPreamble(agent.prompt, WithLimitNotice(_make_command(agent, surroundings)))

    return validate_answers(without_validation, agent)


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return what a run of the agent would start."""
    executor = _make_command(agent, surroundings)
    with preview_context(surroundings) as ctx, executor.preview_program(PROMPT, ctx) as (program, folder):
        task = "as an argument" if PROMPT in "".join(program.argv) else "on stdin"
        return replace(describe_program(program, ctx, folder), isolation=executor.isolation, task=task)


def _make_command(agent: Agent, surroundings: Surroundings) -> CommandExecutor | CommandInContainer:
    command = CommandConfig(CommandTemplate(agent.command), env=agent.env)
    if not agent.container:
        return CommandExecutor(command, surroundings.environment)
    return CommandInContainer(
        command,
        surroundings.environment,
        agent,
        surroundings.choose_sandbox(agent),
        surroundings.data_dir.resolve(),
    )


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """How to run an agent's program."""

    template: CommandTemplate
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables to set for the program. `${NAME}` is replaced by the server's variable of that name."""
    grace: float = 1.0
    """Seconds from SIGTERM to SIGKILL."""
    max_output_bytes: int = MAX_OUTPUT_BYTES
    """Output beyond this ends the run."""


class CommandExecutor:
    """Performs each task with one run of a program. Its stdout is the answer."""

    isolation = "none"

    def __init__(
        self,
        command: CommandConfig,
        environment: Mapping[str, str],
        sandboxed: WrapProgram | None = None,
        clean_up: CleanUp | None = None,
    ) -> None:
        """`environment` is the server's own; the program gets only the allowed variables of it."""
        self._command = command
        self._environment = environment
        self._sandboxed = sandboxed
        self._clean_up = clean_up

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        prompt = task.prompt.encode("utf-8", "replace")  # a lone surrogate cannot be encoded
        program = self.program(prompt.decode(), ctx)
        # The prompt is recorded as the run's task; in the command line it would only be in the way.
        names = {"prompt": "{prompt}", "run_id": ctx.run_id, "cwd": str(ctx.cwd)}
        shown_argv = self._command.template.fill(names)
        ctx.launching(shown_argv)
        transcript = Transcript(ctx.emit, max_bytes=self._command.max_output_bytes)
        run = ProgramRun(
            program, transcript, seconds=ctx.seconds, on_start=ctx.started, clean_up=self._clean_up
        )
        async with run.start(stdin=b"" if self._command.template.takes_prompt else prompt):
            await run.wait()
        ctx.activity.command(shlex.join(shown_argv), run.exit_code)
        error = run.error or _exit_error(program.name, run.exit_code)
        shown = transcript.last_lines if error else transcript.answer
        return Outcome(
            shown.text,
            cut=shown.cut,
            before=shown.before,
            exit_code=run.exit_code,
            error=error,
            usage=run.usage,
            survivors=run.survivors,
            facts={"isolation": self.isolation},
        )

    @contextmanager
    def preview_program(self, prompt: str, ctx: RunContext) -> Generator[tuple[Program, None]]:
        """Yield the program that a run would start, and no folder, because a run has none of its own."""
        yield self.program(prompt, ctx), None

    def program(self, prompt: str, ctx: RunContext) -> Program:
        """Return the program to start for a prompt, and register its secrets for redaction."""
        command = self._command
        environment = child_environment(self._environment, run_id=ctx.run_id, explicit=command.env)
        ctx.hide(collect_secrets(self._environment, command.env.values()))
        argv = command.template.fill({"prompt": prompt, "run_id": ctx.run_id, "cwd": str(ctx.cwd)})
        program = Program(argv, {**environment, **ctx.env}, ctx.cwd, command.grace)
        return program if self._sandboxed is None else self._sandboxed(program)


def _exit_error(name: str, exit_code: int | None) -> ProgramFailed | None:
    """Return the error for a failing exit code, or None for success."""
    if not exit_code:
        return None
    how = f"with exit code {exit_code}" if exit_code > 0 else f"by signal {-exit_code}"
    return ProgramFailed(f"{name} ended {how}", exit_code=exit_code)


class CommandInContainer:
    """Performs each task with one run of a program in a container."""

    def __init__(
        self,
        command: CommandConfig,
        environment: Mapping[str, str],
        agent: Agent,
        sandbox: Sandbox,
        data_dir: Path,
    ) -> None:
        """`environment` is the server's own. No run may see `data_dir`."""
        self._command = command
        self._environment = environment
        self._agent = agent
        self._sandbox = sandbox
        self._data_dir = data_dir

    @property
    def isolation(self) -> str:
        return self._sandbox.name

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        with self._prepare(ctx) as container:
            async with container.bridge.open() if container.bridge else nullcontext():
                # The container has no data folder, and the run's token stays outside.
                outcome = await self._executor(container).run(task, replace(ctx, env={}))
        return replace(outcome, facts={**outcome.facts, "isolation": self.isolation})

    @contextmanager
    def preview_program(self, prompt: str, ctx: RunContext) -> Generator[tuple[Program, Path]]:
        """Yield the program that a run would start, and the run's temporary folder."""
        with self._prepare(ctx) as container:
            yield self._executor(container).program(prompt, replace(ctx, env={})), container.folder

    def _executor(self, container: _Container) -> CommandExecutor:
        def enclose(program: Program) -> Program:
            return self._sandbox.enclose(program, container.access)

        return CommandExecutor(self._command, self._environment, enclose, self._sandbox.clear)

    @contextmanager
    def _prepare(self, ctx: RunContext) -> Generator[_Container]:
        with temporary_folder("run-") as folder:
            bridge = create_fifo_bridge(folder, ctx.env)
            access = SandboxAccess(
                workspace=ctx.cwd,
                network=True if self._agent.network is None else self._agent.network,
                changeable=(folder, *map(Path, self._agent.folders)),
                hidden=(self._data_dir,),
                bridge_script=bridge.script if bridge else None,
            )
            yield _Container(folder, access, bridge)


@dataclass(frozen=True, slots=True)
class _Container:
    """The temporary folder and the access of one run in a container."""

    folder: Path
    """A temporary folder of this run."""
    access: SandboxAccess
    bridge: FifoBridge | None


class WithLimitNotice:
    """Wraps an executor: a failed program whose last lines say that a usage limit is spent has just that."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        outcome = await self._executor.run(task, ctx)
        if not isinstance(outcome.error, ProgramFailed):
            return outcome
        lines = outcome.output.splitlines()
        limit = find_limit_notice(lines, time.time())
        if limit is None:
            return outcome
        said = clip(" ".join(lines), 300)
        spent = QuotaSpent(f"the program has reached its usage limit: {said}", reset_at=limit.reset_at)
        return replace(outcome, error=spent)


class WithPreamble:
    """Wraps an executor and puts a text before each task, because a program has no system prompt."""

    def __init__(self, preamble: str, executor: Executor) -> None:
        self._preamble = preamble
        self._executor = executor

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        prompt = f"{self._preamble}\n\n{task.prompt}" if self._preamble else task.prompt
        return await self._executor.run(replace(task, prompt=prompt), ctx)
