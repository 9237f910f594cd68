"""Builds the service and its parts from the settings. Starts nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retinue.config import CHILD_TOKEN, LoadedSettings, Settings, load_settings, user_settings_file
from retinue.core import (
    EXECUTORS,
    HOST,
    PERSON,
    Agent,
    ConfigInvalid,
    ExecutorTable,
    Root,
    find_program,
)
from retinue.definitions import AgentCatalog, AgentDefinition, AgentSources, home_relative, working_folders
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
from retinue.wiring.callers import called_by_run, is_from_run
from retinue.wiring.executors import account_namer, build_surroundings, executor_makers, launch_previewer

if TYPE_CHECKING:
    from retinue.models import Models
    from retinue.store import Reports


MAX_WARNINGS = 10
"""Ignored settings that are named one by one."""


def read_settings(flags: Mapping[str, Any]) -> LoadedSettings:
    """Load the settings of this process. A flag that was not passed is None or empty.

    Prints a warning for each setting that does not count, because it comes from the project's file or from a
    run.
    """
    given = {key: value for key, value in flags.items() if value not in (None, ())}
    loaded = load_settings(flags=given, by_run=called_by_run())
    for problem in loaded.ignored[:MAX_WARNINGS]:
        _warn_once(f"retinue: {redactor().redact(str(problem))}")
    if len(loaded.ignored) > MAX_WARNINGS:
        _warn_once(f"retinue: {len(loaded.ignored) - MAX_WARNINGS} more settings of the project are ignored")
    return loaded


@cache
def _warn_once(warning: str) -> None:
    """Print a warning that this process has not printed before."""
    print(warning, file=sys.stderr)


def redactor(settings: Settings | None = None) -> SecretRedactor:
    """The redactor for all output. It also hides the token of a run and the API keys of models."""
    endpoints = settings.models.endpoints.values() if settings is not None else ()
    secret = {CHILD_TOKEN, *(endpoint.api_key_env for endpoint in endpoints)}
    return SecretRedactor([value for name, value in os.environ.items() if name in secret and value])


def build_service(
    loaded: LoadedSettings, *, for_person: bool = False, executors: ExecutorTable = EXECUTORS
) -> Service:
    """Build the service. With `for_person` and without roots, agents may read the current folder."""
    settings = loaded.settings
    roots, secret_redactor = _roots(loaded), redactor(settings)
    return Service(
        roots=roots,
        redactor=secret_redactor,
        allow_host_roots=settings.allow_host_roots,
        settings=settings,
        open_reports=lambda: open_reports(settings),
        is_from_run=partial(is_from_run, settings.data_dir),
        agent_service=_agent_service(
            loaded, roots, secret_redactor, open_models(loaded), for_person=for_person, executors=executors
        ),
    )


def open_reports(settings: Settings) -> Reports:
    """The stored reports of the data folder."""
    from retinue.store import Reports

    return Reports(settings.data_dir)


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
    *,
    for_person: bool,
    executors: ExecutorTable,
) -> AgentService:
    settings = loaded.settings
    home, trusted = Path.home(), TrustedProjects(settings.data_dir)
    projects = tuple(root.path for root in roots) or working_folders(Path.cwd(), home)
    readable = roots or ((Root.at(Path.cwd()),) if for_person else ())
    sources = AgentSources(
        projects=projects,
        config=user_settings_file().parent,
        home=home,
        configured=tuple(_command_agent(loaded, name, home) for name in settings.commands),
        is_trusted=lambda project: project in trusted,
        executor=settings.agents.executor,
        executors=executors,
        reserved=frozenset({HOST, PERSON, settings.agents.caller}),
    )
    working_folder = roots[0].path if roots else Path.cwd()
    surroundings = build_surroundings(settings, readable, working_folder, redactor, models)
    return AgentService(
        catalog=AgentCatalog(sources),
        executors=executor_makers(executors, surroundings),
        executor_kinds=executors,
        models=models,
        trusted=trusted,
        redactor=redactor,
        preview=launch_previewer(executors, surroundings),
        account=account_namer(executors, surroundings),
        is_installed=lambda program: find_program(program, None, projects) is not None,
        tokens=settings.limits.max_response_tokens,
        state=AgentState(
            surroundings.cli_state_folder,
            AgentMemory(settings.data_dir / "memory"),
            RememberedPermissions(settings.data_dir / PERMISSIONS_FILE),
            redactor,
        ),
        host=settings.agents.caller,
    )


def _command_agent(loaded: LoadedSettings, name: str, home: Path) -> AgentDefinition:
    """Turn a `[commands.NAME]` table of the settings into an agent definition."""
    command = loaded.settings.commands[name]
    fields = {"argv": "command", "timeout_ms": "timeout_s"}
    origins = {
        fields.get(key, key): loaded.origins[f"commands.{name}.{key}"]
        for key in ("argv", "description", "timeout_ms", "env", "spawns")
        if f"commands.{name}.{key}" in loaded.origins
    }
    file = origins.get("command", "settings")
    agent = Agent(
        name=name,
        description=command.description,
        executor="command",
        command=command.argv,
        env=command.env,
        timeout_s=command.timeout_ms / 1000,
        spawns=command.spawns,
        source=f"commands.{name}",
    )
    source = f"{home_relative(Path(file), home)} [commands.{name}]"
    return AgentDefinition(
        name=name, scope="settings", source=source, file=file, agent=agent, origins=origins
    )


def _roots(loaded: LoadedSettings) -> tuple[Root, ...]:
    """The roots of the settings, checked and without duplicates."""
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
