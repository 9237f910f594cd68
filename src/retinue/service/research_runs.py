"""A question that is worked on within a run: recorded before it begins, and ended when somebody ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import cast

from retinue.core import (
    Budget,
    Canceled,
    DeadlineExceeded,
    InternalError,
    Json,
    Model,
    Outcome,
    RetinueError,
    Run,
    RunContext,
    RunId,
    RunLimits,
    RunStatus,
)
from retinue.research import (
    AsRuns,
    ByModel,
    Consult,
    InThread,
    Performing,
    PerformRole,
    ResearchConstraints,
    ResearchPlan,
    role_spec,
)
from retinue.runtime import PreparedRun
from retinue.service.runs import RunService

GRACE_S = 5.0
"""Beyond the deadline of the roles: what they found by then is still put together and told."""

OnStart = Callable[[RunId], object]


def nobody(run_id: RunId) -> None:
    """Hears of a run and does nothing."""


@dataclass(frozen=True, slots=True)
class ResearchAnswer:
    view: dict[str, object]
    said: str
    """The same in a few words, for the record."""
    error: RetinueError | None = None
    """Why the run behind it has not succeeded, although there is something to say."""


@dataclass(frozen=True, slots=True)
class Study:
    """A question that was checked and may be worked on."""

    agent: str
    """Who works on it, by the name that its run bears."""
    request: ResearchPlan
    answer: Callable[[PerformRole, Consult | None], Awaitable[ResearchAnswer]]
    is_single: bool = False
    """Whether one role alone works on it: then its run is the request's own."""


async def answer_in_a_run(
    runs: RunService, study: Study, on_start: OnStart, model: Callable[[], Model] | None = None
) -> dict[str, object]:
    """The answer; or where the run stands, if it takes longer than a host's patience (P9)."""
    done: list[ResearchAnswer] = []
    threads = InThread(runs.workers)
    question = study.request.asked.text

    async def work(ctx: RunContext) -> Outcome:
        perform: PerformRole = replace(threads, charge=ctx.spending.charge)
        own = RunId.parse(ctx.run_id)
        if not study.is_single:
            perform = AsRuns(runs.supervisor, own, question, ctx.cwd, threads)
        consult = None if model is None else ByModel(runs.supervisor, own, ctx.cwd, model)
        answer = await study.answer(perform, consult)
        done.append(answer)
        return Outcome(answer.said, value=cast("Json", answer.view), error=answer.error)

    executor = Performing(work)
    spec = role_spec(study.agent, question, _limits(study.request.constraints))
    run = await runs.supervisor.start(PreparedRun(spec, executor, runs.cwd))
    on_start(run.id)
    await runs.supervisor.wait(run.id, runs.patience_s)
    if done:
        return done[0].view
    if executor.error is not None:
        raise executor.error
    ended = runs.store.runs.get(run.id)
    if ended.status.ended:
        raise _failure(ended)
    return runs.outcome(run.id)


def _limits(given: ResearchConstraints) -> RunLimits:
    budget = Budget(files=given.max_files_read, bytes=given.max_bytes_read)
    return RunLimits(run_s=given.deadline_ms / 1000 + GRACE_S, budget=budget)


def _failure(run: Run) -> RetinueError:
    """What ended a run that left no answer."""
    match run.error:
        case {"message": str() as message}:
            pass
        case _:
            message = "the run ended without an answer"
    kinds: dict[RunStatus, type[RetinueError]] = {
        RunStatus.CANCELED: Canceled,
        RunStatus.INTERRUPTED: Canceled,
        RunStatus.TIMEOUT: DeadlineExceeded,
    }
    return kinds.get(run.status, InternalError)(message)
