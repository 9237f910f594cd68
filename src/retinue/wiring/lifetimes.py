"""Context managers for what exists while a server or a command runs: the store, runs, background jobs."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.config import CHILD_SOCKET, CHILD_TOKEN, DATA_DIR, LoadedSettings, Settings
from retinue.core import RunId, Stop, Unauthorized, counted
from retinue.service import ScheduleJob, Service
from retinue.wiring.callers import may_use_token
from retinue.wiring.executors import check_executor, notice_executor

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from retinue.runtime import Changes, Supervisor
    from retinue.service import EvolutionService, RunService, RunWaiter, WorkflowService
    from retinue.store import Orphan, Store

log = logging.getLogger(__name__)


@asynccontextmanager
async def running(
    loaded: LoadedSettings,
    service: Service,
    *,
    adopt_parked: bool = False,
    recover_within_s: float = 0.0,
    prune_daily: bool = False,
    open_store: Callable[[Path], Store] | None = None,
) -> AsyncGenerator[Service]:
    """Yield the service with runs, workflows, recovery and background jobs.

    With `adopt_parked`, a server resumes workflows that no process performs. Commands do not. They wait up to
    `recover_within_s` for the recovery of dead servers' runs, which goes on in the background, and with
    `prune_daily` they delete old runs, unless that was done today.
    """
    # Imported here because commands such as `retinue config` need neither a database nor processes.
    from retinue.runtime import BackgroundJobs, recover_in_background
    from retinue.service import adopt_workflows
    from retinue.store import Store

    with (open_store or Store.open)(loaded.settings.data_dir) as store:
        async with (
            recover_in_background(store, _end_orphans, first_within_s=recover_within_s),
            _pruning(loaded, store) if prune_daily else nullcontext(),
            _run_service(loaded, service, store) as runs,
            BackgroundJobs() as background,
        ):
            workflows = cache(partial(_workflow_service, loaded, service, runs))
            async with adopt_workflows(runs, workflows) if adopt_parked else nullcontext():
                yield replace(
                    service,
                    run_service=runs,
                    open_workflows=workflows,
                    open_evolution=cache(partial(_evolution_service, loaded, service, runs, workflows)),
                    schedule_job=background.schedule,
                )


@asynccontextmanager
async def recording(
    loaded: LoadedSettings, service: Service, schedule_job: ScheduleJob | None = None
) -> AsyncGenerator[Service]:
    """Yield the service with runs only and without workflows; `schedule_job` takes background jobs.

    For short commands, which would spend much of their time on the rest. A person waits for the answer, so a
    call waits until its run has ended. If a model explains what is found, runs of dead processes are
    recovered in the background, because they may hold the model's slot.
    """
    from retinue.runtime import recover_in_background
    from retinue.service import plan_models
    from retinue.store import Store

    asks_model = loaded.settings.models.research and plan_models(loaded.settings).configured
    with Store.open(loaded.settings.data_dir) as store:
        async with (
            recover_in_background(store, _end_orphans) if asks_model else nullcontext(),
            _pruning(loaded, store),
            _run_service(loaded, service, store) as runs,
        ):
            patient = replace(runs, patience_s=math.inf)
            yield replace(service, run_service=patient, schedule_job=schedule_job)


def lifetime(
    loaded: LoadedSettings, *, adopt_parked: bool = True
) -> Callable[[Service], AbstractAsyncContextManager[Service]]:
    """`running` as a function of the service, for a server. It also cleans up in the background."""

    @asynccontextmanager
    async def start(service: Service) -> AsyncGenerator[Service]:
        from retinue.store import remove_abandoned_folders

        days = loaded.settings.runtime.keep_runs_days
        async with running(loaded, service, adopt_parked=adopt_parked) as up:
            if up.schedule_job is not None:
                up.schedule_job("temporary folders", remove_abandoned_folders)
            if days and up.schedule_job is not None:
                up.schedule_job("prune", partial(_prune, up.runs.store, days))
            yield up

    return start


@asynccontextmanager
async def _pruning(loaded: LoadedSettings, store: Store) -> AsyncGenerator[None]:
    """Delete old runs beside what a command does, unless that was done today."""
    from retinue.store import is_pruning_due

    days = loaded.settings.runtime.keep_runs_days
    if not (days and is_pruning_due(store)):
        yield
        return
    stop = Stop()
    task = asyncio.create_task(asyncio.to_thread(_prune, store, days, stop))
    try:
        yield
    except asyncio.CancelledError:
        stop.cancel()
        raise
    finally:
        await asyncio.wait([task])
        if error := task.exception():  # what the command does is not affected
            log.info("old runs could not be deleted: %s", error)


def _prune(store: Store, days: int, stop: Stop) -> None:
    from retinue.service import prune  # after the first answers

    prune(store, days, stop)


@asynccontextmanager
async def _run_service(loaded: LoadedSettings, service: Service, store: Store) -> AsyncGenerator[RunService]:
    """Yield the run service, with everything that performs runs in this process."""
    from retinue.executors import fork_server, peer_process
    from retinue.runtime import Changes, Pool, QuestionBroker, Supervisor, open_child_socket
    from retinue.service import RunWaiter
    from retinue.store import Capacity, Owner

    up: list[Service] = []

    async def serve_child(run_id: RunId, reader: StreamReader, writer: StreamWriter) -> None:
        from retinue.server import serve_child_session  # the MCP library takes a second to load

        await serve_child_session(up[0], run_id, reader, writer)

    runtime = loaded.settings.runtime
    capacity = Capacity(runtime.max_concurrent_tasks, runtime.max_queued_tasks)
    with Owner.register(store.folder) as owner, fork_server.shared():
        async with (
            service.agents.models,
            Changes(store) as changes,
            _notifier(loaded.settings, store, service),
            Pool(store, changes, owner.id, capacity) as pool,
            Supervisor(
                store,
                pool,
                service.redactor,
                QuestionBroker(store, changes).ask_once,
                runtime.quota_wait_s,
            ) as supervisor,
            open_child_socket(partial(_run_of_token, store), serve_child, peer_process) as socket,
        ):
            waiter = RunWaiter(store, changes, owner.id)
            runs = _build_run_service(loaded.settings, service, store, changes, waiter, supervisor, socket)
            up.append(replace(service, run_service=runs))
            yield runs


def _run_of_token(store: Store, token: str, pid: int | None) -> RunId:
    """The run whose token a process shows. Raises unless the process belongs to the run."""
    run_id = store.child_tokens.run_of(token)
    if not may_use_token(pid, run_id):
        raise Unauthorized(f"process {pid} used the token of run {run_id}, to which it does not belong")
    return run_id


def _build_run_service(
    settings: Settings,
    service: Service,
    store: Store,
    changes: Changes,
    waiter: RunWaiter,
    supervisor: Supervisor,
    socket: Path | None,
) -> RunService:
    from anyio import CapacityLimiter

    from retinue.runtime import PermissionBroker, QuestionBroker
    from retinue.service import RunService

    questions, redactor, runtime = QuestionBroker(store, changes), service.redactor, settings.runtime
    return RunService(
        store=store,
        changes=changes,
        questions=questions,
        waiter=waiter,
        supervisor=supervisor,
        agents=service.agents,
        cwd=service.roots[0].path if service.roots else Path.cwd(),
        child_env=lambda run_id: {
            CHILD_TOKEN: store.child_tokens.issue(run_id),
            DATA_DIR: str(settings.data_dir),
            **({} if socket is None else {CHILD_SOCKET: str(socket)}),
        },
        patience_s=runtime.patience_s,
        tokens=settings.limits.max_response_tokens,
        workers=CapacityLimiter(runtime.max_concurrent_tasks),
        broker=PermissionBroker(
            store, questions, redactor, runtime.permission_wait_s, supervisor.has_read_web
        ),
        redactor=redactor,
    )


def _notifier(settings: Settings, store: Store, service: Service) -> AbstractAsyncContextManager[object]:
    """Send notices of runs, if the user wants any."""
    wanted = settings.notify
    if not (wanted.command or wanted.webhook):
        return nullcontext()
    from retinue.executors import expand_variables
    from retinue.runtime import Notifier, command_sender, webhook_sender

    senders = [command_sender(notice_executor(wanted.command), Path.home())] if wanted.command else []
    if wanted.webhook:
        url = expand_variables("notify.webhook", wanted.webhook, os.environ)
        service.redactor.hide([url])
        senders.append(webhook_sender(url))
    return Notifier(store, service.redactor, senders, wanted.after_s)


def _evolution_service(
    loaded: LoadedSettings, service: Service, runs: RunService, workflows: Callable[[], WorkflowService]
) -> EvolutionService:
    from retinue.learning import Drafts, InUse
    from retinue.service import EvolutionService

    strong = loaded.settings.models.tiers.strong
    memories = service.memory.memories
    return EvolutionService(
        runs=runs,
        drafts=Drafts(memories.project),
        in_use=InUse(memories.project, service.skills.library.catalog, runs.store.permissions, memories),
        team_names=lambda: {str(each["name"]) for each in workflows().list_defined("team")},
        has_strong_model=bool(strong.endpoint or strong.model),
    )


def _workflow_service(loaded: LoadedSettings, service: Service, runs: RunService) -> WorkflowService:
    from retinue.definitions import WorkflowCatalog
    from retinue.service import WorkflowChildren, WorkflowService
    from retinue.store import ConfirmedChecks
    from retinue.workflows import EmbeddedEngine

    settings = loaded.settings
    confirmed = ConfirmedChecks(settings.data_dir)
    check_timeout_s = settings.workflows.check_timeout_ms / 1000
    children = WorkflowChildren(runs, confirmed, check_timeout_s, check_executor(settings))
    return WorkflowService(
        runs=runs,
        catalog=WorkflowCatalog(service.agents.catalog.sources),
        confirmed=confirmed,
        max_runs=settings.workflows.max_runs,
        engine=EmbeddedEngine(runs.store, runs.changes, runs.supervisor, children, runs.redactor, runs.cwd),
    )


def _end_orphans(orphans: Sequence[Orphan]) -> None:
    """End the processes of dead servers' runs, and report those that survive."""
    if not orphans:
        return
    from retinue.executors import end_processes

    known = [orphan.process for orphan in orphans if orphan.process is not None]
    survivors = end_processes(known, [str(orphan.run_id) for orphan in orphans], 1.0)
    if survivors:
        left = counted(len(survivors), "process", "processes")
        print(f"retinue: {left} of dead runs could not be ended", file=sys.stderr)
