"""Whether subagents can be shut in: bubblewrap, Podman, Docker. Starts no container."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from retinue.setup.checks.ask import ask, find
from retinue.setup.checks.check import DoctorCheck
from retinue.setup.checks.together import Failure, together
from retinue.setup.machine import Machine

BWRAP_TRIAL = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid")
LOCAL_ENGINES = ("unix://", "npipe://", "fd://")

ALLOW_NAMESPACES = (
    "let users make namespaces: on Ubuntu `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, "
    "on Debian `sudo sysctl kernel.unprivileged_userns_clone=1`; inside a container it may be forbidden"
)


@dataclass(frozen=True, slots=True)
class SandboxEngine:
    """One way to shut a subagent in: whether it works, and the sentence about it."""

    works: bool
    finding: str
    fix: str = ""


def sandbox(machine: Machine, seconds: float = 4.0) -> list[DoctorCheck]:
    ways = [partial(_podman, machine, seconds), partial(_docker, machine, seconds)]
    if machine.system == "linux":
        ways.insert(0, partial(_bubblewrap, machine, seconds))
    answers = together(ways, seconds + 1.0)
    engines = [SandboxEngine(False, a.reason) if isinstance(a, Failure) else a for a in answers]
    finding = "; ".join(engine.finding for engine in engines if engine.works) or "; ".join(
        engine.finding for engine in engines
    )
    if any(engine.works for engine in engines):
        return [DoctorCheck("sandbox", "ok", finding)]
    fixes = [engine.fix for engine in engines if engine.fix]
    if machine.system == "linux" and find("bwrap", machine) is None:
        fixes.insert(0, "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`)")
    fix = fixes[0] if fixes else "install Podman or Docker and start it"
    return [
        DoctorCheck(
            "sandbox", "warning", f"none works, so subagents run with your own rights: {finding}", fix
        )
    ]


def _bubblewrap(machine: Machine, seconds: float) -> SandboxEngine:
    program = find("bwrap", machine)
    if program is None:
        return SandboxEngine(False, "bubblewrap is not installed")
    answer = ask([program, *BWRAP_TRIAL, "true"], machine, seconds)
    if answer.code == 0:
        return SandboxEngine(True, "bubblewrap works")
    return SandboxEngine(False, "bubblewrap is installed but cannot start a sandbox", ALLOW_NAMESPACES)


def _podman(machine: Machine, seconds: float) -> SandboxEngine:
    program = find("podman", machine)
    if program is None:
        return SandboxEngine(False, "Podman is not installed")
    answer = ask([program, "info", "--format", "{{.Version.Version}}"], machine, seconds)
    if answer.code == 0:
        return SandboxEngine(True, f"Podman {answer.version} works")
    start = "start Podman: `podman info` says what is missing"
    return SandboxEngine(False, "Podman is installed but does not answer", start)


def _docker(machine: Machine, seconds: float) -> SandboxEngine:
    program = find("docker", machine)
    if program is None:
        return SandboxEngine(False, "Docker is not installed")
    inspect = [program, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    where = ask(inspect, machine, seconds / 2)
    if where.code == 0 and not where.output.strip().decode("utf-8", "replace").startswith(LOCAL_ENGINES):
        return SandboxEngine(False, "Docker's engine is not on this machine and was not contacted")
    answer = ask([program, "info", "--format", "{{.ServerVersion}}"], machine, seconds / 2)
    if answer.code == 0 and answer.version:
        return SandboxEngine(True, f"Docker {answer.version} works")
    start = "start Docker: open Docker Desktop, or `sudo systemctl start docker`"
    return SandboxEngine(False, "Docker is installed but its engine does not answer", start)
