"""Builds the service and its parts from the settings. Starts nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.config import LoadedSettings, Settings
from retinue.core import (
    EXECUTORS,
    HOST_SESSION_VARIABLE,
    Agent,
    ExecutorTable,
    Root,
    find_program,
)
from retinue.definitions import AgentCatalog, PickedExecutor, PickExecutor
from retinue.redaction import SecretRedactor
from retinue.service import AgentService, AgentState, Service
from retinue.store import (
    PERMISSIONS_FILE,
    AgentMemory,
    RememberedPermissions,
    TrustedProjects,
    load_or_create_token,
    replace_token,
)
from retinue.wiring.callers import is_from_run
from retinue.wiring.executors import (
    account_namer,
    build_surroundings,
    executor_makers,
    launch_previewer,
    open_codebase,
)
from retinue.wiring.start import agent_sources, read_roots, redactor
from retinue.wiring.web import web_opener

if TYPE_CHECKING:
    from collections.abc import Callable

    from retinue.models import Models
    from retinue.service import MemoryService, SkillService
    from retinue.store import Reports


def build_service(
    loaded: LoadedSettings, *, for_person: bool = False, executors: ExecutorTable = EXECUTORS
) -> Service:
    """Build the service. With `for_person` and without roots, agents may read the current folder."""
    settings = loaded.settings
    roots, secret_redactor = read_roots(loaded), redactor(settings)
    open_memory = cache(partial(_memory_service, settings, secret_redactor, for_person))
    open_skills = cache(partial(_skill_service, loaded, roots, secret_redactor, executors))
    return Service(
        roots=roots,
        redactor=secret_redactor,
        allow_host_roots=settings.allow_host_roots,
        settings=settings,
        open_reports=lambda: open_reports(settings),
        open_memory=open_memory,
        open_web=web_opener(settings, roots, secret_redactor),
        is_from_run=partial(is_from_run, settings.data_dir),
        agent_service=_agent_service(
            loaded,
            roots,
            secret_redactor,
            open_models(loaded),
            partial(open_memory, roots),
            open_skills,
            for_person=for_person,
            executors=executors,
        ),
        open_skills=open_skills,
    )


def _as_roots(folder: Path) -> tuple[Root, ...]:
    """The folder as the only root; no root in `/`, where commands such as `retinue runs` work, too."""
    return () if folder == Path(folder.anchor) else (Root.at(folder),)


def open_reports(settings: Settings) -> Reports:
    """The stored reports of the data folder."""
    from retinue.store import Reports

    return Reports(settings.data_dir)


def project_memory(loaded: LoadedSettings, project: Path | None = None) -> MemoryService:
    """The memory of a project, by default of the current one, for a person.

    The folder of the project may be gone: its memories are still there.
    """
    settings = loaded.settings
    if project is None:
        return _memory_service(settings, redactor(settings), True, read_roots(loaded))
    folder = project.resolve()
    roots = (Root.at(folder),) if folder.is_dir() else ()
    return _memory_service(settings, redactor(settings), bool(roots), roots, gone=folder)


def _memory_service(
    settings: Settings,
    redactor: SecretRedactor,
    for_person: bool,
    roots: tuple[Root, ...],
    *,
    gone: Path | None = None,
) -> MemoryService:
    """The memory of the project that the first root is in; else of `gone`, or of the current folder."""
    from retinue.definitions import working_folders
    from retinue.learning import Memories
    from retinue.service import MemoryService

    if gone is not None and not roots:
        project = gone
    else:
        start = roots[0].path if roots else Path.cwd().resolve()
        project = working_folders(start, Path.home())[-1]
    readable = roots or (_as_roots(project) if for_person else ())
    opened = partial(open_codebase, settings, readable) if readable else None
    return MemoryService(
        memories=Memories(
            data_dir=settings.data_dir, project=project, redactor=redactor, open_codebase=opened
        ),
        redactor=redactor,
        host=settings.agents.caller,
        tokens=settings.limits.max_response_tokens,
        prompt_characters=settings.memory.prompt_characters,
    )


def open_models(loaded: LoadedSettings) -> Models:
    """The models that the settings define. Enter them with `async with` to connect to their servers."""
    from retinue.models import SKILLS_FILE, Models
    from retinue.service import plan_models

    file = loaded.settings.data_dir / SKILLS_FILE
    return Models(plan_models(loaded.settings), os.environ, file)


def access_token(loaded: LoadedSettings, *, new: bool = False) -> str:
    """The bearer token of the data folder; a new one if `new` is set."""
    return (replace_token if new else load_or_create_token)(loaded.settings.data_dir)


def _agent_service(
    loaded: LoadedSettings,
    roots: Sequence[Root],
    redactor: SecretRedactor,
    models: Models,
    open_memory: Callable[[], MemoryService],
    open_skills: Callable[[], SkillService],
    *,
    for_person: bool,
    executors: ExecutorTable,
) -> AgentService:
    settings = loaded.settings
    found = agent_sources(loaded, roots, executors)
    picker = _executor_picker(settings, executors, models, found.projects)
    sources = replace(found, pick_executor=picker)
    readable = roots or (_as_roots(Path.cwd()) if for_person else ())
    working_folder = roots[0].path if roots else Path.cwd()
    surroundings = build_surroundings(
        settings,
        readable,
        working_folder,
        redactor,
        models,
        lambda run_id, agent, task: open_skills().library.open(run_id, agent, task),
    )
    return AgentService(
        catalog=AgentCatalog(sources),
        executors=executor_makers(executors, surroundings, open_memory),
        executor_kinds=executors,
        models=models,
        trusted=TrustedProjects(settings.data_dir),
        redactor=redactor,
        preview=launch_previewer(executors, surroundings),
        unset_variables=_unset_variables,
        is_installed=lambda program: find_program(program, None, sources.projects) is not None,
        sandbox_name=lambda agent: surroundings.choose_sandbox(agent).name,
        account=account_namer(executors, surroundings),
        tokens=settings.limits.max_response_tokens,
        state=AgentState(
            surroundings.cli_state_folder,
            AgentMemory(settings.data_dir / "memory"),
            RememberedPermissions(settings.data_dir / PERMISSIONS_FILE),
            redactor,
        ),
        on_trust=lambda project, trusted: open_skills().project_trust_changed(project, trusted=trusted),
        skill_names=lambda: open_skills().names(),
        host=settings.agents.caller,
        memory_for_all=settings.memory.all_agents,
    )


def _skill_service(
    loaded: LoadedSettings, roots: Sequence[Root], redactor: SecretRedactor, executors: ExecutorTable
) -> SkillService:
    from retinue.learning import SkillCatalog, SkillLibrary
    from retinue.service import SkillService
    from retinue.store import ApprovedSkills

    settings = loaded.settings
    catalog = SkillCatalog(agent_sources(loaded, roots, executors), ApprovedSkills(settings.data_dir))
    tokens = settings.limits.max_response_tokens
    return SkillService(
        library=SkillLibrary(catalog, redactor, tokens, settings.skills.for_agents),
        redactor=redactor,
        removed=settings.data_dir / "removed-skills",
        for_hosts=bool({"skills", "all"} & {*settings.tools.groups}),
    )


def _executor_picker(
    settings: Settings, executors: ExecutorTable, models: Models, projects: Sequence[Path]
) -> PickExecutor:
    """Return what picks the executor of built-in agents: the setting, what is installed, the local model.

    An agent that only reads prefers the local model: it costs nothing, and the code stays on the machine.
    """
    chosen = settings.agents.executor

    coding_clis = {kind.name: kind.program for kind in executors.values() if kind.program}

    @cache
    def installed() -> str | None:
        found = (name for name, program in coding_clis.items() if find_program(program, None, projects))
        return next(found, None)

    @cache
    def pick(writes: bool) -> PickedExecutor:
        if chosen and chosen in executors and not executors[chosen].requires_command:
            return PickedExecutor(chosen, "agents.executor")
        if models.plan.configured and not writes:
            return PickedExecutor("local", "a model is configured")
        if found := installed():
            return PickedExecutor(found, f"{found} is installed")
        if models.plan.configured:
            return PickedExecutor("local", "a model is configured, and no coding CLI is installed")
        preferred = next(iter(coding_clis), "local") if writes else "local"
        return PickedExecutor(preferred, "no coding CLI and no model was found")

    return pick


def _unset_variables(agent: Agent) -> Sequence[str]:
    """The environment variables that an agent needs and that are not set."""
    if agent.fork and HOST_SESSION_VARIABLE not in os.environ:
        return (HOST_SESSION_VARIABLE,)
    if not agent.env and not agent.mcp_servers:
        return ()
    from retinue.executors import unset_variables  # most agents need none

    return unset_variables(agent, os.environ)
