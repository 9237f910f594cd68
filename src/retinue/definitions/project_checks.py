"""Finds a project's own commands for checking types, lint, tests and security. Never runs them.

Looks at the makefile first, then at the scripts in `package.json`, then at the tools that `pyproject.toml`
configures, then at files that tell how a project of their kind is tested.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from retinue.core import as_object, find_program, json_or_none
from retinue.definitions.definition_files import read_definition_file
from retinue.definitions.problems import MalformedDefinition
from retinue.definitions.workflow_files import CHECKS

TARGET_NAMES: Mapping[str, tuple[str, ...]] = {
    "types": ("typecheck", "type-check", "types", "tsc", "mypy", "pyright"),
    "lint": ("lint",),
    "tests": ("test:run", "test:ci", "test", "tests"),
    "security": ("security", "audit", "bandit"),
}
"""Names of make targets and scripts for each check, in order of preference."""
PYTHON_TOOLS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "types": (("pyright",), ("mypy", "."), ("basedpyright",), ("ty", "check")),
    "lint": (("ruff", "check", "."), ("flake8",), ("pylint", ".")),
    "tests": (("pytest",),),
    "security": (("bandit", "-q", "-r", "."),),
}
USUAL_CHECKS: tuple[tuple[str, str, Mapping[str, tuple[str, ...]]], ...] = (
    ("go.mod", "go", {"types": ("vet", "./..."), "tests": ("test", "./...")}),
    ("Cargo.toml", "cargo", {"types": ("check",), "tests": ("test",)}),
)
"""File, program, and its arguments for each check."""
MAX_NAMES = 1_000
"""Names in a folder that are looked at."""
RUNNER_BY_LOCK_FILE = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_TARGET = re.compile(r"^([A-Za-z0-9_.-]+)[ \t]*:(?![=:])", re.MULTILINE)
_PACKAGE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ProjectCheck:
    """A command that checks the project, and the file it was found in."""

    argv: tuple[str, ...]
    source: str


def find_checks(project: Path) -> dict[str, ProjectCheck]:
    """Return the command for each kind of check that the project has."""
    found: dict[str, ProjectCheck] = {}
    for name, check in (
        *_makefile_checks(project),
        *_package_json_checks(project),
        *_pyproject_checks(project),
        *_usual_checks(project),
    ):
        found.setdefault(name, check)
    return {name: found[name] for name in CHECKS if name in found}


def _makefile_checks(project: Path) -> Iterator[tuple[str, ProjectCheck]]:
    """Yield a check for each known target of the makefile."""
    for file in ("GNUmakefile", "makefile", "Makefile"):
        targets = set(_TARGET.findall(_read_text(project, file)))
        yield from _checks_named(targets, ("make",), file)


def _package_json_checks(project: Path) -> Iterator[tuple[str, ProjectCheck]]:
    """Yield a check for each known script, run with the project's package manager."""
    scripts = as_object(as_object(json_or_none(_read_text(project, "package.json"))).get("scripts"))
    real = {name for name, script in scripts.items() if "no test specified" not in str(script)}
    runner = next(
        (runner for lock, runner in RUNNER_BY_LOCK_FILE.items() if (project / lock).exists()), "npm"
    )
    yield from _checks_named(real, (runner, "run"), "package.json")


def _pyproject_checks(project: Path) -> Iterator[tuple[str, ProjectCheck]]:
    """Yield a check for each known tool that `pyproject.toml` requires or configures."""
    try:
        declared = tomllib.loads(_read_text(project, "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        return
    known = {*_required_packages(declared), *as_object(declared.get("tool"))}
    for name, tools in PYTHON_TOOLS.items():
        for program, *arguments in tools:
            if program in known:
                argv = (_program_path(project, program), *arguments)
                yield name, ProjectCheck(argv, "pyproject.toml")


def _usual_checks(project: Path) -> Iterator[tuple[str, ProjectCheck]]:
    """Yield the checks that projects of a kind have without configuring them, if their program is there."""
    for file, program, commands in USUAL_CHECKS:
        if (project / file).is_file() and find_program(program, None, (project,)):
            for name, arguments in commands.items():
                yield name, ProjectCheck((program, *arguments), file)
    tests = next(_python_tests(project), None)
    if tests is None:
        return
    pytest = _program_path(project, "pytest")
    if pytest != "pytest" or find_program("pytest", None, (project,)):
        yield "tests", ProjectCheck((pytest, "-q"), tests)
    elif "unittest" in _read_text(project, tests) and find_program("python3", None, (project,)):
        yield "tests", ProjectCheck(("python3", "-m", "unittest"), tests)


def _python_tests(project: Path) -> Iterator[str]:
    """Yield files with tests in Python, in the project's folder or in `tests`."""
    for folder in ("", "tests/", "test/"):
        try:
            names = sorted(entry.name for entry in (project / folder).iterdir())
        except OSError:
            continue
        for name in names[:MAX_NAMES]:
            if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")):
                yield f"{folder}{name}"


def _checks_named(
    present: set[str], prefix: tuple[str, ...], source: str
) -> Iterator[tuple[str, ProjectCheck]]:
    """Yield a check for each known name that is present. The command is `prefix` and the name."""
    for check, names in TARGET_NAMES.items():
        for name in names:
            if name in present:
                yield check, ProjectCheck((*prefix, name), source)


def _required_packages(value: Any) -> Iterator[str]:
    """Yield the names of all required packages. Searches everywhere, because tools use different layouts."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key in ("dependencies", "dev-dependencies") and isinstance(item, dict):
                yield from cast("dict[str, Any]", item)
            yield from _required_packages(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            if isinstance(item, str) and (match := _PACKAGE.match(item)):
                yield match[0].lower()
            else:
                yield from _required_packages(item)


def _program_path(project: Path, name: str) -> str:
    """Return the program's path in the project's virtual environment, or its plain name."""
    folder, ending = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    own = project / ".venv" / folder / f"{name}{ending}"
    return str(own) if own.is_file() else name


def _read_text(project: Path, name: str) -> str:
    """Return the content of a project's file, or "" if it cannot be read."""
    if not (project / name).is_file():
        return ""
    try:
        return read_definition_file(project / name, project).decode("utf-8", "replace")
    except MalformedDefinition:
        return ""
