"""Fuzzing: runs random cases against the promises of Retinue. `make fuzz` runs a million of them.

Every other module of this package is a target. It has a `NAME` and a function `run_case(random)`, which runs
one case and raises an exception if a promise is broken. `SHARE` is its weight when cases are divided; 1 by
default. A case depends only on its seed, so a failure can be repeated:
`python -m tests.attacks.fuzz --only NAME --case SEED`.
"""

from __future__ import annotations

import atexit
import pkgutil
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path
from random import Random

PART = 2_000
"""Cases that a process runs at a time."""


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """Something that random cases are run against."""

    name: str
    run_case: Callable[[Random], None]
    share: float = 1
    """Its weight when a number of cases is divided among targets."""


@dataclass(frozen=True, slots=True)
class FuzzResult:
    """The outcome of running a target."""

    target: FuzzTarget
    cases: int
    """How many cases ran. No case runs after a failure, except in other processes."""
    seconds: float
    """How long the cases took, in all processes together."""
    failed_seed: int | None = None
    failure: str = ""
    """The traceback of the failed case."""


def find_targets() -> list[FuzzTarget]:
    """Import every module of this package, except the runner, as a target."""
    names = sorted(found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = [import_module(f"{__name__}.{name}") for name in names if name != "__main__"]
    targets = [FuzzTarget(each.NAME, each.run_case, getattr(each, "SHARE", 1)) for each in modules]
    assert len({target.name for target in targets}) == len(targets), "two targets have the same name"
    return targets


def divide_cases(cases: int, targets: Sequence[FuzzTarget]) -> list[int]:
    """Divide a number of cases among targets by their shares. Every target gets at least one."""
    whole = sum(target.share for target in targets)
    counts = [max(1, int(cases * target.share / whole)) for target in targets]
    counts[0] += max(0, cases - sum(counts))
    return counts


def run_target(target: FuzzTarget, cases: int, seed: int, *, first: int = 0) -> FuzzResult:
    """Run so many cases of a target, from the one with the number `first` on, until one fails."""
    begun = time.perf_counter()
    for number in range(first, first + cases):
        case_seed = (seed << 32) + number
        try:
            target.run_case(Random(case_seed))
        except Exception:
            seconds = time.perf_counter() - begun
            return FuzzResult(target, number + 1 - first, seconds, case_seed, traceback.format_exc())
    return FuzzResult(target, cases, time.perf_counter() - begun)


def open_processes(count: int) -> ProcessPoolExecutor:
    """Start processes that import targets themselves, because targets have folders of their own."""
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_remove_folders_at_the_end)


def _remove_folders_at_the_end() -> None:
    """Run what targets have registered with `atexit`, which processes of a pool skip."""
    Finalize(None, getattr(atexit, "_run_exitfuncs"), exitpriority=1)  # noqa: B009 (it is not public)


def run_in_processes(target: FuzzTarget, cases: int, seed: int, pool: Executor) -> FuzzResult:
    """Run a target in several processes at once. Returns the failure with the lowest seed."""
    parts = [
        pool.submit(run_target, target, min(PART, cases - first), seed, first=first)
        for first in range(0, cases, PART)
    ]
    results = [part.result() for part in parts]
    failed = next((result for result in results if result.failed_seed is not None), results[0])
    return FuzzResult(
        target,
        sum(result.cases for result in results),
        sum(result.seconds for result in results),
        failed.failed_seed,
        failed.failure,
    )
