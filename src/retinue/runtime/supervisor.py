"""Gives every run the same life: recorded, queued, performed, ended, and honest about how it ended.

The one place where reasons to stop are caught. Knows nothing of MCP, nor of how a task is performed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from retinue.core import (
    AskParent,
    BudgetExceeded,
    BudgetKind,
    Canceled,
    DeadlineExceeded,
    Ending,
    Executor,
    InternalError,
    Json,
    Message,
    Outcome,
    OutputLine,
    ProcessIdentity,
    Redactor,
    RetinueError,
    Run,
    RunContext,
    RunId,
    RunSpec,
    RunStatus,
    Task,
    ToolRequest,
    Verdict,
    deny_all,
)
from retinue.runtime.meter import Meter, Meters
from retinue.runtime.pool import Pool
from retinue.runtime.shielded import wait_shielded
from retinue.store import LogStream, LogWriter, Store, last_words

log = logging.getLogger(__name__)

SUMMARY_LETTERS = 600
"""Of a run that succeeded and said nothing itself: the beginning of its answer."""

AskAs = Callable[[RunId, str, float | None], Awaitable[Message]]
"""A question of a run to its parent, with the seconds that it waits for the answer."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is to do, and with what."""

    spec: RunSpec
    executor: Executor
    cwd: Path
    env: Callable[[RunId], Mapping[str, str]] = field(default=lambda _: {})
    """Variables through which its processes can reach us; made when it starts."""
    permit: Callable[[RunId, ToolRequest], Awaitable[Verdict]] | None = None
    """Decides on what its agent is neither allowed nor denied; None denies it."""


@dataclass(frozen=True, slots=True)
class Performed:
    """A run that was waited for to its end."""

    run: Run
    """As it was stored at its end."""
    outcome: Outcome | None
    """What its executor returned; None if the executor raised or was ended."""


class Parked(Exception):
    """Raised by work that was let go of: it is no longer this process that performs it."""


class Supervisor:
    """`async with Supervisor(...)`: runs that are active when the block ends are ended with it."""

    def __init__(self, store: Store, pool: Pool, redactor: Redactor, ask: AskAs | None = None) -> None:
        """`ask` carries questions to the parents of runs whose executors have no other way to ask."""
        self._store = store
        self._ask = ask
        self._pool = pool
        self._redactor = redactor
        self._meters = Meters(store.ledgers)
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as scope:
            self._group = await scope.enter_async_context(asyncio.TaskGroup())
            self._tasks: dict[RunId, asyncio.Task[None]] = {}
            self._outcomes: dict[RunId, Outcome | None] = {}
            scope.callback(self._stop)
            self._scope = scope.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)

    def start(self, work: Work) -> Run:
        """Record the run and set it going; `Saturated`, and nothing recorded, when there is no room."""
        with self._spawning(work.spec.parent):
            run = self._pool.submit(work.spec)
        self._begin(run, work)
        return run

    def resume(self, run_id: RunId, work: Work) -> bool:
        """Go on with a run that was parked; False when somebody else was quicker."""
        if not self._pool.adopt(run_id):
            return False
        self._begin(self._store.runs.get(run_id), work)
        return True

    def _begin(self, run: Run, work: Work) -> None:
        task = self._group.create_task(self._live(run, work), name=f"run {run.id}")
        self._tasks[run.id] = task
        task.add_done_callback(lambda ended: self._forget(run.id, ended))

    def _forget(self, run_id: RunId, task: asyncio.Task[None]) -> None:
        """Of a run that was let go of and taken up again here, the later task stays."""
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]

    async def perform(self, work: Work) -> Performed:
        """Start a run and wait for its end. Canceling the wait cancels the run."""
        run = self.start(work)
        task = self._tasks[run.id]
        self._outcomes[run.id] = None
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self._store.runs.request_cancel(run.id)
            await wait_shielded(task)
            raise
        finally:
            outcome = self._outcomes.pop(run.id)
        return Performed(self._store.runs.get(run.id), outcome)

    async def wait(self, run_id: RunId, seconds: float) -> None:
        """Until a run that was started here has ended, or the time is over."""
        if task := self._tasks.get(run_id):
            await asyncio.wait([task], timeout=seconds)

    def _spawning(self, parent: RunId | None) -> AbstractContextManager[None]:
        """A child is charged to the run that starts it."""
        if parent is None:
            return nullcontext()
        return self._meters.taking(self._store.runs.get(parent), BudgetKind.SPAWNS, 1)

    def _stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _live(self, run: Run, work: Work) -> None:
        """From the queue to the end. Only the server's own end leaves the record to the pool."""
        with self._meters.open(run) as meter, LogWriter(self._store.folder.log(run.id)) as writer:
            try:
                async with self._pool.slot(run.id):
                    performed = await self._perform(run, work, meter, writer)
                    if run.id in self._outcomes:
                        self._outcomes[run.id] = performed
                    self._finish(run, self._ending(run, performed))
                self._spread(run, performed.error)
                return
            except Parked:
                return
            except RetinueError as error:
                failure = self._real_reason(run, error)
            except Exception:
                log.exception("run %s failed for a reason of its own", run.id)
                failure = InternalError("the run failed for a reason of its own")
            if isinstance(failure, Canceled | BudgetExceeded):
                await self._children_ended(run)
            writer.append(LogStream.EVENT, f"{failure.code}: {failure.message}\n")
            self._finish(run, self._failed(run, failure))
            self._spread(run, failure)

    async def _children_ended(self, run: Run) -> None:
        """A tree that was canceled has ended when all of it has: the first run must not say so before."""
        children = self._store.runs.list(parent=run.id, limit=-1)
        tasks = [self._tasks[child.id] for child in children if child.id in self._tasks]
        if tasks:
            await asyncio.wait(tasks)

    def _spread(self, run: Run, failure: RetinueError | None) -> None:
        """A budget that the whole tree has spent ends the tree, and its first run must be able to say why.

        A limit of the run's own is its own affair: whoever started it may go on without it (P2).
        """
        if not isinstance(failure, BudgetExceeded):
            return
        account = self._store.ledgers.accounts(run.request).get(BudgetKind(failure.kind))
        if run.id != run.request and (account is None or account.limit != failure.limit):
            return
        if run.id != run.request:
            data = {"kind": failure.kind, "used": failure.used, "limit": failure.limit}
            self._store.events.add(run.request, "budget_exceeded", data)
        self._store.runs.request_cancel(run.request)

    def _real_reason(self, run: Run, error: RetinueError) -> RetinueError:
        spent = self._store.events.last_of_kind(run.id, "budget_exceeded")
        match spent and spent.data:
            case {"kind": str(kind), "used": int() | float() as used, "limit": int() | float() as limit}:
                return BudgetExceeded(kind, used, limit) if isinstance(error, Canceled) else error
            case _:
                return error

    async def _perform(self, run: Run, work: Work, meter: Meter, writer: LogWriter) -> Outcome:
        clean = {stream: self._redactor.lines() for stream in LogStream}

        async def emit(line: OutputLine) -> None:
            stream = LogStream(line.stream)
            text = clean[stream](line.text)
            writer.append(stream, text + "\n" if line.complete else text)

        async def started(identity: ProcessIdentity) -> None:
            self._store.runs.set_process(run.id, identity)

        task = Task(agent=run.spec.agent, prompt=run.spec.task)
        context = RunContext(
            run_id=str(run.id),
            cwd=work.cwd,
            seconds=None,
            emit=emit,
            started=started,
            env=work.env(run.id),
            spending=meter,
            ask=self._asking(run.id),
            hide=self._redactor.hide,
            permit=deny_all if work.permit is None else partial(work.permit, run.id),
        )
        limit = run.spec.limits.run_s
        with meter.reserve(BudgetKind.WALL_MS, 0 if limit is None else math.ceil(limit * 1000)) as wall:
            began = asyncio.get_running_loop().time()
            try:
                return await work.executor.run(task, context)
            finally:
                wall.settle(round((asyncio.get_running_loop().time() - began) * 1000))
                self._store.runs.set_usage(run.id, meter.usage())

    def _asking(self, run_id: RunId) -> AskParent | None:
        carry = self._ask
        if carry is None:
            return None

        async def ask(question: str, wait_s: float | None) -> Message:
            return await carry(run_id, self._redactor.redact(question), wait_s)

        return ask

    def _ending(self, run: Run, performed: Outcome) -> Ending:
        """What happened decides; what the run said of itself can only make it worse."""
        if performed.survivors:
            pids = [identity.pid for identity in performed.survivors]
            self._store.events.add(run.id, "survivors", {"pids": pids})
        output = self._redactor.redact(performed.output)
        facts = self._redactor.redact_value(self._facts(run, performed))
        result: dict[str, Json] = {"output": output, "cut": performed.cut, **facts}
        if performed.value is not None:
            result["value"] = self._redactor.redact_value(performed.value)
        if performed.notes:
            result["notes"] = [self._redactor.redact(note) for note in performed.notes]
        if performed.error is not None:
            return replace(self._failed(run, performed.error, performed.exit_code), result=result)
        claim = self._store.events.last_of_kind(run.id, "report")
        if claim is not None and claim.data.get("status") == "error":
            error = RetinueError("the run reported that it failed")
            return self._failed(run, error, performed.exit_code, own_summary=True)
        reported = self._store.runs.get(run.id).summary
        return Ending(
            status=RunStatus.SUCCESS,
            result=result,
            exit_code=performed.exit_code,
            summary=None if reported else output[:SUMMARY_LETTERS],
        )

    def _facts(self, run: Run, performed: Outcome) -> dict[str, Json]:
        """What the executor told, and what the run was denied: not every CLI tells that."""
        told = cast("Sequence[str]", performed.facts.get("denials", ()))
        decided = [event.data for event in self._store.events.of_run(run.id, kind="permission")]
        denied = [
            str(ToolRequest(str(it["tool"]), str(it["subject"]))) for it in decided if not it["allowed"]
        ]
        denials = list(dict.fromkeys((*told, *denied)))
        return {**performed.facts, **({"denials": denials} if denials else {})}

    def _failed(
        self, run: Run, error: RetinueError, exit_code: int | None = None, *, own_summary: bool = False
    ) -> Ending:
        match error:
            case DeadlineExceeded():
                status = RunStatus.TIMEOUT
            case Canceled():
                status = RunStatus.CANCELED
            case _:
                status = RunStatus.ERROR
        return Ending(
            status=status,
            error=self._redactor.redact_value(error.as_json()),
            exit_code=exit_code,
            summary=None
            if own_summary
            else self._redactor.redact(last_words(self._store.folder.log(run.id))),
        )

    def _finish(self, run: Run, outcome: Ending) -> None:
        """A cancel from elsewhere may have ended a run that still queued: that ending stands."""
        self._pool.finish(run.id, outcome)
