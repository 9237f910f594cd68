"""Which hosts know of Retinue, and whether what they would start is still there."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from retinue.core import RetinueError
from retinue.setup.change import installed
from retinue.setup.checks.ask import find
from retinue.setup.checks.check import DoctorCheck
from retinue.setup.hosts import HOSTS, Host, InstallScope
from retinue.setup.machine import Machine


def hosts(machine: Machine) -> list[DoctorCheck]:
    with_us: list[str] = []
    without: list[Host] = []
    troubles: list[DoctorCheck] = []
    for host in HOSTS:
        for scope in host.scopes:
            if not host.file(scope, machine).exists():
                continue
            try:
                entry = installed(host, scope, machine)
            except RetinueError as error:
                troubles.append(DoctorCheck("hosts", "warning", error.message, error.hint or ""))
                continue
            if entry is None:
                without.append(host)
                continue
            with_us.append(f"{host.title} ({machine.shown(host.file(scope, machine))})")
            if trouble := _stale(host, scope, entry, machine):
                troubles.append(trouble)
    return [_summary(with_us, without), *troubles]


def _summary(with_us: list[str], without: list[Host]) -> DoctorCheck:
    known = f"added to {', '.join(with_us)}" if with_us else "added to no host"
    names = sorted({host.name for host in without})
    if names:
        titles = sorted({host.title for host in without})
        return DoctorCheck(
            "hosts", "ok", f"{known}; not to {', '.join(titles)}", f"retinue install {names[0]}"
        )
    return DoctorCheck(
        "hosts", "ok", known, "" if with_us else "retinue install HOST; `--help` lists the hosts"
    )


def _stale(host: Host, scope: InstallScope, entry: object, machine: Machine) -> DoctorCheck | None:
    """A host fails without a word when the program it is to start has moved."""
    fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    command = fields.get("command", fields.get("cmd"))
    fix = f"retinue install {host.name}" + (" --scope project" if scope == "project" else "")
    if not isinstance(command, str) or find(command, machine) is None:
        return DoctorCheck("hosts", "problem", f"{host.title} would start a program that is not there", fix)
    if not Path(command).is_absolute():
        finding = f"{host.title} may not find the program it is to start: its entry names no folder"
        return DoctorCheck("hosts", "warning", finding, fix)
    return None
