"""Asks a model about a role's finds, in a run of its own: it waits for its turn at the model's endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from retinue.core import (
    Canceled,
    DeadlineExceeded,
    Endpoint,
    Model,
    Outcome,
    OutputLine,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
)
from retinue.research.advice import Advice, advise
from retinue.research.role_runs import Performing
from retinue.runtime import PreparedRun, Supervisor


@dataclass(frozen=True, slots=True)
class ByModel:
    supervisor: Supervisor
    parent: RunId
    cwd: Path
    model: Callable[[], Model]
    """Raises what is wrong with it when it is wanted."""

    async def __call__(self, role: str, question: str, finds: Sequence[str], seconds: float) -> Advice:
        said: list[Advice] = []
        began = time.monotonic()
        model = self.model()
        facts = None
        with anyio.move_on_after(seconds):
            facts = await model.facts()
        if facts is None:
            raise _late(seconds)

        async def ask(ctx: RunContext) -> Outcome:
            advice = await advise(model, question, finds, ctx.spending)
            said.append(advice)
            for sentence in advice.explanation:
                await ctx.emit(OutputLine("stdout", sentence))
            return Outcome(" ".join(advice.explanation))

        left = max(0.0, seconds - (time.monotonic() - began))
        spec = RunSpec(
            agent=role,
            task=question,
            executor="local",
            caller="research",
            parent=self.parent,
            model=facts.model,
            limits=RunLimits(queue_s=left, run_s=left),
            endpoint=Endpoint(facts.endpoint, facts.slots),
        )
        executor, performed = Performing(ask), None
        with anyio.move_on_after(left):  # the turn that it waits for and its own time together
            performed = await self.supervisor.perform(PreparedRun(spec, executor, self.cwd))
        if said:
            return said[0]
        if performed is None or performed.run.status is RunStatus.TIMEOUT:
            raise _late(seconds)
        raise executor.error or Canceled("it was not asked to the end")


def _late(seconds: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"it did not answer within {seconds:.1f} seconds")
