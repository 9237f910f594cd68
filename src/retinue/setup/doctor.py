"""The doctor: everything that could keep Retinue from working, and how to mend it.

Bounded in time, changes nothing that stays, and speaks to this machine alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from retinue.core import RetinueError
from retinue.models import ModelPlan
from retinue.setup.checks import basics, data_folder, endpoints, installed, programs, sandbox
from retinue.setup.checks.check import DoctorCheck
from retinue.setup.checks.together import Failure, together
from retinue.setup.machine import Machine

MAX_SECONDS = 5.9
"""The longest the whole examination takes; a program asked for its version is given up a little earlier."""


@dataclass(frozen=True, slots=True)
class DoctorSubject:
    """What is to be examined, as the configuration gives it."""

    machine: Machine
    data_dir: Path
    find_ripgrep: Callable[[], str | Path | None]
    roots: tuple[str | Path, ...] = ()
    models: ModelPlan = field(default_factory=ModelPlan)
    config_problems: tuple[RetinueError, ...] = ()


def run_doctor(patient: DoctorSubject, seconds: float = MAX_SECONDS) -> list[DoctorCheck]:
    """Every check at once, in a fixed order. Never raises: a check that fails is itself a finding."""
    machine = patient.machine
    examinations: dict[str, Callable[[], list[DoctorCheck]]] = {
        "python": basics.python,
        "configuration": partial(basics.configuration, patient.config_problems),
        "roots": partial(basics.roots, patient.roots, machine),
        "ripgrep": partial(programs.ripgrep, patient.find_ripgrep, machine),
        "data folder": partial(data_folder.data_folder, patient.data_dir, machine),
        "database": partial(data_folder.database, patient.data_dir),
        "model endpoint": partial(endpoints.endpoints, patient.models, machine.environment),
        "CLIs": partial(programs.clis, machine),
        "sandbox": partial(sandbox.sandbox, machine),
        "hosts": partial(installed.hosts, machine),
    }
    results = together(list(examinations.values()), seconds)
    return [
        check
        for name, result in zip(examinations, results, strict=True)
        for check in (_unfinished(name, result) if isinstance(result, Failure) else result)
    ]


def _unfinished(name: str, failure: Failure) -> list[DoctorCheck]:
    return [DoctorCheck(name, "warning", f"the check {failure.reason}", "run `retinue doctor` again")]
