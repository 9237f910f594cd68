"""The service and what it is made of, as the settings say. Starts nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retinue.config import CHILD_TOKEN, LoadedSettings, Settings, load_settings, user_settings_file
from retinue.core import HOST, Agent, ConfigInvalid, Root, Run, Unauthorized
from retinue.definitions import AgentCatalog, AgentDefinition, AgentSources, home_relative, working_folders
from retinue.redaction import SecretRedactor
from retinue.service import AgentService, AgentState, Service
from retinue.store import (
    PERMISSIONS_FILE,
    AgentMemory,
    RememberedPermissions,
    TrustedProjects,
    new_token,
    token_of,
)
from retinue.wiring.executors import cli_state_folder, executors, starts

if TYPE_CHECKING:
    from retinue.models import Models


def read_settings(flags: Mapping[str, Any]) -> LoadedSettings:
    """The settings in force for this process; flags that were not given are None."""
    return load_settings(flags={key: value for key, value in flags.items() if value not in (None, ())})


def redactor(settings: Settings | None = None) -> SecretRedactor:
    """For everything that leaves this process; a run's own token and the models' keys are hidden wherever
    they occur."""
    endpoints = settings.models.endpoints.values() if settings is not None else ()
    secret = {CHILD_TOKEN, *(endpoint.api_key_env for endpoint in endpoints)}
    return SecretRedactor([value for name, value in os.environ.items() if name in secret and value])


def build_service(loaded: LoadedSettings, *, at_hand: bool = False) -> Service:
    """`at_hand` for a person at a terminal: without a root, their agents may read where they stand."""
    settings = loaded.settings
    roots, clean = _roots(loaded), redactor(settings)
    return Service(
        roots=roots,
        redactor=clean,
        allow_host_roots=settings.allow_host_roots,
        settings=settings,
        agent_service=_agents(loaded, roots, clean, open_models(loaded), at_hand=at_hand),
    )


def open_models(loaded: LoadedSettings) -> Models:
    """The models that the settings lead to: `async with`, for the lines to their servers."""
    from retinue.models import Models
    from retinue.service import plan_models

    return Models(plan_models(loaded.settings), os.environ)


def token(loaded: LoadedSettings, *, new: bool = False) -> str:
    """The bearer token of the data folder."""
    return (new_token if new else token_of)(loaded.settings.data_dir)


def _agents(
    loaded: LoadedSettings, roots: Sequence[Root], clean: SecretRedactor, models: Models, *, at_hand: bool
) -> AgentService:
    settings = loaded.settings
    home, trusted = Path.home(), TrustedProjects(settings.data_dir)
    projects = tuple(root.path for root in roots) or working_folders(Path.cwd(), home)
    readable = roots or ((Root.at(Path.cwd()),) if at_hand else ())
    sources = AgentSources(
        projects=projects,
        config=user_settings_file().parent,
        home=home,
        given=tuple(_command_agent(loaded, name, home) for name in settings.commands),
        is_trusted=lambda project: project in trusted,
        executor=settings.agents.executor,
        reserved=frozenset({HOST, settings.agents.caller}),
    )
    return AgentService(
        catalog=AgentCatalog(sources),
        executors=executors(settings, readable, clean, models),
        models=models,
        trusted=trusted,
        redactor=clean,
        start=starts(settings.data_dir, roots[0].path if roots else Path.cwd(), clean, models),
        is_installed=lambda program: shutil.which(program) is not None,
        tokens=settings.limits.max_response_tokens,
        kept=AgentState(
            cli_state_folder(settings.data_dir),
            AgentMemory(settings.data_dir / "memory"),
            RememberedPermissions(settings.data_dir / PERMISSIONS_FILE),
            clean,
        ),
        host=settings.agents.caller,
    )


def _command_agent(loaded: LoadedSettings, name: str, home: Path) -> AgentDefinition:
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
    source = f"{home_relative(Path(file), home)} [commands.{name}]"
    return AgentDefinition(
        name=name, scope="settings", source=source, file=file, agent=agent, origins=origins
    )


def _roots(loaded: LoadedSettings) -> tuple[Root, ...]:
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


# MERGED child: Which run this process belongs to, if it belongs to one.


def own_run(loaded: LoadedSettings) -> Run:
    """The run that this process belongs to, proved by its token."""
    from retinue.store import Store

    given = os.environ.get(CHILD_TOKEN)
    if given is None:
        raise Unauthorized(
            f"this process belongs to no run: {CHILD_TOKEN} is not set",
            hint="`retinue child` is started by the programs that a run starts",
        )
    with Store.open(loaded.settings.data_dir) as store:
        return store.runs.get(store.child_tokens.run_of(given))


def is_child() -> bool:
    """Whether a run of ours started this process."""
    return CHILD_TOKEN in os.environ
