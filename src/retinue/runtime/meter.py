"""Counts what runs spend, before they spend it. Knows nothing of what is bought.

Each run has a meter. It asks its own limits first, then its parent run's meter, and so on up to the
account of the whole request tree, which the store keeps for all processes. To be fast, a process takes
from that account a little more than it needs, a smaller part the less is left, and returns it in the end.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

from retinue.core import Budget, BudgetExceeded, BudgetKind, Run, RunId, Usage
from retinue.store import LedgerTable

SPARE_SHARE = 16
"""A process takes one part in so many of what remains, beyond what it needs at once."""


class BudgetSource(Protocol):
    """Where a meter gets what it hands out."""

    def take(self, kind: BudgetKind, amount: int) -> None:
        """Raises `BudgetExceeded`, and takes nothing, when there is not enough."""
        ...

    def give_back(self, kind: BudgetKind, amount: int) -> None: ...


class TreeAccount:
    """What this process holds of one request tree's budget."""

    def __init__(self, ledgers: LedgerTable, request: RunId) -> None:
        self._ledgers = ledgers
        self._request = request
        self._limited = frozenset(ledgers.accounts(request))
        self._credit = Counter[BudgetKind]()
        self._lock = threading.Lock()

    def take(self, kind: BudgetKind, amount: int) -> None:
        if kind not in self._limited:
            return
        with self._lock:
            missing = amount - self._credit[kind]
            if missing > 0:
                self._credit[kind] += self._ledgers.take(
                    self._request, kind, missing, spare_share=SPARE_SHARE
                )
            self._credit[kind] -= amount

    def give_back(self, kind: BudgetKind, amount: int) -> None:
        if kind in self._limited:
            with self._lock:
                self._credit[kind] += amount

    def close(self) -> None:
        with self._lock:
            unspent = +self._credit
            self._credit.clear()
        if unspent:
            self._ledgers.give_back(self._request, unspent)


class Meter:
    """One run's spending. Its child runs' spending counts against its limits too. Safe from any thread."""

    def __init__(self, limits: Budget, source: BudgetSource) -> None:
        self._limits = limits
        self._source = source
        self._taken = Counter[BudgetKind]()
        self._spent = Counter[BudgetKind]()
        self._open: set[Reservation] = set()
        self._lock = threading.RLock()

    def reserve(self, kind: BudgetKind, amount: int) -> Reservation:
        """Set the amount aside before it is spent, or raise `BudgetExceeded`; `settle` it afterwards."""
        if amount < 0:
            raise ValueError(f"cannot reserve {amount} {kind}")
        reservation = Reservation(self, kind, amount)
        with self._lock:
            self.take(kind, amount)
            self._open.add(reservation)
        return reservation

    def charge(self, kind: BudgetKind, amount: int) -> None:
        """Reserve and spend at once."""
        self.reserve(kind, amount).settle(amount)

    def settle(self, reservation: Reservation, actual: int) -> None:
        kind, reserved = reservation.kind, reservation.amount
        with self._lock:
            if reservation not in self._open:
                return
            self._open.remove(reservation)
            self._spent[kind] += actual
            if actual < reserved:
                self.give_back(kind, reserved - actual)
            elif actual > reserved:
                self.take(kind, actual - reserved)

    def usage(self) -> Usage:
        """What the run itself has really spent, without what is set aside."""
        with self._lock:
            return Usage(dict(+self._spent))

    def take(self, kind: BudgetKind, amount: int) -> None:
        limit = self._limits.limit(kind)
        with self._lock:
            wanted = self._taken[kind] + amount
            if limit is not None and wanted > limit:
                raise BudgetExceeded(kind.value, wanted, limit)
            self._source.take(kind, amount)
            self._taken[kind] = wanted

    def give_back(self, kind: BudgetKind, amount: int) -> None:
        with self._lock:
            self._taken[kind] -= amount
            self._source.give_back(kind, amount)

    def close(self) -> None:
        """Give back whatever is still set aside."""
        with self._lock:
            for reservation in tuple(self._open):
                reservation.settle(0)


class Reservation:
    """An amount set aside. As a context manager it gives back what was not settled within the block."""

    def __init__(self, meter: Meter, kind: BudgetKind, amount: int) -> None:
        self._meter = meter
        self.kind = kind
        self.amount = amount

    def settle(self, actual: int) -> None:
        """Say what was really spent: less goes back, more is taken too. Only the first settling counts.

        More than the budget holds is counted as spent all the same, and raises `BudgetExceeded`: it is too
        late to prevent, but not to stop.
        """
        self._meter.settle(self, actual)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle(0)


class Meters:
    """The meters of the runs that this process performs."""

    def __init__(self, ledgers: LedgerTable) -> None:
        self._ledgers = ledgers
        self._meters: dict[RunId, Meter] = {}
        self._trees: dict[RunId, TreeAccount] = {}
        self._users = Counter[RunId]()

    @contextmanager
    def taking(self, run: Run, kind: BudgetKind, amount: int) -> Generator[None]:
        """Spend on behalf of a run, whichever process performs it; given back if the block fails."""
        with self._tree(run.request) as account:
            source = self._meters.get(run.id, account)
            source.take(kind, amount)
            try:
                yield
            except BaseException:
                source.give_back(kind, amount)
                raise

    @contextmanager
    def open(self, run: Run) -> Generator[Meter]:
        """The run's meter, for as long as it runs; nothing stays reserved behind it."""
        with self._tree(run.request) as account:
            # A parent in another process cannot be asked; its tree's account still holds.
            parent = None if run.spec.parent is None else self._meters.get(run.spec.parent)
            meter = Meter(run.spec.limits.budget, account if parent is None else parent)
            self._meters[run.id] = meter
            try:
                yield meter
            finally:
                del self._meters[run.id]
                meter.close()

    @contextmanager
    def _tree(self, request: RunId) -> Generator[TreeAccount]:
        if request not in self._trees:
            self._trees[request] = TreeAccount(self._ledgers, request)
        self._users[request] += 1
        try:
            yield self._trees[request]
        finally:
            self._users[request] -= 1
            if not self._users[request]:
                del self._users[request]
                self._trees.pop(request).close()
