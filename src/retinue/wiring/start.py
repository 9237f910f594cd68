"""Reads the settings of this process, and says where its agents come from. Loads nothing slow.

A server answers its host's first requests from here, before its service is built.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from retinue import __version__
from retinue.config import CHILD_TOKEN, LoadedSettings, Settings, load_settings, user_settings_file
from retinue.core import EXECUTORS, HOST, PERSON, Agent, ConfigInvalid, ExecutorTable, Root, find_program
from retinue.definitions import AgentCatalog, AgentDefinition, AgentSources, home_relative, working_folders
from retinue.redaction import SecretRedactor
from retinue.store import KnownAnswersFile, TrustedProjects
from retinue.wiring.callers import called_by_run

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


def read_roots(loaded: LoadedSettings) -> tuple[Root, ...]:
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


def follow_host(loaded: LoadedSettings) -> LoadedSettings:
    """Let the project that is open in the host be read: the current folder, and the roots of the host.

    Hosts start servers in the project's folder. Those that do not start them in the home folder or above it,
    which is never read for that reason.
    """
    settings, folder = loaded.settings, Path.cwd().resolve()
    is_project = not Path.home().resolve().is_relative_to(folder)
    roots = (*settings.roots, folder) if is_project else settings.roots
    return replace(loaded, settings=replace(settings, roots=roots, allow_host_roots=True))


def agent_sources(loaded: LoadedSettings, roots: Sequence[Root], executors: ExecutorTable) -> AgentSources:
    """Where this process looks for agents."""
    settings = loaded.settings
    home, trusted = Path.home(), TrustedProjects(settings.data_dir)
    return AgentSources(
        projects=tuple(root.path for root in roots) or working_folders(Path.cwd(), home),
        config=user_settings_file().parent,
        home=home,
        configured=tuple(_command_agent(loaded, name, home) for name in settings.commands),
        is_trusted=lambda project: project in trusted,
        executor=settings.agents.executor,
        executors=executors,
        reserved=frozenset({HOST, PERSON, settings.agents.caller}),
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


def known_answers(loaded: LoadedSettings) -> KnownAnswersFile:
    """The answers of the last server that was started with the same settings, agents and programs.

    They depend on whether there are roots, but not on which: another project has the same answers, unless it
    has agents or settings of its own. They depend on which coding CLIs are installed. Only agents that users
    define need other programs and variables. So what `retinue install` keeps is right for the first start in
    a host, which has another environment than the user's shell.
    """
    settings, roots = loaded.settings, read_roots(loaded)
    sources = agent_sources(loaded, roots, EXECUTORS)
    agents = AgentCatalog(sources).stamps()
    skills = _skill_stamps(loaded) if {"skills", "all"} & {*settings.tools.groups} else ()
    same = replace(settings, roots=())
    programs = [kind.program for kind in EXECUTORS.values() if kind.program]
    found: object = [program for program in programs if find_program(program, None, sources.projects)]
    if agents or settings.commands:
        found = (os.environ.get("PATH"), sorted(os.environ))
    depends_on = (__version__, same, bool(roots), found, agents, skills)
    fingerprint = hashlib.sha256(repr(depends_on).encode("utf-8", "replace")).hexdigest()[:32]
    return KnownAnswersFile(settings.data_dir / "first-answers", fingerprint)


def _skill_stamps(loaded: LoadedSettings) -> object:
    from retinue.learning import SkillCatalog  # for hosts that see skills only
    from retinue.store import ApprovedSkills

    sources = agent_sources(loaded, read_roots(loaded), EXECUTORS)
    return SkillCatalog(sources, ApprovedSkills(loaded.settings.data_dir)).stamps()
