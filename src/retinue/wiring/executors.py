"""Gives executors their surroundings, and loads them from the table of executors. Knows none by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from retinue.config import Settings
from retinue.core import Agent, Executor, ExecutorTable, Redactor, Root, Unavailable
from retinue.executors import Surroundings, WebAccess
from retinue.wiring.web import web_opener

if TYPE_CHECKING:
    from retinue.codebase import Codebase, Locator, Policy
    from retinue.core import OpenSkills
    from retinue.executors import ExecutorModule, LaunchPreview
    from retinue.models import Models
    from retinue.service import MemoryService

DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""Variables that a program needs to show something on a desktop."""


def build_surroundings(
    settings: Settings,
    roots: Sequence[Root],
    cwd: Path,
    redactor: Redactor,
    models: Models,
    open_skills: OpenSkills = lambda run_id, agent, task: None,
) -> Surroundings:
    """Return what every executor gets. Agents may read the roots; runs work in `cwd`."""
    return Surroundings(
        data_dir=settings.data_dir,
        environment=os.environ,
        cwd=cwd,
        roots=tuple(root.path for root in roots),
        redactor=redactor,
        models=models,
        open_codebase=partial(open_codebase, settings, roots),
        policy=partial(read_policy, settings),
        open_locator=partial(open_locator, settings),
        open_skills=open_skills,
        open_web=web_opener(settings, roots, redactor),
        web_access=WebAccess(
            is_open=settings.network.web,
            allow_hosts=settings.network.allow_hosts,
            deny_hosts=settings.network.deny_hosts,
        ),
    )


def open_codebase(settings: Settings, roots: Sequence[Root]) -> Codebase:
    """Open the roots under the user's policy."""
    from retinue.codebase import Codebase, reading_policy  # most commands read no files

    return Codebase(roots, reading_policy(settings))


def read_policy(settings: Settings) -> Policy:
    """Return the user's policy."""
    from retinue.codebase import reading_policy  # most commands read no files

    return reading_policy(settings)


def open_locator(settings: Settings, codebase: Codebase) -> Locator:
    """Open what ranks the files of a codebase for a question, with the index if there is one."""
    from retinue.codebase import Locator
    from retinue.service import index_folder

    return Locator(codebase, index_folder(settings))


def executor_makers(
    table: ExecutorTable, surroundings: Surroundings, open_memory: Callable[[], MemoryService] | None = None
) -> Mapping[str, Callable[[Agent], Executor]]:
    """Return the executors that agents can run on, by name. Each is loaded when an agent first needs it."""
    has_models = surroundings.models.plan.configured

    def make(agent: Agent) -> Executor:
        executor = _load_module(table, agent).make(agent, surroundings)
        if "skills" in table[agent.executor].fields:
            from retinue.executors import WithSkills  # few commands run agents

            executor = WithSkills(executor, agent, surroundings.open_skills)
        if open_memory is None or not agent.uses_memory:
            return executor
        from retinue.executors import WithMemory  # few agents have a memory

        return WithMemory(executor, partial(open_memory().for_run, agent.name), in_prompt=agent.memory)

    return {
        kind.name: make for kind in table.values() if kind.factory and (has_models or not kind.uses_models)
    }


def account_namer(table: ExecutorTable, surroundings: Surroundings) -> Callable[[Agent], str | None]:
    """Return a function that names the account whose usage limit an agent's runs spend."""

    def name(agent: Agent) -> str | None:
        from retinue.executors import account_name  # most commands run no agent

        kind = table.get(agent.executor)
        if kind is None or kind.factory is None:
            return None
        if not kind.uses_models:
            return account_name(agent, kind, surroundings.environment)
        plan = surroundings.models.plan
        if not plan.configured:
            return None
        server, _ = plan.choose(agent.model or "default")
        return account_name(agent, kind, surroundings.environment, (server.url, server.api_key_env))

    return name


def launch_previewer(table: ExecutorTable, surroundings: Surroundings) -> Callable[[Agent], LaunchPreview]:
    """Return a function that tells what a run of an agent would start."""

    def preview(agent: Agent) -> LaunchPreview:
        # A sandbox can hide the data folder only if it exists.
        surroundings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _load_module(table, agent).preview(agent, surroundings)

    return preview


def _load_module(table: ExecutorTable, agent: Agent) -> ExecutorModule:
    kind = table.get(agent.executor)
    if kind is None or kind.factory is None:
        raise Unavailable(f"nothing starts for the executor {agent.executor}")
    return cast("ExecutorModule", import_module(kind.factory))


def notice_executor(argv: Sequence[str]) -> Callable[[str], Executor]:
    """Return what starts the user's program for a notice: `{text}` in its arguments becomes the text."""

    def make(text: str) -> Executor:
        from retinue.executors import CommandConfig, CommandExecutor, CommandTemplate  # few have a notifier

        filled = (each.replace("{text}", text) for each in argv)
        template = CommandTemplate(tuple(each.replace("{", "{{").replace("}", "}}") for each in filled))
        shown = {name: os.environ[name].replace("$", "$$") for name in DESKTOP if name in os.environ}
        return CommandExecutor(CommandConfig(template, shown, max_output_bytes=1 << 20), os.environ)

    return make


def check_executor(settings: Settings) -> Callable[[Agent, bool], Executor]:
    """Return what runs a project's own checks: in a sandbox if there is one, unless the user wants none.

    With `in_worktree`, a check runs on the work of an earlier run instead of in the project's folder.
    """

    def make(agent: Agent, in_worktree: bool) -> Executor:
        from retinue.executors import (  # most commands run no checks
            CommandConfig,
            CommandExecutor,
            CommandTemplate,
            WithWorktree,
            find_bubblewrap,
            sandbox_project_check,
        )

        sandbox = (
            find_bubblewrap(os.environ, map(Path, settings.roots))
            if settings.workflows.sandbox == "auto"
            else None
        )
        enclosed = sandbox and partial(
            sandbox_project_check, sandbox, Path.home(), settings.data_dir.resolve()
        )
        command = CommandConfig(CommandTemplate(agent.command))
        executor = CommandExecutor(command, os.environ, enclosed)
        if not in_worktree:
            return executor
        folder, outside = settings.data_dir.resolve() / "worktrees", tuple(map(Path, settings.roots))
        return WithWorktree(executor, folder, os.environ, outside=outside, keep=False)

    return make
