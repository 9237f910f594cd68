"""How much of its budget a request tree has taken, over all processes (P2)."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from retinue.core import Budget, BudgetExceeded, BudgetKind, Conflict, RunId, RunLimits
from retinue.store import Store
from retinue.store.ledgers import Account, initial_credit
from tests.store.store_support import SPEC, Bench


def request_with(bench: Bench, budget: Budget) -> RunId:
    """Record a request and give its initial credit back, so that nothing is taken."""
    request = bench.running(replace(SPEC, limits=RunLimits(budget=budget))).id
    bench.store.ledgers.give_back(request, initial_credit(budget))
    return request


def test_recording_a_request_opens_its_ledger(bench: Bench) -> None:
    request = bench.running(replace(SPEC, limits=RunLimits(budget=Budget(files=50, tokens=0)))).id
    assert bench.store.ledgers.accounts(request) == {
        BudgetKind.FILES: Account(12, 50),  # the initial share of the process that records it
        BudgetKind.TOKENS: Account(0, 0),
    }
    child = bench.running(replace(SPEC, parent=request, limits=RunLimits(budget=Budget(files=5))))
    assert bench.store.ledgers.accounts(child.id) == {}


def test_amount_beyond_the_limit_is_refused_and_not_taken(bench: Bench) -> None:
    request = request_with(bench, Budget(files=5))
    assert bench.store.ledgers.take(request, BudgetKind.FILES, 4) == 4
    with pytest.raises(BudgetExceeded) as refused:
        bench.store.ledgers.take(request, BudgetKind.FILES, 2)
    assert (refused.value.kind, refused.value.used, refused.value.limit) == ("files", 6, 5)
    assert refused.value.code == "budget_exceeded"
    assert bench.store.ledgers.take(request, BudgetKind.FILES, 1) == 1
    bench.store.ledgers.give_back(request, {BudgetKind.FILES: 2})
    assert bench.store.ledgers.accounts(request)[BudgetKind.FILES] == Account(3, 5)


def test_spare_share_is_taken_only_from_what_remains(bench: Bench) -> None:
    request = request_with(bench, Budget(tokens=1000))
    assert bench.store.ledgers.take(request, BudgetKind.TOKENS, 200, spare_share=16) == 250
    assert bench.store.ledgers.take(request, BudgetKind.TOKENS, 745, spare_share=16) == 745
    assert bench.store.ledgers.take(request, BudgetKind.TOKENS, 5, spare_share=16) == 5


def test_unlimited_kind_is_not_counted(bench: Bench) -> None:
    request = request_with(bench, Budget(files=1))
    assert bench.store.ledgers.take(request, BudgetKind.TOKENS, 10**12) == 10**12


def test_database_refuses_to_give_back_more_than_was_taken(bench: Bench) -> None:
    request = request_with(bench, Budget(files=5))
    with pytest.raises(Conflict):
        bench.store.ledgers.give_back(request, {BudgetKind.FILES: 1})


def test_concurrent_connections_never_exceed_the_limit_together(bench: Bench) -> None:
    request = request_with(bench, Budget(files=100))
    stores = [Store.open(bench.store.folder.path) for _ in range(4)]
    taken: list[int] = []

    def take(store: Store) -> None:
        try:
            while True:
                taken.append(store.ledgers.take(request, BudgetKind.FILES, 3))
        except BudgetExceeded:
            return

    threads = [threading.Thread(target=take, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for store in stores:
        store.close()
    assert sum(taken) == 99
