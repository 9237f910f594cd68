"""Python, the configuration and the roots. Knows nothing of where the configuration came from."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from retinue.core import RetinueError
from retinue.setup.checks.check import DoctorCheck
from retinue.setup.machine import Machine

OLDEST_PYTHON = (3, 11)

ADD_A_ROOT = (
    "name the folders that may be read: `retinue serve --root DIR`, roots in retinue.toml, "
    "or RETINUE_ROOTS in the environment"
)


def python(version: tuple[int, ...] = sys.version_info[:3]) -> list[DoctorCheck]:
    shown = f"{platform.python_implementation()} {'.'.join(map(str, version))}"
    if version < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return [DoctorCheck("python", "problem", f"{shown} is too old", f"install Python {wanted} or newer")]
    return [DoctorCheck("python", "ok", shown)]


def configuration(problems: Iterable[RetinueError]) -> list[DoctorCheck]:
    found = [
        DoctorCheck("configuration", "problem", each.message, each.hint or "correct it") for each in problems
    ]
    return found or [DoctorCheck("configuration", "ok", "no problem found")]


def roots(given: Iterable[str | Path], machine: Machine) -> list[DoctorCheck]:
    found = [_root(str(each), machine) for each in given]
    return found or [
        DoctorCheck("roots", "warning", "no root is configured: nothing can be read", ADD_A_ROOT)
    ]


def _root(given: str, machine: Machine) -> DoctorCheck:
    try:
        path = Path(given).expanduser().resolve(strict=True)
        with os.scandir(path) as entries:
            next(entries, None)
    except FileNotFoundError:
        return DoctorCheck("roots", "problem", f"{given} does not exist", "create it, or correct the path")
    except NotADirectoryError:
        return DoctorCheck("roots", "problem", f"{given} is not a folder", "name the folder it lies in")
    except (OSError, RuntimeError, ValueError):
        return DoctorCheck("roots", "problem", f"{given} cannot be read", "check its permissions")
    if path == Path(path.anchor):
        return DoctorCheck(
            "roots", "problem", f"{given} is the whole filesystem", "name the project's own folder instead"
        )
    if machine.home.resolve().is_relative_to(path):
        return DoctorCheck(
            "roots",
            "warning",
            f"{given} holds your whole home folder, with keys and private files",
            "name the project's own folder instead",
        )
    return DoctorCheck("roots", "ok", f"{given} can be read")
