"""The one module that names concrete classes and puts them together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retinue.config.load import CHILD_SOCKET, CHILD_TOKEN, DATA_DIR, Loaded, load, user_file
from retinue.config.settings import Settings
from retinue.core.agent import HOST, Agent
from retinue.core.errors import ConfigInvalid, Unauthorized
from retinue.core.ids import RunId
from retinue.core.ports import Executor
from retinue.core.root import Root
from retinue.definitions.catalog import Catalog, Sources
from retinue.definitions.definition import Definition
from retinue.definitions.places import around, tilde
from retinue.definitions.workflow_catalog import WorkflowCatalog
from retinue.redaction import Redactor
from retinue.service.agents import Agents
from retinue.service.service import Service
from retinue.store.token import new_token, token_of
from retinue.store.trust import TrustedProjects

CLIS = ("claude", "codex", "gemini", "opencode", "acp")

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from retinue.executors.enclosure import Sandbox
    from retinue.models.tiers import Models
    from retinue.service.runs import Runs
    from retinue.service.workflows import Workflows
    from retinue.store.recovery import Orphan
    from retinue.store.store import Store


def read_settings(flags: Mapping[str, Any]) -> Loaded:
    """The settings in force for this process; flags that were not given are None."""
    return load(flags={key: value for key, value in flags.items() if value not in (None, ())})


def redactor(settings: Settings | None = None) -> Redactor:
    """For everything that leaves this process; a run's own token and the models' keys are hidden wherever
    they occur."""
    endpoints = settings.models.endpoints.values() if settings is not None else ()
    secret = {CHILD_TOKEN, *(endpoint.api_key_env for endpoint in endpoints)}
    return Redactor([value for name, value in os.environ.items() if name in secret and value])


def build_service(loaded: Loaded, *, at_hand: bool = False) -> Service:
    """`at_hand` for a person at a terminal: without a root, their agents may read where they stand."""
    settings = loaded.settings
    roots, clean = _roots(loaded), redactor(settings)
    return Service(
        roots=roots,
        redactor=clean,
        allow_host_roots=settings.allow_host_roots,
        settings=settings,
        agents=_agents(loaded, roots, clean, open_models(loaded), at_hand=at_hand and not is_child()),
    )


@asynccontextmanager
async def running(loaded: Loaded, service: Service, *, takes_over: bool = False) -> AsyncGenerator[Service]:
    """The service with everything that lives only while a server or a command is up.

    A server takes over the workflows that others leave; a command minds its own business.
    """
    # Imported here because `retinue config` and its like need neither a database nor processes.
    from retinue.runtime.background import Background
    from retinue.runtime.recovery import recovering
    from retinue.store.store import Store

    with Store.open(loaded.settings.data_dir) as store:
        async with (
            recovering(store, _end_orphans),
            _performing(loaded, service, store) as runs,
            Background() as background,
        ):
            workflows = _workflows(loaded, service, runs)
            async with workflows.going_on() if takes_over else nullcontext():
                yield replace(service, runs=runs, workflows=workflows, later=background.later)


@asynccontextmanager
async def recording(loaded: Loaded, service: Service) -> AsyncGenerator[Service]:
    """The service with runs and nothing else: no recovery, no work behind the answer.

    For a command that ends in a moment and would spend much of it on the rest.
    """
    from retinue.store.store import Store

    with Store.open(loaded.settings.data_dir) as store:
        async with _performing(loaded, service, store) as runs:
            yield replace(service, runs=runs)


@asynccontextmanager
async def _performing(loaded: Loaded, service: Service, store: Store) -> AsyncGenerator[Runs]:
    from anyio import CapacityLimiter

    from retinue.runtime.changes import Changes
    from retinue.runtime.child_socket import child_socket
    from retinue.runtime.mailroom import Mailroom
    from retinue.runtime.permissions import PermissionBroker
    from retinue.runtime.pool import Pool
    from retinue.runtime.supervisor import Supervisor
    from retinue.service.runs import Runs
    from retinue.service.waiting import Waiting
    from retinue.store.owners import Owner
    from retinue.store.queue import Capacity

    up: list[Service] = []

    async def serve_child(run_id: RunId, reader: StreamReader, writer: StreamWriter) -> None:
        from retinue.server.child_session import serve_child_session  # the MCP library takes a second

        await serve_child_session(up[0], run_id, reader, writer)

    settings = loaded.settings
    capacity = Capacity(settings.runtime.max_concurrent_tasks, settings.runtime.max_queued_tasks)
    with Owner.register(store.folder) as owner:
        async with (
            service.known.models,
            Changes(store) as changes,
            Pool(store, changes, owner.id, capacity) as pool,
            Supervisor(store, pool, service.redactor, Mailroom(store, changes).ask) as supervisor,
            child_socket(store.child_tokens.run_of, serve_child) as socket,
        ):
            mailroom = Mailroom(store, changes)
            runs = Runs(
                store=store,
                changes=changes,
                mailroom=mailroom,
                waiting=Waiting(store, changes),
                supervisor=supervisor,
                agents=service.known,
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
                    store, mailroom, service.redactor, settings.runtime.permission_wait_s
                ),
                redactor=service.redactor,
            )
            up.append(replace(service, runs=runs))
            yield runs


def _workflows(loaded: Loaded, service: Service, runs: Runs) -> Workflows:
    from retinue.service.workflows import Workflows
    from retinue.store.confirmed_checks import ConfirmedChecks

    settings = loaded.settings
    return Workflows(
        runs=runs,
        catalog=WorkflowCatalog(service.known.catalog.sources),
        confirmed=ConfirmedChecks(settings.data_dir),
        max_runs=settings.workflows.max_runs,
        check_timeout_s=settings.workflows.check_timeout_ms / 1000,
        checker=_command_executor,
    )


def open_models(loaded: Loaded) -> Models:
    """The models that the settings lead to: `async with`, for the lines to their servers."""
    from retinue.models.tiers import Models
    from retinue.service.model_plan import model_plan

    return Models(model_plan(loaded.settings), os.environ)


def lifetime(
    loaded: Loaded, *, takes_over: bool = True
) -> Callable[[Service], AbstractAsyncContextManager[Service]]:
    """`running` for a server that takes the service alone; old runs go meanwhile."""

    @asynccontextmanager
    async def of(service: Service) -> AsyncGenerator[Service]:
        from retinue.store.pruning import prune

        days = loaded.settings.runtime.keep_runs_days
        async with running(loaded, service, takes_over=takes_over) as up:
            if days and up.later is not None:
                up.later("prune", partial(prune, up.running.store, time.time() - days * 86_400))
            yield up

    return of


def own_run(loaded: Loaded) -> tuple[RunId, int]:
    """Which run this process belongs to, proved by its token, and how many runs it may start."""
    from retinue.store.store import Store

    given = os.environ.get(CHILD_TOKEN)
    if given is None:
        raise Unauthorized(
            f"this process belongs to no run: {CHILD_TOKEN} is not set",
            hint="`retinue child` is started by the programs that a run starts",
        )
    with Store.open(loaded.settings.data_dir) as store:
        run_id = store.child_tokens.run_of(given)
        return run_id, store.runs.get(run_id).spec.limits.budget.spawns or 0


def is_child() -> bool:
    """Whether a run of ours started this process."""
    return CHILD_TOKEN in os.environ


def token(loaded: Loaded, *, new: bool = False) -> str:
    """The bearer token of the data folder."""
    return (new_token if new else token_of)(loaded.settings.data_dir)


def _agents(
    loaded: Loaded, roots: Sequence[Root], clean: Redactor, models: Models, *, at_hand: bool
) -> Agents:
    settings = loaded.settings
    home, trusted = Path.home(), TrustedProjects(settings.data_dir)
    projects = tuple(root.path for root in roots) or around(Path.cwd(), home)
    readable = roots or ((Root.at(Path.cwd()),) if at_hand else ())
    sources = Sources(
        projects=projects,
        config=user_file().parent,
        home=home,
        given=tuple(_command_agent(loaded, name, home) for name in settings.commands),
        is_trusted=lambda project: project in trusted,
        executor=settings.agents.executor,
        reserved=frozenset({HOST, settings.agents.caller}),
    )
    return Agents(
        catalog=Catalog(sources),
        executors=_executors(settings, readable, clean, models),
        models=models,
        trusted=trusted,
        redactor=clean,
        tokens=settings.limits.max_response_tokens,
        host=settings.agents.caller,
    )


def _command_agent(loaded: Loaded, name: str, home: Path) -> Definition:
    """A `[commands.NAME]` table as a definition among the others."""
    given = loaded.settings.commands[name]
    fields = {"argv": "command", "timeout_ms": "timeout_s"}
    origins = {
        fields.get(key, key): loaded.origins[f"commands.{name}.{key}"]
        for key in ("argv", "description", "timeout_ms", "env", "spawns")
        if f"commands.{name}.{key}" in loaded.origins
    }
    file = origins.get("command", "settings")
    agent = Agent(
        name=name,
        description=given.description,
        executor="command",
        command=given.argv,
        env=given.env,
        timeout_s=given.timeout_ms / 1000,
        spawns=given.spawns,
        source=f"commands.{name}",
    )
    source = f"{tilde(Path(file), home)} [commands.{name}]"
    return Definition(name=name, scope="settings", source=source, file=file, agent=agent, origins=origins)


def _executors(
    settings: Settings, roots: Sequence[Root], clean: Redactor, models: Models
) -> Mapping[str, Callable[[Agent], Executor]]:
    """Every way there is to perform an agent's tasks: a new one is a line here and one in `honoured`."""
    local = {"local": partial(_local_executor, settings, roots, clean, models)}
    clis = dict.fromkeys(CLIS, partial(cli_executor, settings.data_dir))
    return {"command": _command_executor, **clis, **(local if models.plan.configured else {})}


def _command_executor(agent: Agent) -> Executor:
    from retinue.executors.command import Command, CommandExecutor
    from retinue.executors.preamble import Preamble
    from retinue.executors.template import Template

    command = Command(Template(agent.command), env=agent.env)
    return Preamble(agent.prompt, CommandExecutor(command, os.environ))


def cli_executor(data_dir: Path, agent: Agent) -> Executor:
    """A coding CLI in its sandbox, its worktree if it has one, and the commands that check its work."""
    from retinue.executors.acceptance import Accepted
    from retinue.executors.acp_clis import AcpProgram, GeminiCli, OpencodeCli
    from retinue.executors.acp_process import AcpExecutor
    from retinue.executors.claude import ClaudeCli
    from retinue.executors.cli_process import CliExecutor
    from retinue.executors.cli_session import InSession
    from retinue.executors.cli_setting import CliSetting
    from retinue.executors.cli_state import session_folder
    from retinue.executors.codex import CodexCli
    from retinue.executors.worktree import InWorktree

    folder = data_dir.resolve()
    setting = CliSetting(os.environ, folder / "clis", (folder,), _sandbox(agent))
    executor: Executor
    if agent.executor in ("claude", "codex"):
        native = ClaudeCli() if agent.executor == "claude" else CodexCli()
        executor = CliExecutor(native, agent, setting)
    else:
        spoken = {"gemini": GeminiCli, "opencode": OpencodeCli}.get(agent.executor, AcpProgram)
        executor = AcpExecutor(spoken(), agent, setting)
    if agent.session:
        executor = InSession(executor, session_folder(setting.state_folder, agent.executor, agent.name))
    if agent.acceptance:
        executor = Accepted(executor, agent.acceptance, partial(setting.command, agent))
    if agent.isolation == "worktree":
        executor = InWorktree(executor, folder / "worktrees", os.environ)
    return executor


def _sandbox(agent: Agent) -> Sandbox:
    """What the agent asks for; bubblewrap where it says nothing and the machine has it."""
    from retinue.executors.bubblewrap import demand_bubblewrap, find_bubblewrap
    from retinue.executors.container import find_engine
    from retinue.executors.enclosure import NoSandbox

    if agent.container:
        return find_engine(agent.container, os.environ)
    if agent.sandbox == "bwrap":
        return demand_bubblewrap(os.environ)
    found = None if agent.sandbox == "none" else find_bubblewrap(os.environ)
    return found or NoSandbox()


def _local_executor(
    settings: Settings, roots: Sequence[Root], clean: Redactor, models: Models, agent: Agent
) -> Executor:
    from retinue.codebase.codebase import Codebase
    from retinue.executors.local.executor import LocalExecutor
    from retinue.service.research import policy_of

    model = models.named(agent.model or "default")
    return LocalExecutor(
        agent=agent,
        model=model,
        codebase=Codebase(roots, policy_of(settings)),
        redactor=clean,
        estimator=model.tokens,
        environment=os.environ,
    )


def _end_orphans(orphans: Sequence[Orphan]) -> None:
    if not orphans:
        return
    from retinue.executors.process_tree import end_processes

    known = [orphan.process for orphan in orphans if orphan.process is not None]
    survivors = end_processes(known, [str(orphan.run_id) for orphan in orphans], 1.0)
    if survivors:
        print(f"retinue: {len(survivors)} processes of dead runs could not be ended", file=sys.stderr)


def _roots(loaded: Loaded) -> tuple[Root, ...]:
    roots: list[Root] = []
    for path in loaded.settings.roots:
        try:
            root = Root.at(path)
        except ConfigInvalid as error:
            origin = loaded.origins.get("roots", "roots")
            raise ConfigInvalid(f"{origin}: roots: {error.message}", hint=error.hint) from None
        if root not in roots:
            roots.append(root)
    return tuple(roots)
