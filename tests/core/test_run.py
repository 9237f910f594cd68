"""Only the allowed changes of a run's status are possible."""

from __future__ import annotations

from itertools import product

import pytest

from retinue.core import (
    ACTIVE_STATUSES,
    ENDED_STATUSES,
    STATUS_CHANGES,
    Conflict,
    Ending,
    RunId,
    RunStatus,
    check_status_change,
)


def test_ended_run_never_changes_its_status() -> None:
    """P8"""
    assert all(not STATUS_CHANGES[status] for status in ENDED_STATUSES)
    assert {RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING} == ACTIVE_STATUSES


@pytest.mark.parametrize(("before", "after"), [*product(RunStatus, RunStatus)])
def test_check_status_change_agrees_with_the_table(before: RunStatus, after: RunStatus) -> None:
    if after in STATUS_CHANGES[before]:
        check_status_change(RunId.new(), before, after)
    else:
        with pytest.raises(Conflict):
            check_status_change(RunId.new(), before, after)


def test_only_a_started_run_can_succeed_or_wait() -> None:
    assert RunStatus.SUCCESS not in STATUS_CHANGES[RunStatus.QUEUED]
    assert RunStatus.WAITING not in STATUS_CHANGES[RunStatus.QUEUED]


@pytest.mark.parametrize("status", sorted(ACTIVE_STATUSES))
def test_ending_requires_a_final_status(status: RunStatus) -> None:
    with pytest.raises(ValueError, match="does not end"):
        Ending(status=status)
