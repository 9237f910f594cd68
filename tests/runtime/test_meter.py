"""Budgets are hard limits over a whole request tree, reserved before they are spent (P2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from retinue.core import Budget, BudgetExceeded, BudgetKind, LimitExceeded, OwnerId, Run, RunLimits, Usage
from retinue.runtime.meter import Meter, Meters, Reservation
from retinue.store import Store
from tests.runtime.runtime_support import SPEC

FILES, TOKENS = BudgetKind.FILES, BudgetKind.TOKENS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as made:
        yield made


def record(store: Store, budget: Budget, parent: Run | None = None) -> Run:
    spec = replace(SPEC, limits=RunLimits(budget=budget), parent=parent.id if parent else None)
    return store.runs.record(spec, OwnerId.new())


def taken(store: Store, run: Run, kind: BudgetKind) -> int:
    return store.ledgers.accounts(run.request)[kind].taken


def test_amount_beyond_the_limit_is_refused_before_it_is_spent(store: Store) -> None:
    run = record(store, Budget(files=3))
    with Meters(store).open(run, recorded_here=True) as meter:
        meter.charge(FILES, 2)
        with pytest.raises(BudgetExceeded) as refused:
            meter.reserve(FILES, 2)
        assert isinstance(refused.value, LimitExceeded)
        assert (refused.value.kind, refused.value.used, refused.value.limit) == ("files", 4, 3)
        meter.charge(FILES, 1)
        assert meter.usage() == Usage.of(files=3)
    assert taken(store, run, FILES) == 3


def test_unspent_reservation_is_given_back(store: Store) -> None:
    run = record(store, Budget(tokens=1000))
    with Meters(store).open(run, recorded_here=True) as meter:
        reservation = meter.reserve(TOKENS, 800)
        with pytest.raises(BudgetExceeded):
            meter.reserve(TOKENS, 300)
        reservation.settle(150)
        reservation.settle(150)
        meter.charge(TOKENS, 850)
    assert taken(store, run, TOKENS) == 1000


def test_reservation_is_given_back_after_an_error(store: Store) -> None:
    run = record(store, Budget(tokens=1000))
    with Meters(store).open(run, recorded_here=True) as meter:
        with pytest.raises(ZeroDivisionError), meter.reserve(TOKENS, 1000):
            raise ZeroDivisionError
        with meter.reserve(TOKENS, 1000) as reservation:
            reservation.settle(10)
    assert (meter.usage(), taken(store, run, TOKENS)) == (Usage.of(tokens=10), 10)


def test_open_reservation_is_given_back_when_its_run_ends(store: Store) -> None:
    run = record(store, Budget(tokens=1000))
    with Meters(store).open(run, recorded_here=True) as meter:
        forgotten = meter.reserve(TOKENS, 600)
    assert taken(store, run, TOKENS) == 0
    forgotten.settle(600)
    assert taken(store, run, TOKENS) == 0


def test_spending_more_than_reserved_is_counted_and_raises(store: Store) -> None:
    """P8: the usage shows what was spent, even if it was too much."""
    run = record(store, Budget(tokens=1000))
    with Meters(store).open(run, recorded_here=True) as meter:
        meter.reserve(TOKENS, 100).settle(400)
        with pytest.raises(BudgetExceeded):
            meter.reserve(TOKENS, 500).settle(700)
        assert meter.usage() == Usage.of(tokens=1100)
    assert taken(store, run, TOKENS) <= 1000


def test_child_is_limited_by_its_own_its_parents_and_its_trees_budget(store: Store) -> None:
    meters = Meters(store)
    root = record(store, Budget(files=10, tokens=100))
    parent = record(store, Budget(files=6), root)
    child = record(store, Budget(files=3), parent)
    with (
        meters.open(root, recorded_here=True) as of_root,
        meters.open(parent, recorded_here=True) as of_parent,
        meters.open(child, recorded_here=True) as of_child,
    ):
        of_child.charge(FILES, 3)
        with pytest.raises(BudgetExceeded) as own:
            of_child.charge(FILES, 1)
        of_parent.charge(FILES, 3)
        with pytest.raises(BudgetExceeded) as parents:
            of_parent.charge(FILES, 1)
        of_root.charge(FILES, 4)
        with pytest.raises(BudgetExceeded) as trees:
            of_root.charge(FILES, 1)
        assert [refused.value.limit for refused in (own, parents, trees)] == [3, 6, 10]
        with pytest.raises(BudgetExceeded):
            of_child.charge(TOKENS, 101)
        of_child.charge(TOKENS, 100)
    assert (taken(store, root, FILES), taken(store, root, TOKENS)) == (10, 100)
    assert of_root.usage() == Usage.of(files=4)
    assert of_child.usage() == Usage.of(files=3, tokens=100)


def test_unlimited_kind_is_still_counted(store: Store) -> None:
    with Meters(store).open(record(store, Budget(files=1)), recorded_here=True) as meter:
        meter.charge(TOKENS, 10**9)
        assert meter.usage() == Usage.of(tokens=10**9)


def test_limit_of_zero_allows_nothing(store: Store) -> None:
    with Meters(store).open(record(store, Budget(spawns=0)), recorded_here=True) as meter:
        with pytest.raises(BudgetExceeded):
            meter.reserve(BudgetKind.SPAWNS, 1)
        with pytest.raises(ValueError, match="cannot reserve"):
            meter.reserve(BudgetKind.SPAWNS, -1)


Act = tuple[int, int, int]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(0, 300),
    acts=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 80), st.integers(0, 100)), max_size=40),
)
def test_runs_of_a_tree_never_exceed_its_budget_together_and_nothing_leaks(
    store: Store, limit: int, acts: list[Act]
) -> None:
    """Two processes (simulated by two connections) perform two runs of one tree each."""
    root = record(store, Budget(tokens=limit))
    children = [record(store, Budget(), root) for _ in range(3)]
    with Store.open(store.folder.path) as elsewhere:
        here, there = Meters(store), Meters(elsewhere)
        with (
            here.open(root, recorded_here=True) as a,
            here.open(children[0], recorded_here=True) as b,
            there.open(children[1], recorded_here=True) as c,
            there.open(children[2], recorded_here=True) as d,
        ):
            spent = 0
            for who, reserved, percent in acts:
                meter = (a, b, c, d)[who]
                try:
                    reservation = meter.reserve(TOKENS, reserved)
                except BudgetExceeded as refused:
                    assert refused.used > refused.limit == limit
                    continue
                actual = reserved * percent // 100
                assert spent + reserved <= limit
                reservation.settle(actual)
                spent += actual
                assert spent <= taken(store, root, TOKENS) <= limit
    assert taken(store, root, TOKENS) == spent
    assert sum(meter.usage().get(TOKENS) for meter in (a, b, c, d)) == spent


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(0, 200), acts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 100)), max_size=30)
)
def test_budget_is_never_refused_too_early_in_one_process(
    store: Store, limit: int, acts: list[tuple[int, int]]
) -> None:
    """P8: `BudgetExceeded` is raised only if the amount does not fit."""
    root = record(store, Budget(tokens=limit))
    child = record(store, Budget(), root)
    meters = Meters(store)
    with meters.open(root, recorded_here=True) as a, meters.open(child, recorded_here=True) as b:
        spent = 0
        for number, (reserved, percent) in enumerate(acts):
            meter = (a, b)[number % 2]
            if spent + reserved > limit:
                with pytest.raises(BudgetExceeded):
                    meter.reserve(TOKENS, reserved)
                continue
            actual = reserved * percent // 100
            meter.reserve(TOKENS, reserved).settle(actual)
            spent += actual


def test_concurrent_threads_never_exceed_the_limit_together(store: Store) -> None:
    """Holds for one process and for two connections."""
    root = record(store, Budget(tokens=5000))
    children = [record(store, Budget(), root) for _ in range(4)]
    held: list[int] = []
    most = 0
    lock = threading.Lock()

    def hold(change: int) -> None:
        nonlocal most
        with lock:
            held.append(change)
            most = max(most, sum(held))

    def spend(meter: Meter, seed: int) -> None:
        for step in range(150):
            amount = (seed * 31 + step * 17) % 40 + 1
            try:
                reservation: Reservation = meter.reserve(TOKENS, amount)
            except BudgetExceeded:
                continue
            hold(amount)
            hold(-(amount - amount // 2))
            reservation.settle(amount // 2)

    with Store.open(store.folder.path) as elsewhere:
        here, there = Meters(store), Meters(elsewhere)
        with (
            here.open(root, recorded_here=True),
            here.open(children[0], recorded_here=True) as a,
            here.open(children[1], recorded_here=True) as b,
            there.open(children[2], recorded_here=True) as c,
            there.open(children[3], recorded_here=True) as d,
        ):
            threads = [
                threading.Thread(target=spend, args=(meter, seed)) for seed, meter in enumerate((a, b, c, d))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
    assert most <= 5000
    assert taken(store, root, TOKENS) == sum(held) > 4000
    assert sum(meter.usage().get(TOKENS) for meter in (a, b, c, d)) == sum(held)


def test_thousands_of_charges_a_second_cost_few_writes(store: Store) -> None:
    """The meter takes shares from the store, not every single charge."""
    run = record(store, Budget(tokens=10_000_000))
    writes = 0

    def count(_: str) -> None:
        nonlocal writes
        writes += 1

    connection = store.database._writer  # pyright: ignore[reportPrivateUsage] - to see every query
    with Meters(store).open(run, recorded_here=True) as meter:
        connection.set_trace_callback(count)
        started = time.process_time()
        for _ in range(5000):
            meter.charge(TOKENS, 100)
        spent = time.process_time() - started
        connection.set_trace_callback(None)
    assert writes < 50
    assert 5000 / spent > 5000
