"""Installs Retinue into hosts and removes it, writes example files, and runs the doctor."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from retinue.codebase import find_ripgrep
from retinue.config import (
    Settings,
    load_settings,
    user_settings_file,
)
from retinue.core import (
    ConfigInvalid,
    InvalidInput,
    RetinueError,
    Root,
    clip,
    find_program,
)
from retinue.definitions import NAME_PATTERN
from retinue.service.agents import plan_models
from retinue.setup import (
    HOSTS,
    SHARED_COMMAND,
    DoctorCheck,
    DoctorSubject,
    Host,
    HostFileChange,
    InstallScope,
    Machine,
    ServerEntry,
    WebState,
    apply_change,
    find_host,
    host_snippet as setup_snippet,
    install_link,
    is_in_package_cache,
    plan_install,
    plan_uninstall,
    read_installed_entry,
    retinue_command,
    run_doctor,
    write_agent,
    write_examples,
)


@dataclass(frozen=True, slots=True)
class InstallOutcome:
    """A change of one host's file that was made, or would be made."""

    host: str
    title: str
    scope: InstallScope
    file: str
    action: str
    """`add`, `update`, `remove`, or `none` if the file needs no change."""
    applied: bool
    diff: str
    backup: str | None = None
    """The backup of the file; None if there was no file or nothing changed."""
    notes: tuple[str, ...] = ()
    """What the user should know or do next."""


@dataclass(frozen=True, slots=True)
class HostView:
    """A host, as `retinue install --list` shows it."""

    name: str
    title: str
    aliases: tuple[str, ...]
    found: bool
    """Whether the host is installed on this machine."""
    installed: tuple[InstallScope, ...]
    """The scopes in which Retinue is added to the host."""
    files: Mapping[InstallScope, str]
    reads: str
    """What Retinue may read there if no root is named."""
    other_product: str


def list_hosts() -> list[HostView]:
    """All hosts that Retinue can be added to, and where it is."""
    machine = this_machine()
    return [_host_view(host, machine) for host in HOSTS]


def _host_view(host: Host, machine: Machine) -> HostView:
    files: dict[InstallScope, Path] = {scope: host.file(scope, machine) for scope in host.scopes(machine)}
    installed: list[InstallScope] = []
    for scope, file in files.items():
        with suppress(RetinueError):
            if file.exists() and read_installed_entry(host, scope, machine) is not None:
                installed.append(scope)
    return HostView(
        name=host.name,
        title=host.title,
        aliases=host.aliases,
        found=not host.missing(machine),
        installed=tuple(installed),
        files={where: machine.display_path(file) for where, file in files.items()},
        reads="the open project" if host.tells_project else "nothing",
        other_product=host.other_product,
    )


def install_host(
    host: str, entry: ServerEntry, scope: InstallScope = "user", *, dry_run: bool = False
) -> InstallOutcome:
    """Add Retinue to the host's file, or update its entry."""
    machine = this_machine()
    chosen = find_host(host)
    change = plan_install(chosen, entry, scope, machine)
    notes = [chosen.other_product] if chosen.other_product else []
    if is_in_package_cache(entry.command):
        notes.append(
            "This program is in a cache that may be cleared. Install it with `uv tool install` and try again."
        )
    if scope == "user" and (missing := chosen.missing(machine)):
        notes.append(f"{chosen.title} is not installed ({missing}).")
    if scope == "project" and find_program(SHARED_COMMAND[0]) is None:
        notes.append(
            "The project's file starts `retinue` from PATH, because others share it; it is not on your PATH."
        )
    if not {"--root", "--follow-host"} & {*entry.args} and not _configured_roots():
        notes.append(
            f"Nothing may be read yet: {chosen.title} does not tell servers which project is open. "
            f"Name the folders: retinue install {chosen.name} --root DIR"
        )
    if change.action != "none" and not dry_run:
        notes.append(chosen.after_install)
        notes += [chosen.after_project_install] if scope == "project" else []
        notes += [] if entry.approved else [chosen.approval_note]
    outcome = _apply(change, machine, dry_run, [note for note in notes if note])
    if not dry_run:
        _prepare_first_start(chosen, entry)
    return outcome


def _prepare_first_start(host: Host, entry: ServerEntry) -> None:
    """Let a server keep the answers to the first requests of a host that may not wait for servers.

    Without them, the first start after the installation would be late. The server ends by itself.
    """
    if host.impatient is None or find_program(host.program) is None or not hasattr(os, "fork"):
        return
    here = Path.cwd()  # in the home folder, the server would have nothing to read, unlike in a project
    with suppress(OSError):  # the first start is late
        subprocess.Popen(
            [entry.command, *entry.args, "--remember", host.impatient],
            cwd=Path(__file__).parent if here == Path.home() else here,
            env={**os.environ, **dict(entry.env)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def write_project_examples(folder: Path) -> dict[str, Any]:
    """Write examples of agents, profiles, a team and a workflow into a project."""
    written = write_examples(folder)
    trust = shlex.join(["retinue", "agents", "trust", str(folder)])
    return {
        "folder": str(folder.resolve()),
        "written": written,
        "next": f"read and change them; `{trust}` then allows them to write, and team and workflow to run",
    }


AGENT_PROMPT = """\
You are {name}. Do the task that you are given, and nothing else. Name places in the code as path:line. If you
cannot do the task, say why."""


def create_agent(
    name: str,
    folder: Path | None,
    *,
    prompt: str = "",
    **fields: str | Sequence[str],
) -> Path:
    """Write a new agent file: into a project's `.retinue/agents`, or into the user's own folder (None)."""
    if not NAME_PATTERN.fullmatch(name):
        raise InvalidInput(
            f"{clip(name, 80)!r} is not a name for an agent", hint="use letters, digits, - and _"
        )
    if folder is None:
        folder = user_settings_file().parent
        folder.mkdir(parents=True, exist_ok=True)
        path = f"agents/{name}.md"
    else:
        path = f".retinue/agents/{name}.md"
    text = prompt or AGENT_PROMPT.format(name=name)
    return write_agent(folder, path, {"name": name, **fields}, text)


def uninstall_host(
    host: str | None = None, scope: InstallScope | None = None, *, dry_run: bool = False
) -> tuple[list[InstallOutcome], list[RetinueError]]:
    """Remove Retinue from one host or from all hosts, and from both scopes unless one is given.

    A file that cannot be edited does not stop the others.
    """
    machine = this_machine()
    outcomes: list[InstallOutcome] = []
    errors: list[RetinueError] = []
    chosen = HOSTS if host is None else (find_host(host),)
    if host is not None and scope is not None:
        chosen[0].file(scope, machine)  # raises for a scope that the host does not have
    for each in chosen:
        for where in each.scopes(machine):
            if scope not in (None, where):
                continue
            try:
                change = plan_uninstall(each, where, machine)
                if change.action != "none":
                    outcomes.append(_apply(change, machine, dry_run, []))
            except RetinueError as error:
                errors.append(error)
    return outcomes, errors


def host_snippet(host: str, entry: ServerEntry) -> str:
    """The content of the host's file if Retinue were its only entry."""
    return setup_snippet(find_host(host), entry)


def host_file(host: str, scope: InstallScope = "user") -> str:
    """The path of the host's file, with `~` for the home folder."""
    machine = this_machine()
    return machine.display_path(find_host(host).file(scope, machine))


def host_link(host: str, entry: ServerEntry) -> str:
    """A link that opens the host and offers to add Retinue."""
    return install_link(find_host(host), entry)


def server_entry(
    host: str,
    scope: InstallScope,
    roots: Sequence[str],
    env: Mapping[str, str],
    *,
    follow_host: bool | None = None,
    approve: bool = False,
) -> ServerEntry:
    """The command that a host starts. Raises if a root does not exist.

    Without roots, the project that is open in the host may be read, if the host tells which one that is. An
    entry for a project's file has no paths of this machine.
    """
    chosen = find_host(host)
    if follow_host and chosen.tells_project is None:
        raise InvalidInput(
            f"{chosen.title} does not tell servers which project is open", hint="name the folders: --root DIR"
        )
    if approve and not chosen.approval:
        raise InvalidInput(
            f"the file of {chosen.title} cannot approve tools",
            hint=chosen.approval_note or "leave out --approve; the host asks in its own window",
        )
    folders = [Root.at(root).path for root in roots]
    return ServerEntry.serving(
        SHARED_COMMAND if scope == "project" else retinue_command(),
        folders if scope == "user" else [_shared_root(chosen, folder) for folder in folders],
        env,
        follow_host=bool(chosen.tells_project and not roots) if follow_host is None else follow_host,
        approved=approve,
    )


def _shared_root(host: Host, folder: Path) -> str:
    """A root as it is written to a project's file: relative to the project, which is elsewhere for others."""
    project = Path.cwd().resolve()
    if not folder.is_relative_to(project):
        raise InvalidInput(
            f"{folder} is outside of this project, so others who share the project's file do not have it",
            hint="name a folder inside the project, or leave out --scope project",
        )
    inside = folder.relative_to(project).as_posix()
    if not host.project_folder:
        return inside
    return host.project_folder if inside == "." else f"{host.project_folder}/{inside}"


def this_machine() -> Machine:
    """This machine, with the folder for backups below the data folder."""
    try:
        data_dir = load_settings().settings.data_dir
    except ConfigInvalid:  # the doctor reports it; hosts can be set up nevertheless
        data_dir = Settings().data_dir
    return Machine.current(data_dir / "host-files")


def _configured_roots() -> bool:
    try:
        return bool(load_settings().settings.roots)
    except ConfigInvalid:
        return False


def _apply(change: HostFileChange, machine: Machine, dry_run: bool, notes: list[str]) -> InstallOutcome:
    backup = None if dry_run else apply_change(change, machine)
    return InstallOutcome(
        host=change.host.name,
        title=change.host.title,
        scope=change.scope,
        file=change.display_path,
        action=change.action,
        applied=not dry_run and change.action != "none",
        diff=change.diff(),
        backup=None if backup is None else machine.display_path(backup),
        notes=tuple(notes),
    )


MAX_IGNORED = 10
"""Ignored settings that the doctor lists."""


def diagnose(roots: Sequence[str] = (), *, called_by_run: bool = False) -> list[DoctorCheck]:
    """Check everything that Retinue needs to work, including the settings."""
    problems: tuple[RetinueError, ...] = ()
    ignored: tuple[str, ...] = ()
    try:
        loaded = load_settings(flags={"roots": tuple(roots)} if roots else {})
        settings, ignored = loaded.settings, tuple(map(str, loaded.ignored[:MAX_IGNORED]))
    except ConfigInvalid as error:
        settings, problems = Settings(roots=tuple(map(Path, roots))), (error,)
    machine = Machine.current(settings.data_dir / "host-files")
    return run_doctor(
        DoctorSubject(
            machine=machine,
            data_dir=settings.data_dir,
            find_ripgrep=partial(_find_ripgrep, (machine.project, *settings.roots)),
            roots=settings.roots,
            models=plan_models(settings),
            config_problems=problems,
            ignored_settings=ignored,
            called_by_run=called_by_run,
            web=_web_state(settings, machine),
        )
    )


def _web_state(settings: Settings, machine: Machine) -> WebState:
    from retinue.service.web_sources import search_provider, web_cache  # slow to load

    network = settings.network
    return WebState(
        is_open=network.web,
        settings_file=machine.display_path(user_settings_file()),
        allow_hosts=network.allow_hosts,
        deny_hosts=network.deny_hosts,
        allow_private=network.allow_private,
        find_provider=partial(search_provider, settings),
        cache=web_cache(settings),
    )


def _find_ripgrep(outside: Sequence[Path]) -> Path | None:
    found = find_ripgrep(outside)
    return None if found is None else found.program
