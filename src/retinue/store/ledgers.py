"""How much of its budget each request tree has taken, over all processes.

A process takes an amount before it spends it, and gives back what it did not spend. What a process held
when it died counts as spent, because a limit must never be exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retinue.core import Budget, BudgetExceeded, BudgetKind, RunId
from retinue.store.database import Database, Transaction, insert_into


@dataclass(frozen=True, slots=True)
class Account:
    """One kind of budget of a request tree."""

    taken: int
    limit: int


INITIAL_SHARE = 4
"""The process that records a tree takes 1/INITIAL_SHARE of its budget at the start."""


def initial_credit(budget: Budget) -> dict[BudgetKind, int]:
    """The part of the budget that the process which records a tree may spend without asking the store."""
    return {BudgetKind(kind): limit // INITIAL_SHARE for kind, limit in budget.as_dict().items()}


def open_ledger(tx: Transaction, request: RunId, budget: Budget) -> None:
    """Open one account for each limited kind. A kind without an account is not limited."""
    credit = initial_credit(budget)
    for kind, limit in budget.as_dict().items():
        row = {"request": request, "kind": kind, "most": limit, "taken": credit[BudgetKind(kind)]}
        tx.execute(insert_into("ledgers", row), row)


class LedgerTable:
    """The accounts of all request trees."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accounts(self, request: RunId) -> dict[BudgetKind, Account]:
        rows = self._database.rows("SELECT kind, taken, most FROM ledgers WHERE request = ?", (request,))
        return {BudgetKind(row["kind"]): Account(row["taken"], row["most"]) for row in rows}

    def take(self, request: RunId, kind: BudgetKind, amount: int, *, spare_share: int | None = None) -> int:
        """Take the amount, plus 1/`spare_share` of what remains after it, and return the sum.

        Raises `BudgetExceeded`, and takes nothing, if less than the amount is left.
        """
        with self._database.write() as tx:
            row = tx.execute(
                "SELECT taken, most FROM ledgers WHERE request = ? AND kind = ?", (request, kind)
            ).fetchone()
            if row is None:
                return amount
            remaining = row["most"] - row["taken"] - amount
            if remaining < 0:
                raise BudgetExceeded(kind.value, row["taken"] + amount, row["most"])
            taken = amount + (remaining // spare_share if spare_share else 0)
            tx.execute(
                "UPDATE ledgers SET taken = taken + ? WHERE request = ? AND kind = ?", (taken, request, kind)
            )
        return taken

    def give_back(self, request: RunId, amounts: Mapping[BudgetKind, int]) -> None:
        with self._database.write() as tx:
            for kind, amount in amounts.items():
                tx.execute(
                    "UPDATE ledgers SET taken = taken - ? WHERE request = ? AND kind = ?",
                    (amount, request, kind),
                )
