"""Gives every run the same life: recorded, queued, performed, ended, and honest about how it ended.

The one place where reasons to stop are caught. A run's task begins its work only after the transaction that
records the run has committed. Whatever fails in a run's life, the store included, ends that run alone.

Knows nothing of MCP, nor of how a task is performed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

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
    Unavailable,
    Verdict,
    deny_all,
    wait_shielded,
)
from retinue.runtime.mailroom import ParentReply
from retinue.runtime.meter import Meter, Meters
from retinue.runtime.pool import Pool
from retinue.store import LogStream, LogWriter, Store, last_words

T = TypeVar("T")

log = logging.getLogger(__name__)

SUMMARY_CHARS = 600
"""A run that succeeded and said nothing of itself is summed up by this much of its answer."""
STORE_RETRY_S = 0.2

AskAs = Callable[[RunId, str, float | None], Awaitable[ParentReply]]
"""Puts a run's question to its parent and waits for the answer, for so many seconds."""
Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is to do, and with what."""

    spec: RunSpec
    executor: Executor
    cwd: Path
    env: Callable[[RunId], Environment] = field(default=lambda _: {})
    """Makes the variables through which the run's processes reach us. Called in the recording transaction."""
    permit: Callable[[RunId, ToolRequest], Awaitable[Verdict]] | None = None
    """Decides on what the agent is neither allowed nor denied; None denies it."""


@dataclass(frozen=True, slots=True)
class Performed:
    """A run that has ended, with its outcome as the executor gave it."""

    run: Run
    outcome: Outcome | None
    """None if the run ended without one: canceled, timed out, or failed."""
    error: RetinueError | None = None
    """What ended a run without an outcome, as far as this process knows."""


@dataclass(slots=True)
class _Life:
    """A run that this process performs."""

    run: Run
    task: asyncio.Task[None]
    outcome: Outcome | None = None
    error: RetinueError | None = None


class Parked(Exception):
    """Raised by work that lets its run go: another process, or a later task of this one, goes on with it."""


class Supervisor:
    """`async with Supervisor(...)`: runs that are active when the block ends are ended with it."""

    def __init__(self, store: Store, pool: Pool, redactor: Redactor, ask: AskAs | None = None) -> None:
        """`ask` carries questions to the parents of runs whose executors have no other way to ask."""
        self._store = store
        self._ask = ask
        self._pool = pool
        self._redactor = redactor
        self._meters = Meters(store)
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as scope:
            self._group = await scope.enter_async_context(asyncio.TaskGroup())
            self._lives: dict[RunId, _Life] = {}
            self._recording: set[asyncio.Task[_Life | Exception]] = set()
            self._stopping = False
            scope.callback(self._stop)
            self._scope = scope.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)

    def _stop(self) -> None:
        self._stopping = True
        for task in (*self._recording, *(life.task for life in self._lives.values())):
            task.cancel()

    async def start(self, work: Work, also: Callable[[Run], object] | None = None) -> Run:
        """Record the run, and what `also` writes for it in the same transaction, and set it going.

        Raises `QueueFull`, and records nothing, if there is no room for it.
        """
        return (await self._start(work, also)).run

    async def perform(self, work: Work, also: Callable[[Run], object] | None = None) -> Performed:
        """Start a run and wait for its end. Cancelling the wait cancels the run."""
        life = await self._start(work, also)
        try:
            await asyncio.wait([life.task])
        except asyncio.CancelledError:
            self._store.post(self._store.runs.request_cancel, life.run.id)
            await wait_shielded(life.task)
            raise
        ended = await self._retrying(partial(self._store.runs.get, life.run.id))
        return Performed(ended, life.outcome, life.error)

    async def resume(self, run_id: RunId, work: Work) -> bool:
        """Go on with a parked run. False if another process was quicker."""

        def adopt() -> tuple[Run, Environment] | None:
            if not self._store.runs.adopt(run_id, self._pool.owner):
                return None
            return self._store.runs.get(run_id), work.env(run_id)

        adopted = await self._store.write(adopt)
        if adopted is not None:
            self._begin(adopted[0], work, adopted[1], recorded_here=False)
        return adopted is not None

    async def wait(self, run_id: RunId, seconds: float) -> None:
        """Wait until a run that was started here has ended, or the time is over."""
        if life := self._lives.get(run_id):
            await asyncio.wait([life.task], timeout=seconds)

    async def _start(self, work: Work, also: Callable[[Run], object] | None) -> _Life:
        """Record in a task of our own: a caller that is cancelled meanwhile leaves no run without a task."""
        recording = self._group.create_task(self._record(work, also))
        self._recording.add(recording)
        recording.add_done_callback(self._recording.discard)
        try:
            recorded = await asyncio.shield(recording)
        except asyncio.CancelledError:
            recording.add_done_callback(self._cancel_unclaimed)
            raise
        if isinstance(recorded, Exception):
            raise recorded
        return recorded

    def _cancel_unclaimed(self, recording: asyncio.Task[_Life | Exception]) -> None:
        """Cancel a run whose starter was cancelled before it knew of it. A stopping server interrupts it."""
        if self._stopping:
            return
        if not recording.cancelled() and isinstance(life := recording.result(), _Life):
            self._store.post(self._store.runs.request_cancel, life.run.id)

    async def _record(self, work: Work, also: Callable[[Run], object] | None) -> _Life | Exception:
        """Return the error instead of raising it: raised in the task group, it would end every other run."""

        def write(run: Run) -> Environment:
            if also is not None:
                also(run)
            return work.env(run.id)

        try:
            async with self._spawning(work.spec.parent):
                run, environment = await self._pool.record(work.spec, write)
        except Exception as error:
            return error
        return self._begin(run, work, environment, recorded_here=True)

    @asynccontextmanager
    async def _spawning(self, parent: RunId | None) -> AsyncGenerator[None]:
        """Charge a child to the run that starts it."""
        if parent is None:
            yield
            return
        async with self._meters.taking(self._store.runs.get(parent), BudgetKind.SPAWNS, 1):
            yield

    def _begin(self, run: Run, work: Work, environment: Environment, *, recorded_here: bool) -> _Life:
        live = self._live(run, work, environment, recorded_here=recorded_here)
        task = self._group.create_task(live, name=f"run {run.id}")
        life = self._lives[run.id] = _Life(run, task)
        task.add_done_callback(lambda _: self._forget(life))
        return life

    def _forget(self, life: _Life) -> None:
        """Keep the newer life if this process resumed the run meanwhile."""
        if self._lives.get(life.run.id) is life:
            del self._lives[life.run.id]

    async def _live(self, run: Run, work: Work, environment: Environment, *, recorded_here: bool) -> None:
        """A run from the queue to its end. No exception leaves it, because one would end every other run."""
        life = self._lives[run.id]
        try:
            with (
                self._meters.open(run, recorded_here=recorded_here) as meter,
                LogWriter(self._store.folder.log(run.id)) as writer,
            ):
                try:
                    async with self._pool.slot(run.id) as slot:
                        outcome = life.outcome = await self._perform(run, work, environment, meter, writer)
                        slot.keep()
                        await self._store.posted()  # what was noted of the run belongs into its ending
                        await self._finish(
                            life, await self._retrying(partial(self._ending, run, outcome)), meter
                        )
                    await self._spread(run, outcome.error)
                    return
                except Parked:
                    self._store.post(self._store.runs.set_usage, run.id, meter.usage())
                    return
                except asyncio.CancelledError:
                    self._store.post(self._store.runs.set_usage, run.id, meter.usage())
                    raise
                except RetinueError as error:
                    failure = await self._real_reason(run, error)
                except Exception:
                    log.exception("run %s failed because of a bug in Retinue", run.id)
                    failure = InternalError("the run failed because of a bug in Retinue; see the log")
                life.error = failure
                if isinstance(failure, Canceled | BudgetExceeded):
                    await self._wait_for_children(run)
                writer.append(LogStream.EVENT, f"{failure.code}: {failure.message}\n")
                await self._finish(life, await self._retrying(partial(self._failed, run, failure)), meter)
                await self._spread(run, failure)
        except Exception as error:
            log.exception("run %s could not be ended properly", run.id)
            broken = error if isinstance(error, RetinueError) else InternalError("see the log of the server")
            life.error = life.error or broken
            ending = Ending(status=RunStatus.ERROR, error=self._redactor.redact_value(broken.as_json()))
            self._store.post(self._store.runs.finish, run.id, ending)

    async def _retrying(self, call: Callable[[], T]) -> T:
        """Call a function that reads the store, again and again while the store is unavailable."""
        while True:
            try:
                return call()
            except Unavailable:
                await asyncio.sleep(STORE_RETRY_S)

    async def _wait_for_children(self, run: Run) -> None:
        """A canceled tree has ended when all of it has: the first run must not say so before."""
        children = await self._retrying(partial(self._store.runs.list, parent=run.id, limit=-1))
        tasks = [self._lives[child.id].task for child in children if child.id in self._lives]
        if tasks:
            await asyncio.wait(tasks)

    async def _spread(self, run: Run, failure: RetinueError | None) -> None:
        """Cancel the whole tree if its common budget is spent, and note why at its first run.

        A limit of the run's own ends that run alone: whoever started it may go on without it (P2).
        """
        if not isinstance(failure, BudgetExceeded):
            return
        accounts = await self._retrying(partial(self._store.ledgers.accounts, run.request))
        account = accounts.get(BudgetKind(failure.kind))
        if run.id != run.request and (account is None or account.limit != failure.limit):
            return

        def spread() -> None:
            if run.id != run.request:
                data: dict[str, Json] = {"kind": failure.kind, "used": failure.used, "limit": failure.limit}
                self._store.events.add(run.request, "budget_exceeded", data)
            self._store.runs.request_cancel(run.request)

        await self._store.persist(spread)

    async def _real_reason(self, run: Run, error: RetinueError) -> RetinueError:
        """A run that was canceled because its tree's budget is spent says so."""
        if not isinstance(error, Canceled):
            return error
        spent = await self._retrying(partial(self._store.events.last_of_kind, run.id, "budget_exceeded"))
        match spent and spent.data:
            case {"kind": str(kind), "used": int() | float() as used, "limit": int() | float() as limit}:
                return BudgetExceeded(kind, used, limit)
            case _:
                return error

    async def _perform(
        self, run: Run, work: Work, environment: Environment, meter: Meter, writer: LogWriter
    ) -> Outcome:
        clean = {stream: self._redactor.lines() for stream in LogStream}

        async def emit(line: OutputLine) -> None:
            stream = LogStream(line.stream)
            text = clean[stream](line.text)
            writer.append(stream, text + "\n" if line.complete else text)

        async def started(identity: ProcessIdentity) -> None:
            self._store.post(self._store.runs.set_process, run.id, identity)

        task = Task(agent=run.spec.agent, prompt=run.spec.task)
        context = RunContext(
            run_id=str(run.id),
            cwd=work.cwd,
            seconds=None,
            emit=emit,
            started=started,
            env=environment,
            spending=meter,
            ask=self._asking(run.id),
            hide=self._redactor.hide,
            permit=deny_all if work.permit is None else partial(work.permit, run.id),
        )
        limit = run.spec.limits.run_s
        clock = asyncio.get_running_loop().time
        async with meter.reserving(
            BudgetKind.WALL_MS, 0 if limit is None else math.ceil(limit * 1000)
        ) as wall:
            began = clock()
            try:
                return await work.executor.run(task, context)
            finally:
                wall.settle(round((clock() - began) * 1000))

    def _asking(self, run_id: RunId) -> AskParent | None:
        carry = self._ask
        if carry is None:
            return None

        async def ask(question: str, wait_s: float | None) -> Message:
            return (await carry(run_id, self._redactor.redact(question), wait_s)).message

        return ask

    def _ending(self, run: Run, outcome: Outcome) -> Ending:
        """How the run is recorded. What happened decides; what the run said of itself can only make it worse."""
        output = self._redactor.redact(outcome.output)
        facts = self._redactor.redact_value(self._facts(run, outcome))
        result: dict[str, Json] = {"output": output, "cut": outcome.cut, **facts}
        if outcome.value is not None:
            result["value"] = self._redactor.redact_value(outcome.value)
        if outcome.notes:
            result["notes"] = [self._redactor.redact(note) for note in outcome.notes]
        if outcome.error is not None:
            return replace(self._failed(run, outcome.error, outcome.exit_code), result=result)
        claim = self._store.events.last_of_kind(run.id, "report")
        if claim is not None and claim.data.get("status") == "error":
            error = RetinueError("the run reported that it failed")
            return self._failed(run, error, outcome.exit_code, own_summary=True)
        reported = self._store.runs.get(run.id).summary
        return Ending(
            status=RunStatus.SUCCESS,
            result=result,
            exit_code=outcome.exit_code,
            summary=None if reported else output[:SUMMARY_CHARS],
        )

    def _facts(self, run: Run, outcome: Outcome) -> dict[str, Json]:
        """What the executor reported, and what the run was denied: not every CLI reports that."""
        told = cast("Sequence[str]", outcome.facts.get("denials", ()))
        decided = [event.data for event in self._store.events.of_run(run.id, kind="permission")]
        denied = [
            str(ToolRequest(str(it["tool"]), str(it["subject"]))) for it in decided if not it["allowed"]
        ]
        denials = list(dict.fromkeys((*told, *denied)))
        return {**outcome.facts, **({"denials": denials} if denials else {})}

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

    async def _finish(self, life: _Life, ending: Ending, meter: Meter) -> None:
        """Record the end, what the run spent, and the budget it gives back, in one transaction.

        A cancel from elsewhere may have ended a run that still queued: that ending stands.
        """
        run = life.run
        survivors = [identity.pid for identity in life.outcome.survivors] if life.outcome else []
        unspent = self._meters.unspent(run)
        whole = replace(ending, usage=meter.usage())

        def finish() -> bool:
            if survivors:
                self._store.events.add(run.id, "survivors", {"pids": survivors})
            if unspent:
                self._store.ledgers.give_back(run.request, unspent)
            return self._store.runs.finish(run.id, whole)

        await self._pool.finish(run.id, finish)
