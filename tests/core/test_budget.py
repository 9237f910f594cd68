"""Budgets limit every kind, and usage counts what was spent."""

from __future__ import annotations

import pytest

from retinue.core import Budget, BudgetKind, InvalidInput, Usage


def test_every_budget_kind_has_a_limit_and_negative_limits_are_refused() -> None:
    for kind in BudgetKind:
        assert Budget(**{kind.value: 7}).limit(kind) == 7
        assert Budget().limit(kind) is None
        with pytest.raises(InvalidInput):
            Budget(**{kind.value: -1})


def test_usage_is_zero_for_kinds_that_were_not_spent() -> None:
    usage = Usage.of(files=3, bytes=0)
    assert usage.get(BudgetKind.FILES) == 3
    assert usage.get(BudgetKind.TOKENS) == 0
    assert usage.as_dict() == {"files": 3}
