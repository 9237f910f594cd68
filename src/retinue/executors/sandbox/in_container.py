"""Runs an agent's own program in the container that its file names. Knows no particular engine.

In the container, `retinue child` connects to the server that started the run (`fifo_bridge.py`), as it does
outside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.core import Agent, Outcome, RunContext, Task
from retinue.executors.command import CommandExecutor, WrapProgram
from retinue.executors.process import Program, run_uninterrupted
from retinue.executors.sandbox.fifo_bridge import FifoBridge, create_fifo_bridge
from retinue.executors.sandbox.sandbox import Sandbox, SandboxAccess


@dataclass(slots=True)
class _ContainerRun:
    """What one run may access, and the program that was put into the container."""

    sandbox: Sandbox
    access: SandboxAccess
    bridge: FifoBridge | None
    program: Program | None = None

    def enclose(self, program: Program) -> Program:
        self.program = self.sandbox.enclose(program, self.access)
        return self.program


class CommandInContainer:
    """An executor that runs a command in a container."""

    def __init__(
        self,
        make_executor: Callable[[WrapProgram], CommandExecutor],
        agent: Agent,
        sandbox: Sandbox,
        data_dir: Path,
    ) -> None:
        """`make_executor` returns what starts the agent's program. No run may see `data_dir`."""
        self._make_executor = make_executor
        self._agent = agent
        self._sandbox = sandbox
        self._data_dir = data_dir

    @property
    def isolation(self) -> str:
        return self._sandbox.name

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        with self._prepare(ctx) as container:
            exited = False
            try:
                async with container.bridge.open() if container.bridge else nullcontext():
                    # The container has no data folder, and the run's token stays outside.
                    outcome = await self._make_executor(container.enclose).run(task, replace(ctx, env={}))
                exited = outcome.exit_code is not None
            finally:
                if container.program and not exited:
                    await run_uninterrupted(self._sandbox.clear(container.program))
        return replace(outcome, facts={**outcome.facts, "isolation": self.isolation})

    @contextmanager
    def preview_program(self, prompt: str, ctx: RunContext) -> Generator[tuple[Program, Path]]:
        """Yield the program that a run would start, and the run's temporary folder."""
        with self._prepare(ctx) as container:
            folder = container.access.changeable[0]
            yield self._make_executor(container.enclose).program(prompt, replace(ctx, env={})), folder

    @contextmanager
    def _prepare(self, ctx: RunContext) -> Generator[_ContainerRun]:
        """Create the run's temporary folder and bridge, and yield what the container may access."""
        with tempfile.TemporaryDirectory(prefix="retinue-run-") as folder:
            bridge = create_fifo_bridge(Path(folder), ctx.env)
            access = SandboxAccess(
                workspace=ctx.cwd,
                network=True if self._agent.network is None else self._agent.network,
                changeable=(Path(folder), *map(Path, self._agent.folders)),
                hidden=(self._data_dir,),
                bridge_script=bridge.script if bridge else None,
            )
            yield _ContainerRun(self._sandbox, access, bridge)
