"""Runs all fuzz targets, or one of them, and exits with 1 if any fails."""

from __future__ import annotations

import argparse
import os
import sys
import time
from random import Random

from tests.attacks.fuzz import FuzzResult, divide_cases, find_targets, open_processes, run_in_processes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000, help="number of cases in all")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="one for each core by default")
    parser.add_argument("--only", metavar="NAME", help="run only this target")
    parser.add_argument("--case", type=int, metavar="SEED", help="repeat one case of the target --only")
    options = parser.parse_args()
    targets = [target for target in find_targets() if options.only in (None, target.name)]
    if not targets:
        names = ", ".join(target.name for target in find_targets())
        parser.error(f"there is no target {options.only!r}; the targets are: {names}")
    if options.case is not None:
        if options.only is None:
            parser.error("--case needs --only NAME")
        targets[0].run_case(Random(options.case))
        print(f"{targets[0].name}: case {options.case} passes")
        return 0
    print(f"seed {options.seed}, {options.cases} cases, {len(targets)} targets", flush=True)
    begun = time.monotonic()
    results: list[FuzzResult] = []
    with open_processes(options.processes) as pool:
        for target, cases in zip(targets, divide_cases(options.cases, targets), strict=True):
            result = run_in_processes(target, cases, options.seed, pool)
            rate = result.cases / max(result.seconds, 1e-9)
            verdict = "passed" if result.failed_seed is None else f"FAILED at --case {result.failed_seed}"
            print(f"{target.name:20} {result.cases:>9} cases {rate:>9.0f}/s each  {verdict}", flush=True)
            if result.failure:
                print(result.failure, file=sys.stderr)
            results.append(result)
    failed = [result for result in results if result.failed_seed is not None]
    ran, minutes = sum(result.cases for result in results), (time.monotonic() - begun) / 60
    print(f"{ran} cases ran in {minutes:.1f} minutes, {len(failed)} targets failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
