"""An agent's own program in a container, as its file asks. Knows no particular engine.

Inside, `retinue child` leads to the server that started it (`pipe_door`), as it does outside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from retinue.core import Agent, Outcome, RunContext, Task
from retinue.executors.command import CommandExecutor, WrapProgram
from retinue.executors.process import Program
from retinue.executors.sandbox.fifo_bridge import PipeDoor, door_of
from retinue.executors.sandbox.sandbox import Sandbox, SandboxPlace


@dataclass(slots=True)
class _Inside:
    """One run's place, and the program that was put into it."""

    sandbox: Sandbox
    place: SandboxPlace
    door: PipeDoor | None
    program: Program | None = None

    def enclose(self, program: Program) -> Program:
        self.program = self.sandbox.enclose(program, self.place)
        return self.program


class InContainer:
    """An executor whose programs run in a sandbox."""

    def __init__(
        self, make: Callable[[WrapProgram], CommandExecutor], agent: Agent, sandbox: Sandbox, hidden: Path
    ) -> None:
        """`make` gives what starts the agent's program; `hidden` is a folder that no run may see."""
        self._make = make
        self._agent = agent
        self._sandbox = sandbox
        self._hidden = hidden

    @property
    def isolation(self) -> str:
        return self._sandbox.name

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        with self._inside(ctx) as inside:
            ended = False
            try:
                async with inside.door.open() if inside.door else nullcontext():
                    # The data folder is not there, and the token stays with us.
                    outcome = await self._make(inside.enclose).run(task, replace(ctx, env={}))
                ended = outcome.exit_code is not None
            finally:
                if inside.program and not ended:
                    with anyio.CancelScope(shield=True):
                        await self._sandbox.clear(inside.program)
        return replace(outcome, facts={**outcome.facts, "isolation": self.isolation})

    @contextmanager
    def starting(self, prompt: str, ctx: RunContext) -> Generator[tuple[Program, Path]]:
        """What a run starts, and its folder: what `agents show` tells."""
        with self._inside(ctx) as inside:
            folder = inside.place.changeable[0]
            yield self._make(inside.enclose).program(prompt, replace(ctx, env={})), folder

    @contextmanager
    def _inside(self, ctx: RunContext) -> Generator[_Inside]:
        with tempfile.TemporaryDirectory(prefix="retinue-run-") as folder:
            door = door_of(Path(folder), ctx.env)
            place = SandboxPlace(
                workspace=ctx.cwd,
                network=True if self._agent.network is None else self._agent.network,
                changeable=(Path(folder), *map(Path, self._agent.folders)),
                hidden=(self._hidden,),
                child=door.script if door else None,
            )
            yield _Inside(self._sandbox, place, door)
