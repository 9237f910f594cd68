"""What lives only while a server or a command is up: the store, the runs, the work behind the answers."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.config import CHILD_SOCKET, CHILD_TOKEN, DATA_DIR, LoadedSettings
from retinue.core import RunId, counted
from retinue.service import Later, Service
from retinue.wiring.executors import check_executor

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from retinue.service import RunService, WorkflowService
    from retinue.store import Orphan, Store


@asynccontextmanager
async def running(
    loaded: LoadedSettings,
    service: Service,
    *,
    takes_over: bool = False,
    open_store: Callable[[Path], Store] | None = None,
) -> AsyncGenerator[Service]:
    """The service with everything that lives only while a server or a command is up.

    A server takes over the workflows that others leave; a command minds its own business.
    """
    # Imported here because `retinue config` and its like need neither a database nor processes.
    from retinue.runtime import BackgroundJobs, recover_in_background
    from retinue.service import adopt_workflows
    from retinue.store import Store

    with (open_store or Store.open)(loaded.settings.data_dir) as store:
        async with (
            recover_in_background(store, _end_orphans),
            _performing(loaded, service, store) as runs,
            BackgroundJobs() as background,
        ):
            workflows = cache(partial(_workflows, loaded, service, runs))
            async with adopt_workflows(runs, workflows) if takes_over else nullcontext():
                yield replace(service, run_service=runs, open_workflows=workflows, later=background.schedule)


@asynccontextmanager
async def recording(
    loaded: LoadedSettings, service: Service, later: Later | None = None
) -> AsyncGenerator[Service]:
    """The service with runs and nothing else: no recovery, no work behind the answer but what `later` takes.

    For a command that ends in a moment and would spend much of it on the rest.
    """
    from retinue.store import Store

    with Store.open(loaded.settings.data_dir) as store:
        async with _performing(loaded, service, store) as runs:
            yield replace(service, run_service=runs, later=later)


def lifetime(
    loaded: LoadedSettings, *, takes_over: bool = True
) -> Callable[[Service], AbstractAsyncContextManager[Service]]:
    """`running` for a server that takes the service alone; old runs go meanwhile."""

    @asynccontextmanager
    async def of(service: Service) -> AsyncGenerator[Service]:
        from retinue.store import prune_runs

        days = loaded.settings.runtime.keep_runs_days
        async with running(loaded, service, takes_over=takes_over) as up:
            if days and up.later is not None:
                up.later("prune", partial(prune_runs, up.runs.store, time.time() - days * 86_400))
            yield up

    return of


@asynccontextmanager
async def _performing(loaded: LoadedSettings, service: Service, store: Store) -> AsyncGenerator[RunService]:
    from anyio import CapacityLimiter

    from retinue.executors import reapers
    from retinue.runtime import Changes, PermissionBroker, Pool, QuestionBroker, Supervisor, open_child_socket
    from retinue.service import RunService, Waiting
    from retinue.store import Capacity, Owner

    up: list[Service] = []

    async def serve_child(run_id: RunId, reader: StreamReader, writer: StreamWriter) -> None:
        from retinue.server import serve_child_session  # the MCP library takes a second

        await serve_child_session(up[0], run_id, reader, writer)

    settings = loaded.settings
    capacity = Capacity(settings.runtime.max_concurrent_tasks, settings.runtime.max_queued_tasks)
    with Owner.register(store.folder) as owner, reapers.shared():
        async with (
            service.agents.models,
            Changes(store) as changes,
            Pool(store, changes, owner.id, capacity) as pool,
            Supervisor(store, pool, service.redactor, QuestionBroker(store, changes).ask_once) as supervisor,
            open_child_socket(store.child_tokens.run_of, serve_child) as socket,
        ):
            questions = QuestionBroker(store, changes)
            runs = RunService(
                store=store,
                changes=changes,
                questions=questions,
                waiting=Waiting(store, changes, owner.id),
                supervisor=supervisor,
                agents=service.agents,
                cwd=service.roots[0].path if service.roots else Path.cwd(),
                child_env=lambda run_id: {
                    CHILD_TOKEN: store.child_tokens.issue(run_id),
                    DATA_DIR: str(settings.data_dir),
                    **({} if socket is None else {CHILD_SOCKET: str(socket)}),
                },
                patience_s=settings.runtime.patience_s,
                tokens=settings.limits.max_response_tokens,
                workers=CapacityLimiter(settings.runtime.max_concurrent_tasks),
                broker=PermissionBroker(
                    store, questions, service.redactor, settings.runtime.permission_wait_s
                ),
                redactor=service.redactor,
            )
            up.append(replace(service, run_service=runs))
            yield runs


def _workflows(loaded: LoadedSettings, service: Service, runs: RunService) -> WorkflowService:
    from retinue.definitions import WorkflowCatalog
    from retinue.service import WorkflowService
    from retinue.store import ConfirmedChecks

    settings = loaded.settings
    return WorkflowService(
        runs=runs,
        catalog=WorkflowCatalog(service.agents.catalog.sources),
        confirmed=ConfirmedChecks(settings.data_dir),
        max_runs=settings.workflows.max_runs,
        check_timeout_s=settings.workflows.check_timeout_ms / 1000,
        checker=check_executor(settings),
    )


def _end_orphans(orphans: Sequence[Orphan]) -> None:
    if not orphans:
        return
    from retinue.executors import end_processes

    known = [orphan.process for orphan in orphans if orphan.process is not None]
    survivors = end_processes(known, [str(orphan.run_id) for orphan in orphans], 1.0)
    if survivors:
        left = counted(len(survivors), "process", "processes")
        print(f"retinue: {left} of dead runs could not be ended", file=sys.stderr)
