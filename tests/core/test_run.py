"""The only ways a run's status may change."""

from __future__ import annotations

from itertools import product

import pytest

from retinue.core import (
    ACTIVE_STATUSES,
    ENDED_STATUSES,
    STATUS_CHANGES,
    Budget,
    BudgetKind,
    Conflict,
    Ending,
    InvalidInput,
    RunId,
    RunStatus,
    Usage,
    check_status_change,
)


def test_a_run_that_has_ended_never_changes() -> None:
    """P8"""
    assert all(not STATUS_CHANGES[status] for status in ENDED_STATUSES)
    assert {RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING} == ACTIVE_STATUSES


@pytest.mark.parametrize(("before", "after"), [*product(RunStatus, RunStatus)])
def test_the_rule_and_the_table_agree(before: RunStatus, after: RunStatus) -> None:
    if after in STATUS_CHANGES[before]:
        check_status_change(RunId.new(), before, after)
    else:
        with pytest.raises(Conflict):
            check_status_change(RunId.new(), before, after)


def test_only_a_started_run_can_succeed_or_wait() -> None:
    assert RunStatus.SUCCESS not in STATUS_CHANGES[RunStatus.QUEUED]
    assert RunStatus.WAITING not in STATUS_CHANGES[RunStatus.QUEUED]


@pytest.mark.parametrize("status", sorted(ACTIVE_STATUSES))
def test_an_outcome_must_end_the_run(status: RunStatus) -> None:
    with pytest.raises(ValueError, match="does not end"):
        Ending(status=status)


def test_every_kind_has_a_limit_and_a_negative_one_is_refused() -> None:
    for kind in BudgetKind:
        assert Budget(**{kind.value: 7}).limit(kind) == 7
        assert Budget().limit(kind) is None
        with pytest.raises(InvalidInput):
            Budget(**{kind.value: -1})


def test_usage_is_zero_where_nothing_was_spent() -> None:
    usage = Usage.of(files=3, bytes=0)
    assert usage.get(BudgetKind.FILES) == 3
    assert usage.get(BudgetKind.TOKENS) == 0
    assert usage.as_dict() == {"files": 3}
