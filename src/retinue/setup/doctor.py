"""`retinue doctor`: finds everything that could keep Retinue from working, and says how to fix it.

Ends within a few seconds, changes nothing, and contacts only this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from retinue.codebase import missing_parsers
from retinue.core import EXECUTORS, ExecutorTable, RetinueError
from retinue.models import SKILLS_FILE, ModelPlan
from retinue.setup.check import DoctorCheck, TaskFailure, run_in_parallel
from retinue.setup.environment_checks import (
    check_caller,
    check_configuration,
    check_data_folder,
    check_database,
    check_parsers,
    check_python,
    check_quotas,
    check_roots,
)
from retinue.setup.machine import Machine
from retinue.setup.model_checks import check_model_endpoints
from retinue.setup.program_checks import (
    check_coding_clis,
    check_git,
    check_hosts,
    check_ripgrep,
    check_sandbox,
    hosts_with_roots,
)
from retinue.setup.web_checks import WebState, check_web

MAX_SECONDS = 5.9
"""Time limit for all checks together. The limits for single programs are a little shorter."""


@dataclass(frozen=True, slots=True)
class DoctorSubject:
    """What the doctor examines: this machine and the loaded configuration."""

    machine: Machine
    data_dir: Path
    find_ripgrep: Callable[[], str | Path | None]
    roots: tuple[str | Path, ...] = ()
    models: ModelPlan = field(default_factory=ModelPlan)
    config_problems: tuple[RetinueError, ...] = ()
    ignored_settings: tuple[str, ...] = ()
    called_by_run: bool = False
    executors: ExecutorTable = field(default_factory=lambda: EXECUTORS)
    web: WebState = field(default_factory=WebState)


def run_doctor(subject: DoctorSubject, seconds: float = MAX_SECONDS) -> list[DoctorCheck]:
    """Run all checks in parallel and return their results in a fixed order.

    Never raises: a check that fails is reported as a warning.
    """
    machine = subject.machine
    checks: dict[str, Callable[[], list[DoctorCheck]]] = {
        "python": check_python,
        "configuration": partial(check_configuration, subject.config_problems, subject.ignored_settings),
        "caller": partial(check_caller, called_by_run=subject.called_by_run),
        "roots": partial(check_roots, subject.roots, machine, hosts_with_roots),
        "parsers": lambda: check_parsers(missing_parsers()),
        "ripgrep": partial(check_ripgrep, subject.find_ripgrep, machine),
        "git": partial(check_git, machine, subject.roots),
        "data folder": partial(check_data_folder, subject.data_dir, machine),
        "database": partial(check_database, subject.data_dir),
        "quota": partial(check_quotas, subject.data_dir),
        "model endpoint": partial(
            check_model_endpoints,
            subject.models,
            machine.environment,
            skills_file=subject.data_dir / SKILLS_FILE,
        ),
        "web": partial(check_web, subject.web, machine.environment),
        "CLIs": partial(check_coding_clis, machine, executors=subject.executors),
        "sandbox": partial(check_sandbox, machine),
        "hosts": partial(check_hosts, machine),
    }
    results = run_in_parallel(list(checks.values()), seconds)
    return [
        check
        for name, result in zip(checks, results, strict=True)
        for check in (_failed_check(name, result) if isinstance(result, TaskFailure) else result)
    ]


def _failed_check(name: str, failure: TaskFailure) -> list[DoctorCheck]:
    """Return the warning that replaces the results of a check that failed."""
    return [DoctorCheck(name, "warning", f"the check {failure.reason}", "run `retinue doctor` again")]
