"""Adding Retinue to hosts, taking it out again, and the doctor."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from retinue.codebase import find_ripgrep
from retinue.config import (
    LoadedSettings,
    SettingProblem,
    Settings,
    invalid_settings,
    load_settings,
    load_settings_file,
    setting_values,
    user_settings_file,
)
from retinue.core import ConfigInvalid, RetinueError, Root
from retinue.models import TIERS, EndpointAddress
from retinue.service.agents import plan_models
from retinue.setup import (
    HOSTS,
    SERVER_NAME,
    DoctorCheck,
    DoctorSubject,
    HostFileChange,
    InstallScope,
    Machine,
    ServerEntry,
    apply_change,
    find_host,
    install_link,
    is_in_package_cache,
    plan_install,
    plan_uninstall,
    retinue_command,
    run_doctor,
)


@dataclass(frozen=True, slots=True)
class InstallOutcome:
    """What was done to one host's file, or would be."""

    host: str
    title: str
    scope: InstallScope
    file: str
    action: str
    """`add`, `update`, `remove`, or `none` when the file is as it should be."""
    applied: bool
    diff: str
    backup: str | None = None
    """The copy of the file as it was; None when there was none, or nothing changed."""
    notes: tuple[str, ...] = ()
    """What the user should know or still has to do."""


def server_entry(roots: Sequence[str], env: Mapping[str, str]) -> ServerEntry:
    """What a host is told to start; roots that do not exist are refused."""
    return ServerEntry.serving(retinue_command(), [Root.at(root).path for root in roots], env)


def install_host(
    host: str, entry: ServerEntry, scope: InstallScope = "user", *, dry_run: bool = False
) -> InstallOutcome:
    """Add Retinue to the host's file, or bring its entry up to date."""
    machine = Machine.current()
    change = plan_install(find_host(host), entry, scope, machine)
    notes: list[str] = []
    if is_in_package_cache(entry.command):
        notes.append(
            "This program lies in a cache that may be cleared: `uv tool install retinue`, then install again."
        )
    if scope == "user" and not change.path.parent.exists():
        folder = machine.display_path(change.path.parent)
        notes.append(f"{change.host.title} is not installed (no {folder} folder found).")
    if change.action != "none" and not dry_run:
        notes.append(change.host.after_install)
    return _carried_out(change, machine, dry_run, notes)


def uninstall_host(
    host: str | None = None, scope: InstallScope | None = None, *, dry_run: bool = False
) -> tuple[list[InstallOutcome], list[RetinueError]]:
    """Take Retinue out of one host's files, or of every host's, and of both scopes unless one is named.

    A file that cannot be edited does not keep it in the others.
    """
    machine = Machine.current()
    outcomes: list[InstallOutcome] = []
    errors: list[RetinueError] = []
    chosen = HOSTS if host is None else (find_host(host),)
    if host is not None and scope is not None:
        chosen[0].file(scope, machine)  # refuses a scope that the host does not have
    for each in chosen:
        for where in each.scopes if scope is None else set(each.scopes) & {scope}:
            try:
                change = plan_uninstall(each, where, machine)
                if change.action != "none":
                    outcomes.append(_carried_out(change, machine, dry_run, []))
            except RetinueError as error:
                errors.append(error)
    return outcomes, errors


def host_snippet(host: str, entry: ServerEntry) -> str:
    """The host's file as it would be with nothing but our entry in it."""
    chosen = find_host(host)
    whole = {chosen.servers_key: {SERVER_NAME: chosen.build_entry(entry)}}
    if chosen.format == "yaml":
        return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def host_file(host: str, scope: InstallScope = "user") -> str:
    """Where the host's file lies, as a person writes it."""
    machine = Machine.current()
    return machine.display_path(find_host(host).file(scope, machine))


def host_link(host: str, entry: ServerEntry) -> str:
    """The link that makes the host offer to add Retinue."""
    return install_link(find_host(host), entry)


def diagnose(roots: Sequence[str] = ()) -> list[DoctorCheck]:
    """Everything that could keep Retinue from working; the settings themselves among it."""
    problems: tuple[RetinueError, ...] = ()
    try:
        settings = load_settings(flags={"roots": tuple(roots)} if roots else {}).settings
    except ConfigInvalid as error:
        settings, problems = Settings(roots=tuple(map(Path, roots))), (error,)
    return run_doctor(
        DoctorSubject(
            machine=Machine.current(),
            data_dir=settings.data_dir,
            find_ripgrep=_find_ripgrep,
            roots=settings.roots,
            models=plan_models(settings),
            config_problems=problems,
        )
    )


def _carried_out(change: HostFileChange, machine: Machine, dry_run: bool, notes: list[str]) -> InstallOutcome:
    backup = None if dry_run else apply_change(change)
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


def _find_ripgrep() -> Path | None:
    found = find_ripgrep()
    return None if found is None else found.program


# MERGED configuration: What the settings are and where each came from.


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    value: Any
    origin: str
    """A file, a variable, a flag, or `default`."""
    allowed: str


def describe_settings(loaded: LoadedSettings) -> list[Setting]:
    """Every setting, in the order of the settings page."""
    return [
        Setting(key, _plain(value), loaded.origins.get(key, "default"), row.allowed)
        for key, row, value in setting_values(loaded.settings)
    ]


def user_settings_location() -> tuple[Path, bool]:
    """The user's own file, and whether it is there."""
    file = user_settings_file()
    return file, file.is_file()


def check_settings_file(path: Path) -> None:
    """Raise `ConfigInvalid` with everything that is wrong in one file."""
    models = load_settings_file(path).settings.models
    given = {
        "models.endpoint": models.endpoint,
        **{f"models.tiers.{name}.endpoint": getattr(models.tiers, name).endpoint for name in TIERS},
    }
    urls = {f"models.endpoints.{name}.url": each.url for name, each in models.endpoints.items()}
    urls |= {key: value for key, value in given.items() if "://" in value}
    problems = [
        SettingProblem(str(path), key, "", wrong) for key, url in urls.items() if (wrong := _wrong_url(url))
    ]
    names = ", ".join(sorted(models.endpoints)) or "none"
    problems += [
        SettingProblem(str(path), key, repr(value), f"neither a URL nor an endpoint; there are: {names}")
        for key, value in given.items()
        if value and "://" not in value and value not in models.endpoints
    ]
    if problems:
        raise invalid_settings(problems)


def _wrong_url(url: str) -> str | None:
    """The URL is not repeated: it may hold a password."""
    try:
        EndpointAddress.parse(url)
    except ConfigInvalid as error:
        return f"{error.message}; {error.hint}"
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, Path) else value
