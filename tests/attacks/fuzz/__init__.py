"""Fuzzing: runs random cases against the promises of Retinue. `make fuzz` runs a million of them.

Every other module of this package is a target. It has a `NAME` and a function `run_case(random)`, which runs
one case and raises an exception if a promise is broken. `SHARE` is its weight when cases are divided; 1 by
default. A case depends only on its seed, so a failure can be repeated:
`python -m tests.attacks.fuzz --only NAME --case SEED`.
"""

from __future__ import annotations

import pkgutil
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """Something that random cases are run against."""

    name: str
    run_case: Callable[[Random], None]
    share: int = 1
    """Its weight when a number of cases is divided among targets."""


@dataclass(frozen=True, slots=True)
class FuzzResult:
    """The outcome of running a target."""

    target: FuzzTarget
    cases: int
    """How many cases ran. The first failure is the last case."""
    seconds: float
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
    counts = [max(1, cases * target.share // whole) for target in targets]
    counts[0] += max(0, cases - sum(counts))
    return counts


def run_target(target: FuzzTarget, cases: int, seed: int) -> FuzzResult:
    """Run a target until it fails or all cases have passed."""
    begun = time.perf_counter()
    for number in range(cases):
        case_seed = (seed << 32) + number
        try:
            target.run_case(Random(case_seed))
        except Exception:
            seconds = time.perf_counter() - begun
            return FuzzResult(target, number + 1, seconds, case_seed, traceback.format_exc())
    return FuzzResult(target, cases, time.perf_counter() - begun)
