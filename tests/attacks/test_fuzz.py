"""Every fuzz target passes a few hundred cases; `make fuzz` runs a million."""

from __future__ import annotations

from random import Random

import pytest

from tests.attacks.fuzz import (
    PART,
    FuzzTarget,
    divide_cases,
    find_targets,
    open_processes,
    run_in_processes,
    run_target,
)

CASES = 300


@pytest.mark.parametrize("target", find_targets(), ids=lambda target: target.name)
def test_target_passes(target: FuzzTarget) -> None:
    result = run_target(target, max(30, int(CASES * min(1, target.share))), seed=14)
    assert result.failed_seed is None, f"--only {target.name} --case {result.failed_seed}\n{result.failure}"


def test_runner_reports_the_first_failing_case_and_the_case_can_be_repeated() -> None:
    def fail_sometimes(random: Random) -> None:
        assert random.random() < 0.9

    result = run_target(FuzzTarget("sometimes", fail_sometimes), 1_000, seed=1)
    assert result.failed_seed is not None
    assert result.cases == result.failed_seed - (1 << 32) + 1
    with pytest.raises(AssertionError):
        fail_sometimes(Random(result.failed_seed))


def fail_at_random(random: Random) -> None:
    assert random.random() < 0.999


def pass_always(random: Random) -> None:
    random.random()


def test_processes_run_the_same_cases_as_one() -> None:
    target = FuzzTarget("at random", fail_at_random)
    with open_processes(2) as pool:
        result = run_in_processes(target, 3 * PART, 1, pool)
        passed = run_in_processes(FuzzTarget("never", pass_always), 2 * PART + 1, 1, pool)
    assert result.failed_seed == run_target(target, 3 * PART, seed=1).failed_seed is not None
    assert (passed.cases, passed.failed_seed) == (2 * PART + 1, None)


def test_cases_are_divided_by_share() -> None:
    targets = [FuzzTarget(str(share), lambda random: None, share) for share in (1, 2, 7)]
    assert divide_cases(1_000, targets) == [100, 200, 700]
    assert sum(divide_cases(1_001, targets)) == 1_001
