"""Takes every run through the same stages: recorded, queued, performed, ended.

This is the only place that catches the reasons to stop a run. A run's task starts after the transaction
that records the run has committed. Any failure, even of the store, ends only the run it affects.

Knows nothing of MCP or of how a task is performed.
"""

from __future__ import annotations

import asyncio
import logging
import math
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import anyio.to_thread

from retinue.core import (
    WEB_EVENT,
    Activity,
    AskParent,
    BudgetExceeded,
    BudgetKind,
    Canceled,
    Ending,
    InternalError,
    Json,
    LongText,
    Message,
    Outcome,
    OutputLine,
    ProcessIdentity,
    QuotaSpent,
    Redactor,
    RetinueError,
    Run,
    RunContext,
    RunId,
    RunStatus,
    Task,
    Throttled,
    Unavailable,
    Usage,
    as_object,
    clip,
    deny_all,
    tells_of_web,
    wait_shielded,
)
from retinue.runtime.meter import Meter, Meters
from retinue.runtime.pool import Pool
from retinue.runtime.prepared_run import Environment, PreparedRun
from retinue.runtime.quotas import RESUMED, AskParentOf, QuotaKeeper
from retinue.runtime.run_endings import RunEndings
from retinue.store import LogStream, LogWriter, Store, read_output

T = TypeVar("T")

log = logging.getLogger(__name__)

STORE_RETRY_S = 0.2
MAX_COMMAND_CHARACTERS = 4_000
"""Characters of a command line that are recorded."""
WRITTEN_AT_ONCE = 4_000
"""Characters of output that are written to the log on the event loop; more are written in a thread."""

MAX_SIBLINGS = 50
"""How many of the latest runs are searched for siblings."""


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """A run that has ended, with the outcome that its executor returned."""

    run: Run
    outcome: Outcome | None
    """None if the run was canceled, timed out or failed."""
    error: RetinueError | None = None
    """Why the run has no outcome, if this process knows it."""


@dataclass(slots=True)
class _ActiveRun:
    """A run that this process performs."""

    run: Run
    task: asyncio.Task[None]
    outcome: Outcome | None = None
    error: RetinueError | None = None
    activity: Activity = field(default_factory=Activity)
    requeued: bool = False
    """Whether the run went back to the queue because of its account."""
    attempted: bool = False
    """Whether its task had begun before that."""


class _RedactedLog:
    """Writes the output of a run to its log, without secrets."""

    def __init__(self, writer: LogWriter, redactor: Redactor) -> None:
        self._writer = writer
        self._streams = {stream: redactor.stream() for stream in LogStream}

    async def emit(self, line: OutputLine) -> None:
        stream = LogStream(line.stream)
        text = self._streams[stream].feed(line.text + "\n" if line.complete else line.text)
        if len(text) >= WRITTEN_AT_ONCE:  # the disk of a busy machine may keep a large write waiting
            await anyio.to_thread.run_sync(self._writer.append, stream, text)
        elif text:
            self._writer.append(stream, text)

    def finish(self) -> None:
        """Write what was held back because it could have been the beginning of a secret."""
        for stream, rest in self._streams.items():
            if text := rest.finish():
                self._writer.append(stream, text)


class RunParked(Exception):
    """Raised by an executor that has parked its run. A later task, in this or another process, resumes it."""


class Supervisor:
    """Performs runs within `async with Supervisor(...)`. The end of the block ends the active runs."""

    def __init__(
        self,
        store: Store,
        pool: Pool,
        redactor: Redactor,
        ask: AskParentOf | None = None,
        quota_wait_s: float = 0.0,
    ) -> None:
        """`ask` sends a run's question to its parent, for executors that have no other way to ask.

        `quota_wait_s` is how long a run waits at most for the usage limit of its account.
        """
        self._store = store
        self._ask = ask
        self._pool = pool
        self._redactor = redactor
        self._meters = Meters(store)
        self._endings = RunEndings(store, redactor)
        self.quotas = QuotaKeeper(store, redactor, ask, quota_wait_s)
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as scope:
            self._group = await scope.enter_async_context(asyncio.TaskGroup())
            self._active: dict[RunId, _ActiveRun] = {}
            self._recording: set[asyncio.Task[_ActiveRun | Exception]] = set()
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
        for task in (*self._recording, *(active.task for active in self._active.values())):
            task.cancel()

    async def start(self, work: PreparedRun, also: Callable[[Run], object] | None = None) -> Run:
        """Record the run, with what `also` writes in the same transaction, and start it.

        Raises `QueueFull`, and records nothing, if the queue is full.
        """
        return (await self._start(work, also)).run

    async def perform(self, work: PreparedRun, also: Callable[[Run], object] | None = None) -> CompletedRun:
        """Start a run and wait until it has ended. Cancelling the wait cancels the run."""
        active = await self._start(work, also)
        try:
            await asyncio.wait([active.task])
        except asyncio.CancelledError:
            self._store.post(self._store.runs.request_cancel, active.run.id)
            await wait_shielded(active.task)
            raise
        ended = await self._retry_read(partial(self._store.runs.get, active.run.id))
        return CompletedRun(ended, active.outcome, active.error)

    async def resume(self, run_id: RunId, work: PreparedRun) -> bool:
        """Adopt a parked run and continue it. False if another process has adopted it."""

        def adopt() -> tuple[Run, Environment] | None:
            if not self._store.runs.adopt(run_id, self._pool.owner):
                return None
            return self._store.runs.get(run_id), work.env(run_id)

        adopted = await self._store.write(adopt)
        if adopted is not None:
            active = self._create_task(adopted[0], work, adopted[1], recorded_here=False)
            if work.account is not None:
                active.requeued = True
                active.attempted = self.quotas.was_attempted(run_id)
        return adopted is not None

    def usage_so_far(self, run_id: RunId) -> Usage | None:
        """What an active run of this process has spent until now; None if it is not active here."""
        return self._meters.usage_of(run_id)

    async def wait(self, run_id: RunId, seconds: float) -> None:
        """Wait until a run of this process has ended, at most for the given number of seconds."""
        if active := self._active.get(run_id):
            await asyncio.wait([active.task], timeout=seconds)

    async def _start(self, work: PreparedRun, also: Callable[[Run], object] | None) -> _ActiveRun:
        """Record the run in a separate task, so that a cancelled caller leaves no run without a task."""
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

    def _cancel_unclaimed(self, recording: asyncio.Task[_ActiveRun | Exception]) -> None:
        """Cancel a run whose starter was cancelled before it knew of it. A stopping server interrupts it."""
        if self._stopping:
            return
        if not recording.cancelled() and isinstance(active := recording.result(), _ActiveRun):
            self._store.post(self._store.runs.request_cancel, active.run.id)

    async def _record(
        self, work: PreparedRun, also: Callable[[Run], object] | None
    ) -> _ActiveRun | Exception:
        """Return errors instead of raising them: raised in the task group, they would end every other run."""

        def write(run: Run) -> Environment:
            if also is not None:
                also(run)
            return work.env(run.id)

        try:
            async with self._charge_spawn(work.spec.parent):
                run, environment, admitted = await self._store.write(
                    self._store.runs.record_and_admit, work.spec, self._pool.claim, write
                )
        except Exception as error:
            return error
        self._pool.start(admitted)
        return self._create_task(run, work, environment, recorded_here=True)

    @asynccontextmanager
    async def _charge_spawn(self, parent: RunId | None) -> AsyncGenerator[None]:
        """Charge a child run to its parent's budget. A failed block gives it back."""
        if parent is None:
            yield
            return
        async with self._meters.taken_from(self._store.runs.get(parent), BudgetKind.SPAWNS, 1):
            yield

    def _create_task(
        self, run: Run, work: PreparedRun, environment: Environment, *, recorded_here: bool
    ) -> _ActiveRun:
        coroutine = self._run_to_end(run, work, environment, recorded_here=recorded_here)
        task = self._group.create_task(coroutine, name=f"run {run.id}")
        active = self._active[run.id] = _ActiveRun(run, task)
        task.add_done_callback(lambda _: self._forget(active))
        return active

    def _forget(self, active: _ActiveRun) -> None:
        """Drop an ended task. Keep the newer one if this process has resumed the run meanwhile."""
        if self._active.get(active.run.id) is active:
            del self._active[active.run.id]

    async def _run_to_end(
        self, run: Run, work: PreparedRun, environment: Environment, *, recorded_here: bool
    ) -> None:
        """Take a run from the queue to its end. Raises nothing, because that would end every other run."""
        active = self._active[run.id]
        try:
            with (
                self._meters.open(run, recorded_here=recorded_here) as meter,
                LogWriter(self._store.folder.log(run.id)) as writer,
            ):
                failure = await self._run_until_outcome(active, work, environment, meter, writer)
                if failure is not None:
                    await self._end_failed(active, failure, meter, writer)
        except Exception as error:
            log.exception("the end of run %s could not be recorded properly", run.id)
            broken = error if isinstance(error, RetinueError) else InternalError("see the log of the server")
            active.error = active.error or broken
            ending = Ending(status=RunStatus.ERROR, error=self._redactor.redact_value(broken.as_json()))
            self._store.post(self._store.runs.finish, run.id, ending)

    async def _run_until_outcome(
        self, active: _ActiveRun, work: PreparedRun, environment: Environment, meter: Meter, writer: LogWriter
    ) -> RetinueError | None:
        """Perform the task and record its outcome. Returns why there is none; None for a parked run."""
        run = active.run
        try:
            await self._perform_in_slots(active, work, environment, meter, writer)
        except RunParked:
            self._store.post(self._store.runs.set_usage, run.id, meter.usage())
        except asyncio.CancelledError:
            self._store.post(self._store.runs.set_usage, run.id, meter.usage())
            raise
        except RetinueError as error:
            return await self._cause_of_cancel(run, error)
        except Exception:
            log.exception("run %s failed because of a bug in Retinue", run.id)
            return InternalError("the run failed because of a bug in Retinue; see the log")
        return None

    async def _perform_in_slots(
        self, active: _ActiveRun, work: PreparedRun, environment: Environment, meter: Meter, writer: LogWriter
    ) -> None:
        """Perform the task in a slot, once more each time it returns to the queue, and record its outcome."""
        run = active.run
        while True:
            async with self._pool.slot(run.id) as slot:
                outcome = await self._attempt(active, work, environment, meter, writer)
                if isinstance(outcome, PreparedRun):
                    work, slot.ended = outcome, True
                    continue
                active.outcome = outcome
                slot.ignore_stops()
                await self._store.wait_posted()  # the ending includes what was posted for the run
                whole = await self._read_whole(run, outcome)
                ending = await self._retry_read(partial(self._endings.of_outcome, run, outcome, whole))
                await self._finish(active, ending, meter)
            await self._cancel_tree_if_spent(run, outcome.error)
            return

    async def _end_failed(
        self, active: _ActiveRun, failure: RetinueError, meter: Meter, writer: LogWriter
    ) -> None:
        """Record the end of a run without an outcome."""
        run, active.error = active.run, failure
        if isinstance(failure, Canceled | BudgetExceeded):
            await self._wait_for_children(run)
        ending: Ending | None = None
        if isinstance(failure, Canceled):
            ending = await self._retry_read(partial(self._endings.of_decision, run))
        if ending is not None:
            writer.append(LogStream.EVENT, f"{ending.status}: decided by whoever started the run\n")
        else:
            writer.append(LogStream.EVENT, f"{failure.code}: {self._redactor.redact(failure.message)}\n")
            ending = await self._retry_read(partial(self._endings.of_failure, run, failure))
        await self._finish(active, ending, meter)
        await self._cancel_tree_if_spent(run, failure)

    async def _retry_read(self, call: Callable[[], T]) -> T:
        """Call a function that reads the store; retry while the store is unavailable."""
        while True:
            try:
                return call()
            except Unavailable:
                await asyncio.sleep(STORE_RETRY_S)

    async def _wait_for_children(self, run: Run) -> None:
        """Wait for the child runs in this process: a canceled run ends after all of its descendants."""
        children = await self._retry_read(partial(self._store.runs.list, parent=run.id, limit=-1))
        tasks = [self._active[child.id].task for child in children if child.id in self._active]
        if tasks:
            await asyncio.wait(tasks)

    async def _cancel_tree_if_spent(self, run: Run, failure: RetinueError | None) -> None:
        """Cancel the whole tree if its shared budget is spent, and record the reason at its first run.

        A limit of the run itself ends only that run; its parent may continue without it (P2).
        """
        if not isinstance(failure, BudgetExceeded):
            return
        accounts = await self._retry_read(partial(self._store.ledgers.accounts, run.request))
        account = accounts.get(BudgetKind(failure.kind))
        if run.id != run.request and (account is None or account.limit != failure.limit):
            return

        def cancel_tree() -> None:
            if run.id != run.request:
                data: dict[str, Json] = {"kind": failure.kind, "used": failure.used, "limit": failure.limit}
                self._store.events.add(run.request, "budget_exceeded", data)
            self._store.runs.request_cancel(run.request)

        await self._store.persist(cancel_tree)

    async def _cause_of_cancel(self, run: Run, error: RetinueError) -> RetinueError:
        """Return `BudgetExceeded` instead of `Canceled` if the run was canceled for its tree's budget."""
        if not isinstance(error, Canceled):
            return error
        spent = await self._retry_read(partial(self._store.events.last_of_kind, run.id, "budget_exceeded"))
        match spent and spent.data:
            case {"kind": str(kind), "used": int() | float() as used, "limit": int() | float() as limit}:
                return BudgetExceeded(kind, used, limit)
            case _:
                return error

    async def _attempt(
        self, active: _ActiveRun, work: PreparedRun, environment: Environment, meter: Meter, writer: LogWriter
    ) -> Outcome | PreparedRun:
        """Perform the task, unless its account is spent.

        Returns what performs it next if the run went back to the queue because of its account.
        """
        run = active.run
        outcome: Outcome | None = None
        error: RetinueError | None = None
        try:
            self.quotas.check(work.account)
        except QuotaSpent as spent:
            error, tried = spent, False
        else:
            tried = True
            try:
                outcome = await self._perform(active, work, environment, meter, writer)
                error = outcome.error
            except (QuotaSpent, Throttled) as raised:
                error = raised
        if work.account is None or not isinstance(error, QuotaSpent | Throttled):
            if outcome is None:
                raise error or InternalError("the run has no outcome")
            return self._with_quota_facts(run, outcome) if active.requeued else outcome
        writer.append(LogStream.EVENT, f"{error.code}: {self._redactor.redact(error.message)}\n")
        try:
            if isinstance(error, QuotaSpent):
                work = await self.quotas.after_quota(run, work, error, tried=tried)
            else:
                work = await self.quotas.after_throttle(run, work, error)
        except (QuotaSpent, Throttled) as final:
            if outcome is None:
                raise
            return replace(self._with_quota_facts(run, outcome), error=final)
        active.requeued = True
        active.attempted = active.attempted or tried
        return work

    def _with_quota_facts(self, run: Run, outcome: Outcome) -> Outcome:
        """The outcome with what happened because of spent accounts: a fallback is never silent."""
        facts, notes = self.quotas.facts(run.id)
        return replace(outcome, facts={**outcome.facts, **facts}, notes=(*outcome.notes, *notes))

    async def _perform(
        self, active: _ActiveRun, work: PreparedRun, environment: Environment, meter: Meter, writer: LogWriter
    ) -> Outcome:
        """Call the executor with the run's context, and charge its wall time."""
        run = active.run
        output = _RedactedLog(writer, self._redactor)
        command: list[str] = []

        def launching(argv: Sequence[str]) -> None:
            command[:] = [self._redactor.redact(clip(shlex.join(argv), MAX_COMMAND_CHARACTERS))]

        async def started(identity: ProcessIdentity) -> None:
            line = command.pop() if command else None
            self._store.post(self._store.runs.set_process, run.id, identity, line)

        prompt = f"{RESUMED}{run.spec.task}" if active.attempted else run.spec.task
        task = Task(agent=work.spec.agent, prompt=prompt)
        context = RunContext(
            run_id=str(run.id),
            cwd=work.cwd,
            seconds=None,
            emit=output.emit,
            started=started,
            env=environment,
            spending=meter,
            ask=self._ask_function(run.id),
            hide=self._redactor.hide,
            activity=active.activity,
            launching=launching,
            siblings=partial(self._siblings, run),
            event=partial(self._record_event, run.id),
            permit=deny_all if work.permit is None else partial(work.permit, run.id),
            start=work.start,
            delegate=None if work.delegate is None else work.delegate(run.id),
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
                output.finish()

    def _record_event(self, run_id: RunId, kind: str, data: Mapping[str, Json]) -> None:
        """Record an event that an executor reports, redacted."""
        if kind == WEB_EVENT and run_id in self._active:
            self._active[run_id].activity.read_web = True
        self._store.post(self._store.events.add, run_id, kind, self._redactor.redact_value(dict(data)))

    def has_read_web(self, run_id: RunId) -> bool:
        """Whether a run, or a run below it, has read pages of the web: they may have told it what to do."""
        active = self._active.get(run_id)
        if active is not None and active.activity.has_read_web:
            return True
        if self._store.events.last_of_kind(run_id, WEB_EVENT) is not None:
            return True
        ended = as_object(self._store.runs.get(run_id).result)
        if tells_of_web(as_object(ended.get("receipt"))):
            return True
        return any(self.has_read_web(child.id) for child in self._store.runs.list(parent=run_id, limit=-1))

    def _siblings(self, run: Run) -> list[str]:
        """The other runs of the same parent. For a run without a parent, the latest others without one."""
        parent = run.spec.parent
        near = self._store.runs.list(parent=parent, limit=MAX_SIBLINGS)
        alike = [each for each in near if each.spec.parent == parent and each.spec.cwd == run.spec.cwd]
        return [str(each.id) for each in alike if each.id != run.id]

    def _ask_function(self, run_id: RunId) -> AskParent | None:
        """The function through which an executor asks the run's parent."""
        ask_parent_of = self._ask
        if ask_parent_of is None:
            return None

        async def ask(question: str, wait_s: float | None) -> Message:
            return (await ask_parent_of(run_id, self._redactor.redact(question), wait_s)).message

        return ask

    async def _read_whole(self, run: Run, outcome: Outcome) -> LongText | None:
        """The beginning, the end and the size of an answer that the executor did not keep whole."""
        if not outcome.cut or outcome.error is not None:
            return None
        return await anyio.to_thread.run_sync(read_output, self._store.folder.log(run.id))

    async def _finish(self, active: _ActiveRun, ending: Ending, meter: Meter) -> None:
        """Record the ending, what the run spent and the budget it gives back, in one transaction.

        If another process has canceled the run while it was queued, that ending stays.
        """
        run = active.run
        survivors = [identity.pid for identity in active.outcome.survivors] if active.outcome else []
        unspent = self._meters.withdraw_unspent(run)
        usage = meter.usage()
        receipt = await self._retry_read(
            partial(self._endings.receipt, run.id, active.activity, active.outcome, usage)
        )
        result = {**as_object(ending.result), "receipt": receipt}
        complete = replace(ending, usage=usage, result=result)

        def write() -> None:
            if survivors:
                self._store.events.add(run.id, "survivors", {"pids": survivors})
            if unspent:
                self._store.ledgers.give_back(run.request, unspent)

        _, admitted = await self._store.persist(
            self._store.runs.finish_and_admit, run.id, complete, self._pool.claim, write
        )
        self._pool.start(admitted)
        self._pool.mark_ended(run.id)
